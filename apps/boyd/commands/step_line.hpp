#pragma once

#include "../terminal.hpp"
#include "boyd/ports/clock.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace boyd::app {

/// What is being done, on standard error: on a terminal one line that is rewritten, with the time
/// that it has taken; otherwise a line for each step, and again for one that lasts. One thread at a
/// time.
class step_line {
 public:
  step_line(terminal t, const clock_port& clock) : terminal_(t), clock_(clock) {}
  ~step_line() { clear(); }
  step_line(const step_line&) = delete;
  step_line& operator=(const step_line&) = delete;

  /// The next step begins.
  void begin(const std::string& text);
  /// To be called about once a second while it lasts.
  void tick();
  /// Takes the line away, before something else is written.
  void clear();

 private:
  void draw(const std::string& text);

  terminal terminal_;
  const clock_port& clock_;
  std::string text_;
  steady_time began_{};
  milliseconds told_{0}; ///< how long it had lasted when that was written last
  bool is_drawn_ = false;
};

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
