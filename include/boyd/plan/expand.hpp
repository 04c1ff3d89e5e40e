#pragma once

#include "boyd/core/limits.hpp"
#include "boyd/core/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::plan {

/// What the placeholders of docs/planning.md stand for at one plan.
struct placeholder_values {
  std::string state;          ///< {STATE}: STATE.md
  std::string goal;           ///< {GOAL}: GOAL.md
  std::string recent_results; ///< {RECENT_RESULTS}: render_recent_results
  std::string time;           ///< {TIME}: RFC 3339, UTC; the planner fills it in when empty
  std::string memory;         ///< {MEMORY}: MEMORY.md
  std::string senses;         ///< {SENSES}: output of the senses
  /// {CONTEXT} and {SKILLS}: left empty, as an attempt fills them in (exec/context_level.hpp).
  std::string context{};
  std::string skills{};
};

/// Where a placeholder's value stands in the expanded text.
struct section {
  std::string_view name; ///< without its braces, e.g. STATE
  std::size_t at = 0;
  std::size_t size = 0;

  bool operator==(const section&) const = default;
};

/// Replaces the placeholders of `text` in one pass: what arrives through one is never looked at
/// again. Unknown {WORDS} and lone braces stay as they are; there is no escape. Error
/// `limit_exceeded` when the outcome would be longer than `max_bytes`. `sections`, when asked for,
/// gets the places of what was filled in, in order, but for empty values other than {CONTEXT} and
/// {SKILLS}.
result<std::string> expand(std::string_view text, const placeholder_values& values,
                           std::size_t max_bytes = limits::prompt_bytes,
                           std::vector<section>* sections = nullptr);

} // namespace boyd::plan
