#pragma once

#include "boyd/core/time.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// A part that lives but does not answer its supervisor, or whose worker does not come back.
struct silent_part {
  std::string name;
  int missed = 0;              ///< pings in a row without an answer; 0: it is the worker
  milliseconds worker_busy{0}; ///< how long the worker has been at one batch
};

/// What the root supervisor says of its tree at every heartbeat.
struct pulse_report {
  std::uint64_t round = 0; ///< grows with every heartbeat: the scheduler runs
  std::vector<silent_part> silent;
  std::vector<std::string> parked;
  std::string giving_up; ///< why the node ends by itself; empty: it does not
};

/// Where the root leaves its report for whoever watches from outside of the actor system, without a
/// message: a scheduler that stands still could not answer one. Threads: any.
class pulse {
 public:
  void set(pulse_report report) {
    const std::lock_guard lock(mutex_);
    report_ = std::move(report);
  }

  pulse_report read() const {
    const std::lock_guard lock(mutex_);
    return report_;
  }

 private:
  mutable std::mutex mutex_;
  pulse_report report_;
};

} // namespace boyd
