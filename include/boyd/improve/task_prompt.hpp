#pragma once

#include "boyd/improve/cycle_state.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::improve {

/// Lines of a file that a prompt shows.
struct prompt_file {
  std::string path;
  std::string text;
  std::size_t first = 1; ///< number of its first line
  std::size_t total = 0; ///< lines of the whole file
  bool is_cut = false;   ///< the file goes on behind `total`

  bool is_whole() const;
};

/// What stands beside the task in its prompt.
struct prompt_parts {
  bool edits = false;              ///< the answer is changed files
  std::vector<std::string> closed; ///< paths and patterns that no patch may touch
  std::vector<prompt_file> files;
  std::string refused;  ///< the answer that was refused last; may be empty
  std::string guidance; ///< of the operator; may be empty
};

/// Of a file, and of all of them.
inline constexpr std::size_t shown_file_bytes = std::size_t{32} << 10;
inline constexpr std::size_t shown_files = 3;
/// Of a program's output, and of a refused answer.
inline constexpr std::size_t shown_output_bytes = std::size_t{8} << 10;

/// What an executor is told (docs/improve.md): the task, what the failing program said, the files,
/// what was refused and what failed before, what worked for its kind, the rules of the gate, and
/// the form of the answer. Each list is bounded, and what is left out is said. Pure.
std::string task_prompt(const cycle_state& s, const prompt_parts& parts);

/// `text` without secrets (config::redact_text), each line at its place: a secret of several lines
/// leaves its line breaks. Pure.
std::string redact_lines(std::string_view text, const std::vector<std::string>& secrets);

/// The whole text, or, of a longer one, whole lines around `line` (0: the beginning), at most
/// `most` bytes. Pure.
prompt_file around(std::string path, std::string_view text, int line, std::size_t most);

/// A place in a file that some output names.
struct named_place {
  std::string path; ///< as it is written there
  int line = 0;
};

/// The places "path:line" and `File "path", line N` of a text, each path once, in their order. What
/// is no file is for the caller to find out. Pure.
std::vector<named_place> places_in(std::string_view output);

/// The beginning and the end of a long text, with a line between them that says how much is
/// missing; whole lines. Pure.
std::string shortened(std::string_view text, std::size_t most);

} // namespace boyd::improve
