#pragma once

#include "terminal.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace boyd::app {

/// One line on standard error, rewritten every second, that says what is waited for and for how
/// long. It comes after the first second and goes with this object. Threads: any.
class live_line {
 public:
  using time = std::chrono::steady_clock::time_point;
  /// What is written where no line can be rewritten.
  enum class elsewhere : std::uint8_t {
    nothing,
    steps, ///< a line for each `begin`, and again for one that lasts
  };

  /// `since`: the wait's begin, for people.
  live_line(const terminal& t, std::string what, time since = std::chrono::steady_clock::now(),
            elsewhere other = elsewhere::nothing);
  ~live_line();
  live_line(const live_line&) = delete;
  live_line& operator=(const live_line&) = delete;

  /// From now on this is waited for; empty: nothing is.
  void tell(std::string what);
  /// The same, and the time counts from now on.
  void begin(std::string what);
  /// `write` writes whole lines to the terminal while the line is not there.
  void beside(const std::function<void()>& write);

 private:
  void run();
  void change(std::string what);
  void draw();
  void repeat();
  void erase();

  const terminal terminal_;
  const elsewhere other_;
  time since_;
  time told_{}; ///< when the step was written last, as a line that stays
  std::mutex mutex_;
  std::condition_variable ended_;
  std::string what_;
  bool is_late_ = false; ///< the first second is over
  bool is_shown_ = false;
  bool ends_ = false;
  std::thread thread_;
};

/// What `wait` returns, with a line on the terminal of standard error meanwhile.
template <class Wait>
auto with_live_line(const arguments& args, std::string what, const Wait& wait) {
  const live_line line(terminal_of_stderr(args), std::move(what));
  return wait();
}

} // namespace boyd::app
