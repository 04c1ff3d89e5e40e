#pragma once

#include "../signals.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace boyd::app {

/// A trial of this program on somebody's own disk: cycles in a scratch home and a node that works a
/// batch of dispatches off, killed at random moments, started again, and judged by what was
/// acknowledged.
struct crash_trial {
  std::string directory; ///< where the scratch home is made; on the disk in question
  seconds time{20};
};

struct crash_trial_report {
  std::string scratch;            ///< removed when all is well
  std::uint64_t kills = 0;        ///< of a cycle
  std::uint64_t batch_kills = 0;  ///< of a node at its dispatches
  std::uint64_t whole_cycles = 0; ///< ended by themselves, and well
  std::uint64_t acknowledged = 0; ///< dispatches whose end was told
  std::uint64_t effects = 0;      ///< what agents did outside the home
  std::uint64_t examinations = 0; ///< of database, ledger and repository
  bool git_was_there = false;
  bool interrupted = false;
  milliseconds spent{0};
  std::vector<std::string> violations; ///< empty: nothing was lost, nothing done twice
};

/// Runs it; blocks. Errors: the scratch home cannot be made or its first cycle is not good.
result<crash_trial_report> run_crash_trial(const crash_trial& trial, signal_watch& signals);

} // namespace boyd::app
