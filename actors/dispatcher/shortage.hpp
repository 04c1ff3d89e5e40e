#pragma once

#include "boyd/core/time.hpp"
#include "boyd/core/verdict.hpp"

#include <string>

namespace boyd {

/// What attempts of an agent could not begin for want of: the system had no descriptor, process or
/// memory left. They are given back and tried again every few seconds, which is no failure and
/// would go on unseen.
class shortage {
 public:
  /// An attempt is over.
  void heard(const run_outcome& end, steady_time now) {
    if (!end.no_room)
      return;
    what_ = end.error;
    at_ = now;
  }

  /// Empty when there is none, and when it has not been met again for longer than the pause takes.
  std::string told(steady_time now) const { return now - at_ > pause ? std::string{} : what_; }

 private:
  /// More than what settlement.cpp waits at most, and a claim.
  static constexpr std::chrono::seconds pause{10};

  std::string what_;
  steady_time at_{};
};

} // namespace boyd
