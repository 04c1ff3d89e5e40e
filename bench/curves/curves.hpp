#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace boyd::bench {

struct curve_settings {
  std::string store;     ///< "sqlite", or a server's postgres:// URI
  std::string directory; ///< where homes are made
  std::size_t most = 0;  ///< the last point
  std::size_t window = 0;
  std::size_t max_concurrent = 1024;
};

/// One point: named values, in the order of columns.
struct curve_point {
  std::vector<std::pair<std::string, double>> values;
};

using curve_points = std::vector<curve_point>;

/// What a dispatch costs while 10³, 10⁴, … `most` finished rows lie in the same table: `window`
/// dispatches enqueued and worked off at once, and single ones from enqueueing to settlement.
result<curve_points> cost_by_finished_rows(const curve_settings& s);

/// What draining costs per row of a backlog of 10³, 10⁴, … `most` rows, each in a fresh store.
result<curve_points> cost_by_backlog(const curve_settings& s);

/// What a cycle with its two commits costs after 10, 100, … `most` commits of the same repository:
/// `window` cycles each.
result<curve_points> cost_by_commits(const curve_settings& s);

/// The resident memory of this process with `most` scripted runs under way that all wait.
result<curve_points> memory_of_waiting_runs(const curve_settings& s);

} // namespace boyd::bench
