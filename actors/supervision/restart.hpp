#pragma once

#include "boyd/core/limits.hpp"
#include "boyd/core/time.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>

namespace boyd {

/// At most `restarts` failures within `period`; one more exhausts.
struct restart_intensity {
  int restarts = limits::restart_intensity;
  milliseconds period = limits::restart_period;
};

/// Of the parts without which nothing goes, and of their workers.
inline constexpr restart_intensity vital_intensity{limits::root_restart_intensity,
                                                   limits::root_restart_period};

/// Adds a failure; true when that is one too many.
inline bool spend_restart(std::deque<steady_time>& failures, steady_time now,
                          const restart_intensity& allowed) {
  failures.push_back(now);
  while (now - failures.front() > allowed.period)
    failures.pop_front();
  return failures.size() > static_cast<std::size_t>(allowed.restarts);
}

/// How long to wait before the next restart: at once for the first failure, then 100 ms doubling to
/// 30 s with jitter (docs/architecture.md). A quiet `restart_period` without failure forgets the
/// past. CAF-free.
class restart_backoff {
 public:
  /// A failure at `now`; `unit` is uniform in [0, 1). Returns the delay before the restart.
  milliseconds failed(steady_time now, double unit) {
    if (now - last_failure_ > limits::restart_period)
      streak_ = 0;
    last_failure_ = now;
    if (streak_++ == 0)
      return milliseconds{0};
    auto delay = limits::backoff_base;
    for (int i = 2; i < streak_ && delay < limits::backoff_cap; ++i)
      delay *= 2;
    delay = std::min(delay, limits::backoff_cap);
    // Between half and the whole of it, so that parts that failed together do not return together.
    return milliseconds{
        static_cast<milliseconds::rep>(static_cast<double>(delay.count()) * (0.5 + unit / 2))};
  }

  /// Work was done at `now`: after a quiet period the next failure counts as a first one.
  void succeeded(steady_time now) {
    if (now - last_failure_ > limits::restart_period)
      streak_ = 0;
  }

 private:
  steady_time last_failure_{};
  int streak_ = 0;
};

} // namespace boyd
