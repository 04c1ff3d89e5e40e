#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace boyd::app {

/// Calls something every second, on a thread of its own, until it is destroyed. What waits
/// meanwhile is not disturbed.
class ticker {
 public:
  explicit ticker(std::function<void()> tick);
  ~ticker();
  ticker(const ticker&) = delete;
  ticker& operator=(const ticker&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread thread_;
};

} // namespace boyd::app
