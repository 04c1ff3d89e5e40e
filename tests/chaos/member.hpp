#pragma once

#include "acceptance/harness.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boyd::test {

/// A process that may not outlive something, told apart from a later one with the same number.
struct process_mark {
  pid_t pid = -1;
  std::uint64_t start_ticks = 0;

  bool there() const;
};

/// Everything below `root`, the process host included.
std::vector<process_mark> processes_below(pid_t root);
/// The node's process host; -1 when it has none.
pid_t host_of(pid_t node);

/// One of several nodes: its home, its process if there is one, and what is being done to it.
class member {
 public:
  using clock = std::chrono::steady_clock;
  enum class condition { up, down, stopped };

  explicit member(std::unique_ptr<site> home) : home_(std::move(home)) {}

  const site& home() const { return *home_; }
  condition state() const { return state_; }
  clock::time_point until() const { return until_; }
  node_process& process() { return *process_; }
  /// The name under which the database knows it; empty before its first start.
  std::string node_id() const;

  void start();
  /// kill -9; to be started again at `until`.
  void kill(clock::time_point until);
  /// SIGSTOP, of the process host and its commands too when `whole`; to be continued at `until`.
  void stop(clock::time_point until, bool whole);
  void resume();
  bool kill_host();

  /// Looks whether it still runs. A process that ended by itself is started again, and said here;
  /// nothing when all is as it was told to be.
  std::optional<std::string> look();

  /// Processes of killed nodes that are still there.
  std::vector<pid_t> survivors() const;
  /// How often a start had to wait for the last child of the killed node.
  int waited_for_lock() const { return waited_for_lock_; }

 private:
  std::unique_ptr<site> home_;
  std::unique_ptr<node_process> process_;
  condition state_ = condition::down;
  clock::time_point until_{};
  std::vector<process_mark> left_behind_;
  std::vector<pid_t> frozen_;
  int waited_for_lock_ = 0;
};

} // namespace boyd::test
