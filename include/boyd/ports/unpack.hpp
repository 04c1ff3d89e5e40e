#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace boyd {

/// Goes on with one file that the zstd program has compressed: takes bytes from the front of
/// `packed`, and says what they unpack to, at most `most` bytes. With nothing left in `packed` it
/// says what is left inside; nothing: that was the end. `corrupt`: also an end that comes too
/// early.
using unpack_step = std::function<result<std::string>(std::string_view& packed, std::size_t most)>;

/// Begins with another file. Threads: any; what it returns has one.
using unpack_function = std::function<unpack_step()>;

} // namespace boyd
