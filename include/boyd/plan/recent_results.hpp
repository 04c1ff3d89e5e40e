#pragma once

#include "boyd/core/dispatch.hpp"
#include "boyd/core/limits.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace boyd::plan {

/// Renders {RECENT_RESULTS} from rows (any order; those that are not final are left out), newest
/// end first, at most `limit`, one line each:
///
///     - 2026-02-13T10:00:00Z agent-a[done]: wrote the briefing
///     - 2026-02-13T09:50:00Z agent-b[failed, transient, attempt 3/3]: timed out after 10m
///
/// In brackets: status; the failure class when there is one; "verification failed" when a
/// requirement did not hold; the attempt when there was more than one. Then the summary, or the
/// error when there is no summary or the row failed with one; a single line of at most
/// limits::history_cell_characters. Without rows "(none yet)". No line break at the end.
std::string render_recent_results(const std::vector<dispatch>& rows,
                                  std::size_t limit = limits::recent_results);

} // namespace boyd::plan
