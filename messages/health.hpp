#pragma once

#include "boyd/core/time.hpp"
#include "messages/message.hpp"

#include <optional>
#include <string>
#include <vector>

namespace boyd {

/// How a part is doing, as it says itself.
struct part_health : message {
  bool ok = true;
  std::string reason;            ///< why it is degraded; empty when ok
  std::optional<utc_time> since; ///< degraded since
  int worker_restarts = 0;       ///< of the disposable worker behind a keeper
  std::string last_error;        ///< the newest problem, also after recovery
};

/// Asks any part for its health.
struct health_query : message {};

/// One line of the supervision tree in `boyd status`.
struct child_status {
  std::string name;  ///< e.g. "store", "dispatcher:default/daily-report"
  std::string state; ///< running | degraded | stopping | restarting | stopped
  int restarts = 0;
  std::string last_error;
  int depth = 0; ///< below the root supervisor
};

/// Asks a supervisor for its subtree, itself first.
struct tree_query : message {};

struct tree_reply : message {
  std::vector<child_status> children;
};

/// Ordered stop: the part finishes or gives back what it holds, then quits. No answer: the sender
/// watches it with a monitor and bounds the wait.
struct stop_order : message {};

} // namespace boyd
