#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace boyd::adapters {

/// What the zstd program has compressed, as ports::unpack. Threads: any.
result<std::string> unpack_zstd(std::string_view packed, std::size_t most);

} // namespace boyd::adapters
