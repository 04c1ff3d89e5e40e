#pragma once

#include "../signals.hpp"
#include "boyd/core/result.hpp"

#include <string>
#include <vector>

namespace boyd::app {

/// What a document went through in a scratch home, whose clock was set forth a day between cycles.
struct learning_walk_report {
  std::string scratch; ///< removed when all is well
  int days = 0;
  std::vector<std::string> story; ///< "day 3: …"
  std::string lineage;            ///< what `boyd kg lineage` says at the end
  std::vector<std::string> problems;
  bool interrupted = false;
};

/// Walks config/examples/learning.yaml through 30 days below `directory`, with this program as
/// child processes: context, bank, candidate, approved skill, degraded, rolled back. Blocks.
/// Errors: the scratch home cannot be made.
result<learning_walk_report> walk_through_learning(const std::string& directory,
                                                   signal_watch& signals);

} // namespace boyd::app
