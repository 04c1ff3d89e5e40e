#pragma once

#include "boyd/core/cycle.hpp"
#include "boyd/core/limits.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::state {

inline constexpr std::string_view block_start = "<!-- KERNEL_RUNTIME:START -->";
inline constexpr std::string_view block_end = "<!-- KERNEL_RUNTIME:END -->";

/// A cycle's error is cut at this many characters in the block.
inline constexpr std::size_t error_characters = 1000;

/// What the runtime block of STATE.md shows (docs/state-and-history.md).
struct runtime_block {
  utc_time updated_at{};
  cycle_record latest;
  /// Newest first; normally begins with `latest`.
  std::vector<cycle_record> history;

  bool operator==(const runtime_block&) const = default;
};

/// The block from its START marker to the line break after its END marker, with "\n" line ends, in
/// docs/state-and-history.md's format; at most `max_history` rows.
///
/// Values are escaped with a backslash so that each stays on its line and in its cell: `\\`, `\|`,
/// `\n`, `\r`, `\t`, `\xHH` (other control characters), `\;` (in the summary cell), `<\!--`, `\s`
/// (a space at either end), `\(none)` (the literal). Empty values read `(none)`. Cells are cut at
/// limits::history_cell_characters *after* escaping, never inside a character or an escape; the
/// agents' summaries on the `latest_agent_summary` line at limits::summary_characters each.
/// Times have seconds resolution. Invalid UTF-8 becomes U+FFFD.
std::string render_runtime_block(const runtime_block& block,
                                 std::size_t max_history = limits::max_cycle_history);

/// Reads the block of a STATE.md; nothing when there is no complete pair of markers (document.hpp
/// says what a marker is). Of several blocks the one updated last counts. Lenient: unknown lines
/// and malformed rows are skipped, malformed values read as empty. A block without `###
/// cycle_history`, or with the old keys (`cycle_id`, `status`, …), has an empty history; old keys
/// are read.
std::optional<runtime_block> parse_runtime_block(std::string_view file_text);

/// What a rendering carries of `block`: parse(render(x, n)) == carried_part(x, n) whenever no value
/// is cut. Carried of `latest`: cycle_id, status, counts, failed_agents, agents, duration_ms,
/// error. Carried of a history row: cycle_id, status, counts, agents without their status,
/// finished_at. Everything else is default-valued; times are cut to seconds.
runtime_block carried_part(const runtime_block& block,
                           std::size_t max_history = limits::max_cycle_history);

} // namespace boyd::state
