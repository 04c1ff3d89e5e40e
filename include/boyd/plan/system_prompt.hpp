#pragma once

#include <cstddef>
#include <string>

namespace boyd::plan {

/// The sources of a kernel's system prompt; an empty one is left out.
struct system_prompt_parts {
  std::string instructions; ///< kernel.system_prompt
  std::string identity;     ///< SOUL.md
  std::string goal;         ///< GOAL.md
  std::string skills;       ///< in fixed order
  std::string tools;        ///< in fixed order
  std::string memory;       ///< MEMORY.md
  std::string state;        ///< STATE.md
  std::string time;         ///< RFC 3339, UTC
};

struct system_prompt {
  std::string text;
  /// Length of the part that changes only when a person changes something: the same bytes from one
  /// cycle to the next, for provider prompt caches (docs/planning.md).
  std::size_t stable_bytes = 0;
};

/// Stable parts first: instructions, "## Identity", "## Kernel Objective", "## Skills", "## Tools";
/// then what changes by itself: "## Memory", "## State", "## Time". Parts are trimmed and separated
/// by one blank line.
system_prompt make_system_prompt(const system_prompt_parts& parts);

} // namespace boyd::plan
