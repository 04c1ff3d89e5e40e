#pragma once

#include "chaos/clock/wall_clock.hpp"
#include "support/shared_block.hpp"

#include <chrono>
#include <map>
#include <string>

namespace boyd::test {

/// Sets the wall clock of the programs that are started with its environment, while they run.
/// Usable from any thread.
class clock_hand {
 public:
  /// What a program needs in its environment to have this clock.
  std::map<std::string, std::string> environment() const;
  /// From now on so far ahead of the true time; behind it when negative.
  void set(std::chrono::seconds ahead);
  /// How often a program has read a time that was not true.
  std::uint64_t asked() const { return clock_->asked; }

 private:
  shared_block<wall_clock> clock_;
};

} // namespace boyd::test
