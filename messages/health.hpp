#pragma once

#include "boyd/core/pulse.hpp"
#include "boyd/core/time.hpp"
#include "messages/message.hpp"

#include <cstdint>
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
  std::string notice;            ///< what a person should know although the part is well
};

/// Asks any part for its health.
struct health_query : message {};

/// One line of the supervision tree in `boyd status`.
struct child_status {
  std::string name;  ///< e.g. "store", "dispatcher:default/daily-report"
  std::string state; ///< running | silent | stopping | restarting | parked | stopped
  int restarts = 0;  ///< for failures of its own
  std::string last_error;
  int depth = 0;      ///< below the root supervisor
  std::string reason; ///< why it does not simply run; empty when it does
  int renewals = 0;   ///< started anew without a failure: with a part it holds, or as ordered
};

/// Asks a supervisor for its subtree, itself first.
struct tree_query : message {};

struct tree_reply : message {
  std::vector<child_status> children;
};

/// A supervisor asks its child whether it still takes messages; sent with high priority.
struct ping : message {};

/// The answer. Every actor gives it (actors/support/handlers.hpp); keepers and supervisors say
/// more.
struct pong : message {
  milliseconds worker_busy{0};     ///< how long a keeper's worker has been at one batch
  std::vector<silent_part> silent; ///< a supervisor's children that do not answer it
};

enum class actor_verb : std::uint8_t {
  restart, ///< stop it and start it anew; those that hold its handle with it
  unpark,  ///< start a parked one again, its failures forgotten
};

/// An operator's order about one part of the tree, by the name that the tree gives it.
struct actor_order : message {
  actor_verb verb = actor_verb::restart;
  std::string name;
};

struct actor_order_reply : message {
  std::string name;
  std::string was; ///< its state before
};

/// Ordered stop: the part finishes or gives back what it holds, then quits. No answer: the sender
/// watches it with a monitor and bounds the wait.
struct stop_order : message {};

} // namespace boyd
