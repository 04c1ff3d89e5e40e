#pragma once

#include "actors/node/watchdog.hpp"
#include "adapters/posix/service_manager.hpp"
#include "boyd/core/time.hpp"
#include "live_node.hpp"

#include <chrono>
#include <string>

namespace boyd::app {

/// Watches the node from the process's own thread and tells the service manager how it is. Ends the
/// process when a part of it has been stuck for too long. One thread.
class node_guard {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Both outlive it. `interval`: of the node's heartbeat.
  node_guard(const live_node& node, const adapters::service_manager& manager,
             milliseconds interval);

  /// Looks, when it is time to, and feeds the service manager's watchdog. Returns why the node
  /// gives up by itself; empty: it does not. Does not return when a part is stuck.
  std::string look();

  /// When to call `look` again.
  time_point next_look() const noexcept { return next_; }

  void say_ready();
  void say_reloading();
  /// The end may take so long by the node's own deadline; the manager is told some seconds more.
  void say_stopping(milliseconds limit);

 private:
  void say(const std::string& what) const;
  void say_status(const pulse_report& report);

  const live_node& node_;
  const adapters::service_manager& manager_;
  milliseconds interval_;
  watchdog watchdog_;
  time_point next_;
  std::string status_;
  bool stopping_ = false;
};

} // namespace boyd::app
