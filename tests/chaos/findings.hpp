#pragma once

#include "lab.hpp"

#include <string>
#include <vector>

namespace boyd::test {

/// What the rows, the ledger of what ran, the effects and the homes say against each other and
/// against what was acknowledged; empty when nothing was lost, doubled or taken from a stale owner.
struct chaos_findings {
  std::vector<std::string> wrong;
  /// Those of `wrong` that no more time could have mended: they count also for nodes not at rest.
  std::vector<std::string> for_good;
  std::size_t dispatches = 0;
  std::size_t given_up = 0; ///< rows that are failed because their nodes were lost too often
  std::size_t runs = 0;
  std::size_t effects = 0;
  std::size_t absorbed = 0; ///< runs that found their effect there
  std::size_t edges = 0;    ///< of the knowledge graphs, that the rows say must be there
  std::size_t rescues = 0;
  std::size_t refused = 0;         ///< late results that were refused, by the logs
  std::vector<double> elsewhere_s; ///< from the loss of a node to its work's next start, sorted
  /// Of those that took a second longer than the lease: what happened from the lease's end on.
  std::vector<std::string> late;
  std::vector<double> at_home_s; ///< the same, when the node itself came back at once
};

/// The nodes are at rest.
chaos_findings judge(chaos_lab& lab);

/// The value that this share of the sorted values does not exceed; 0 without values.
double percentile(const std::vector<double>& sorted, double share);

} // namespace boyd::test
