#pragma once

#include "boyd/core/result.hpp"
#include "boyd/improve/cycle_state.hpp"
#include "boyd/improve/protection.hpp"
#include "boyd/ports/confined_files.hpp"
#include "boyd/ports/work_tree.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::improve {

/// What an executor proposes for one file, not checked yet.
struct proposed_change {
  std::string path;
  planned_change::action_t action = planned_change::action_t::modify;
  bool has_content = false;
  std::string content; ///< the whole new content
  std::string diff;    ///< hunks of a unified diff; used when there is no content
};

struct proposal {
  std::string summary;
  std::vector<proposed_change> changes;
};

/// Of a patch (docs/improve.md).
inline constexpr std::size_t most_patch_files = 5;
inline constexpr std::size_t most_diff_lines = 200;
/// A second bound, for lines that are very long.
inline constexpr std::size_t most_diff_bytes = std::size_t{64} << 10;
/// Of an answer, and of one file before and after.
inline constexpr std::size_t answer_bytes = std::size_t{4} << 20;
inline constexpr std::size_t patched_file_bytes = std::size_t{4} << 20;

/// Reads an answer: a JSON object {"summary", "files": [{"path", "action", "content" | "diff"}]},
/// alone or among other words, with "diff" (a unified diff of several files) instead of "files", or
/// a unified diff alone or in a Markdown fence. Errors (`parse_error`, `refused`) say what is
/// wrong, for whoever wrote it: renames, copies, changes of modes and binary patches are refused.
/// Pure; any bytes.
result<proposal> read_proposal(std::string_view answer);

/// The same of a text that is a unified diff as a tool made it, and nothing else.
result<proposal> read_diff(std::string_view diff);

/// `before` with the hunks of a unified diff; a hunk may have moved, but what it takes out and what
/// stands around that must be there exactly, and once. `conflict` otherwise. Pure.
result<std::string> apply_diff(std::string_view before, std::string_view diff);

/// Lines that `before` loses plus lines that `after` gains, and their bytes.
struct diff_size {
  std::size_t lines = 0;
  std::size_t bytes = 0;
};
/// Exact up to `most` lines; beyond, the lines are so many at least, and the bytes are not counted.
diff_size measure_diff(std::string_view before, std::string_view after, std::size_t most);

/// A unified diff for people, "" when nothing differs. Changes of more than most_diff_lines are
/// shown as one block.
std::string render_diff(const std::string& path, std::string_view before, std::string_view after);

/// Characters of a text that are not seen, though they change what is: control characters but tabs
/// and line breaks, marks of direction; how many there are of each code point. Pure; any bytes.
std::map<unsigned, std::size_t> hidden_in(std::string_view text);
/// The text with each of them as "<U+202E>". Pure; any bytes.
std::string with_hidden_shown(std::string_view text);
/// "U+202E". `code` is below 0x10000.
std::string name_of_character(unsigned code);

/// What an approval names: the same for the same changes of the same files.
std::string digest_of(const std::vector<planned_change>& changes);

struct gate_rules {
  std::string root;                ///< the repository, absolute
  std::vector<std::string> closed; ///< paths of Boyd's own, with all that lies below them
  protection protected_paths;
  finding task{}; ///< what the patch is for
  /// No file may grow beyond it, bytes: larger ones are not looked at.
  std::uint64_t largest_file = patched_file_bytes;
  /// What no prompt shows, as config::redact_text takes it.
  std::vector<std::string> secrets{};
};

/// Whether a proposal may be applied, and exactly what that would change. Each error has a reason
/// for whoever proposed it; `refused` is a rule of safety, `limit_exceeded` a size, everything else
/// a mistake. Reads files only. Blocking, as the ports are.
result<accepted_patch> judge_patch(const proposal& p, const gate_rules& rules, work_tree& tree,
                                   confined_files& files);

} // namespace boyd::improve
