#pragma once

#include "../signals.hpp"
#include "boyd/core/result.hpp"
#include "boyd/improve/performer.hpp"
#include "boyd/ports/process_runner.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace boyd::app {

/// Runs one program at a time and waits for its end, or for a signal to this process, which ends
/// the program, too. Not for a node's threads.
class waiting_runner {
 public:
  static result<std::unique_ptr<waiting_runner>> make();

  /// Of all programs from now on.
  void set_environment(std::vector<std::pair<std::string, std::string>> environment) {
    environment_ = std::move(environment);
  }

  improve::command_end run(const improve::command_order& order, signal_watch& signals);

 private:
  explicit waiting_runner(std::shared_ptr<process_runner> runner) : runner_(std::move(runner)) {}

  std::shared_ptr<process_runner> runner_;
  std::vector<std::pair<std::string, std::string>> environment_;
};

} // namespace boyd::app
