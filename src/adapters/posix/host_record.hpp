#pragma once

#include "boyd/ports/process_runner.hpp"

#include <mutex>
#include <string>
#include <utility>

namespace boyd::adapters {

/// How the process host is doing: written by the runner's thread, read by any.
class host_record {
 public:
  process_host_status read() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

  /// A new one was started.
  void started() {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(status_.alive, true))
      ++status_.restarts;
    status_.problem.clear();
  }

  void died(std::string why) {
    const std::lock_guard lock(mutex_);
    status_.alive = false;
    status_.problem = status_.last_error = std::move(why);
  }

  /// `owed`: pings without an answer. One may be under way.
  void owes(int owed) {
    if (owed == owed_)
      return;
    owed_ = owed;
    const std::lock_guard lock(mutex_);
    if (!status_.alive)
      return;
    status_.problem =
        owed < 2 ? ""
                 : "has not answered " + std::to_string(owed) + " pings and will be killed soon";
  }

 private:
  mutable std::mutex mutex_;
  process_host_status status_{true, true, 0, {}, {}};
  int owed_ = 0; ///< the runner's thread only
};

} // namespace boyd::adapters
