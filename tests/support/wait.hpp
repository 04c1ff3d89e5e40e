#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>

namespace boyd::test {

/// How long a test waits for an event that must come; long, because it only ends failing tests.
inline constexpr std::chrono::milliseconds patience{20'000};

/// How often a condition that nobody announces is looked at.
inline constexpr std::chrono::milliseconds look_again{2};

/// Looks at `condition` until it holds or `limit` has passed; returns what it saw last. Prefer
/// `event_latch` where the event can announce itself.
inline bool wait_until(const std::function<bool()>& condition,
                       std::chrono::milliseconds limit = patience) {
  std::mutex mutex;
  std::condition_variable never_notified;
  std::unique_lock lock(mutex);
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) {
      return condition();
    }
    never_notified.wait_for(lock, look_again);
  }
  return true;
}

/// Counts events and lets a test wait for them. Threads: any.
class event_latch {
 public:
  /// One more event.
  void signal() {
    // Under the lock: whoever waited may end the latch as soon as it has it.
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }

  /// Waits until at least `events` have been signalled; false when `limit` passes first.
  bool wait(std::size_t events = 1, std::chrono::milliseconds limit = patience) {
    std::unique_lock lock(mutex_);
    const auto end = std::chrono::steady_clock::now() + limit;
    return changed_.wait_until(lock, end, [&] { return count_ >= events; });
  }

  /// Events so far.
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_ = 0;
};

} // namespace boyd::test
