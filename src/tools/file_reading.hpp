#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/confined_files.hpp"
#include "boyd/tools/call.hpp"

#include <string>
#include <string_view>

namespace boyd::tools {

/// A binary file cannot be told from text in fewer bytes; git looks at as many.
inline constexpr std::size_t binary_look_bytes = 8000;

/// Whether what begins so is no text: it holds a NUL.
bool looks_binary(std::string_view beginning) noexcept;

struct read_text {
  std::string text;
  std::string where; ///< what was read, relative to the root, links resolved
};

/// The lines that `call` asks for of `path` below `root`, with a last line that says what is
/// missing.
result<read_text> read_lines(confined_files& files, const std::string& root,
                             const std::string& path, const read_file_call& call);

} // namespace boyd::tools
