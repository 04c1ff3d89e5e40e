#pragma once

#include "boyd/core/limits.hpp"
#include "boyd/core/pulse.hpp"
#include "boyd/core/time.hpp"

#include <cstdint>
#include <string>

namespace boyd {

/// What a look at the pulse comes to.
struct watchdog_verdict {
  /// The scheduler runs and the store's keeper and worker answer: the service manager may be told.
  bool progress = false;
  /// Who has been stuck for too long, for the log: the process must end. Empty: nobody.
  std::string stuck;
};

/// Decides from outside of the actor system whether it still works: a part that spins or blocks
/// cannot be ended alone. Counts what it sees itself instead of time, so that a process that was
/// stopped for a while (SIGSTOP, a suspended machine) is not taken for stuck. CAF-free; one thread.
class watchdog {
 public:
  /// `interval`: between two heartbeats of the root.
  explicit watchdog(milliseconds interval) : interval_(interval) {}

  /// Call at least every `interval`.
  watchdog_verdict look(const pulse_report& report, steady_time now);

 private:
  milliseconds interval_;
  steady_time looked_at_{};
  std::uint64_t round_ = 0;
  milliseconds standing_{0}; ///< how long the round has been seen to be the same
};

} // namespace boyd
