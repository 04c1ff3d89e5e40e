#pragma once

#include "boyd/core/time.hpp"

#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace boyd {

/// What a worker does that is known to take long, said by itself, so that nobody takes it for
/// stuck. Threads: any.
class long_work {
 public:
  struct report {
    std::string what; ///< "migrates the database: …"
    steady_time since{};
  };

  void begin(std::string what, steady_time now) {
    const std::lock_guard lock(mutex_);
    report_ = report{std::move(what), now};
  }

  void end() {
    const std::lock_guard lock(mutex_);
    report_.reset();
  }

  /// Nothing: its work takes its usual time.
  std::optional<report> read() const {
    const std::lock_guard lock(mutex_);
    return report_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<report> report_;
};

} // namespace boyd
