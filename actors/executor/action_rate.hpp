#pragma once

#include "boyd/core/time.hpp"

#include <cstddef>
#include <deque>
#include <mutex>

namespace boyd {

/// How many actions an agent has taken in the last minute, in all of its attempts on this node
/// together (policy.actions_per_minute). Threads: any.
class action_rate {
 public:
  /// Counts one more unless there were `most` already; 0: no limit, and nothing is counted.
  bool admits(int most, steady_time now) {
    if (most == 0)
      return true;
    const std::lock_guard lock(mutex_);
    while (!recent_.empty() && now - recent_.front() >= 1min)
      recent_.pop_front();
    if (recent_.size() >= static_cast<std::size_t>(most))
      return false;
    recent_.push_back(now);
    return true;
  }

 private:
  std::mutex mutex_;
  std::deque<steady_time> recent_; ///< at most as many as the limit
};

} // namespace boyd
