#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::tools {

/// What a model gets of one result at most, bytes.
inline constexpr std::size_t tool_result_bytes = 64u << 10;

/// What became of a tool call, as the model is told.
struct tool_outcome {
  std::string text; ///< UTF-8, without NUL
  bool is_error = false;
  std::string spilled;     ///< the absolute path of the whole result; empty: it is all in `text`
  std::uint64_t bytes = 0; ///< of the whole result
};

/// Where results go that are too long.
struct result_place {
  std::string directory; ///< absolute, e.g. HOME/executions/<dispatch_id>/results; made when needed
  std::string name;      ///< of this call, unlike that of every other call of the run
  /// What the configuration knows as secrets (config::redact_text).
  std::vector<std::string> secrets{};
  /// Bytes of the result that were not kept when it was gathered: its text has a line in their
  /// place.
  std::uint64_t missing = 0;
};

/// The longest prefix of `utf8` with at most `bytes` that splits no character.
std::string_view cut_bytes(std::string_view utf8, std::size_t bytes) noexcept;

/// An error as a model reads it.
tool_outcome failed_outcome(const error& e);

/// `text` as it is when it has at most `most` bytes; else it is written to
/// `<directory>/<name>.txt`, and the model gets its beginning, its end, and between them a line
/// that says how many bytes are missing and how to read them (`@results/<name>.txt`), or why they
/// could not be kept; and how many are not there either (`place.missing`). Bytes that are no UTF-8
/// are replaced, and secrets, before it is cut: none is in the file, the model's part or half in
/// it. Blocking.
tool_outcome fit_result(std::string_view text, bool is_error, const result_place& place,
                        file_system& files, std::size_t most = tool_result_bytes);

} // namespace boyd::tools
