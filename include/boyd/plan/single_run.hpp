#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace boyd::plan {

/// A run of one agent that somebody asked for (`boyd run`): its own cycle, in which no other agent
/// runs, outside of the agent's schedule, cooldown and wake check (docs/planning.md).
struct single_run {
  std::string agent_id;
  std::string message; ///< appended to the prompt; empty: nothing is

  bool operator==(const single_run&) const = default;
};

/// As JSON, in which form it stands in the store until its cycle is recorded. A message that is not
/// UTF-8 is kept with U+FFFD.
std::string text_of(const single_run& run);

/// Reads that back; nothing when it is malformed.
std::optional<single_run> read_single_run(std::string_view text);

} // namespace boyd::plan
