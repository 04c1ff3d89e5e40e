#pragma once

#include "boyd/core/limits.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::state {

/// One agent's outcome in one line.
struct action_line {
  utc_time at{};
  std::string agent_id; ///< a valid name (core/ids.hpp); others are left out
  std::string text;     ///< any text; its first line, cut at limits::summary_characters, is used
  std::string status;   ///< done | failed | cancelled | running | pending

  bool operator==(const action_line&) const = default;
};

/// "- 2026-02-13T10:00:00Z agent-a: completed (done)", without a line break.
std::string render_action(const action_line& action);

/// True for a line that render_action could have made: the reducer's own.
bool is_action_line(std::string_view line);

/// Merges `actions` into the section `## recent_actions` (docs/state-and-history.md, rule-based
/// reducer). The reducer touches only its own lines: they stand together where the first of them
/// (else `(none yet)`, which they replace, else the end of the section's heading) was, newest
/// first, at most `max`, no line twice, so repeating a merge changes nothing. All other lines stay
/// byte for byte. Without the section, it is made before the runtime block, or at the end. The
/// section is the first line `## recent_actions` outside fenced code and the runtime block, up to
/// the next heading of level one or two or the block.
std::string merge_recent_actions(std::string_view file_text,
                                 const std::vector<action_line>& actions,
                                 std::size_t max = limits::recent_actions);

} // namespace boyd::state
