#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/result.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/process_runner.hpp"

#include <string>
#include <string_view>

namespace boyd::exec {

/// What one check found.
struct check_result {
  bool passed = false;
  std::string text; ///< one line: what failed; empty when passed
};

/// A file's time may lag behind the clock by one tick of the file system's coarse clock.
inline constexpr milliseconds artifact_clock_slack{20};

/// `exit_zero`: the process ended by itself with code 0.
check_result check_exit_zero(const process_exit& e);

/// `artifact PATH`: a regular file, not empty, modified at or after the attempt's start.
check_result check_artifact(const std::string& path, const result<file_info>& found,
                            utc_time attempt_started);

/// `no_question`: the output does not end by asking its reader something. Heuristic: the last
/// non-blank line of stdout, without trailing quotes, brackets, stars and backquotes, must not end
/// with '?' (or U+FF1F, U+061F), and must not hold one of a few phrases by which assistants ask to
/// go on ("let me know", "would you like", "shall i", "should i", "do you want", "please confirm",
/// "please provide"), letter case ignored.
check_result check_no_question(std::string_view last_line);

/// `command CMD`: another process that must exit with code 0.
check_result check_command(const std::vector<std::string>& argv, const process_exit& e,
                           std::string_view output_tail);

/// `schema FILE`: stdout as a whole, or else its last non-blank line, is JSON that validates
/// against the JSON Schema (draft 7) in `schema_text`. References to other documents are refused.
check_result check_schema(const std::string& path, const result<std::string>& schema_text,
                          std::string_view output, std::string_view last_line);

} // namespace boyd::exec
