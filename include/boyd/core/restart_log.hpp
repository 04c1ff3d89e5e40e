#pragma once

#include "boyd/core/time.hpp"

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// A part, or the worker behind one, is started again or parked: it failed, or was told to.
struct restart_event {
  std::string part; ///< as in `boyd actors ls`; a worker is "store worker"
  std::string cause;
  utc_time at{};
};

/// Where supervisors and keepers leave word of every restart until the root has it written down.
/// Bounded: when nobody can write for long, the oldest go. Threads: any.
class restart_log {
 public:
  static constexpr std::size_t most = 50;

  void note(restart_event event) {
    const std::lock_guard lock(mutex_);
    if (events_.size() >= most)
      events_.erase(events_.begin());
    events_.push_back(std::move(event));
  }

  /// All that are not written down yet, oldest first; the log is empty then.
  std::vector<restart_event> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<restart_event> events_;
};

} // namespace boyd
