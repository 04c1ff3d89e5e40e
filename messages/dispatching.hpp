#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/dispatch.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "messages/message.hpp"

#include <memory>
#include <string>
#include <vector>

namespace boyd {

/// The pool tells a dispatcher how much of its work is due.
struct work_due : message {
  int priority = 0;
  std::uint64_t count = 0;
  bool more = false; ///< beside what was told before; else it is all that there is
  /// Another node says so: a claim that is under way may not have seen it.
  bool elsewhere = false;
};

/// An execution worker is through with its attempt.
struct run_finished : message {
  std::string dispatch_id;
  std::int64_t fence = 0;
  run_outcome outcome;
};

enum class cancel_cause : std::uint8_t {
  operator_request,
  shutdown,
  lease_lost,
  overlap,
  hurry, ///< a shutdown that must not take long
};

/// Ends one running attempt.
struct cancel_run : message {
  std::string dispatch_id;
  cancel_cause cause = cancel_cause::operator_request;
  std::int64_t fence = 0; ///< 0: whichever attempt runs; else that one only: for repeats
};

/// The pool tells a dispatcher of its rows that this node holds although their lease has run out:
/// the answer to their claim may have been lost.
struct expired_rows : message {
  std::vector<store::rescue_expired::own_row> rows;
};

/// To the pool: stop claiming; running attempts get `grace`, then they are cancelled and given
/// back.
struct drain_order : message {
  milliseconds grace{0};
};

/// Shutdown in a hurry (a second signal): what still runs is cancelled now.
struct hurry_order : message {};

/// From a dispatcher to the pool: nothing runs here any more.
struct drained : message {
  std::string name;
};

/// A new configuration: agents added, removed, changed.
struct reload_order : message {
  std::shared_ptr<const config::configuration> configuration;
  /// Nobody holds it any more when all whom the order reached have taken it or are gone: who sends
  /// the order on sends this with it.
  std::shared_ptr<const void> heard{};
};

/// All parts work by the new configuration; a kernel in a cycle does when that has ended.
struct reload_reply : message {};

/// Lets the pool claim (the node has answered first and then recovered).
struct start_claiming : message {};

struct dispatcher_status {
  std::string kernel_id;
  std::string agent_id;
  int running = 0;
  int limit = 0;
  std::uint64_t waiting = 0;       ///< due and not claimed, as last heard
  int worker_restarts = 0;         ///< executors that ended without a word
  std::string last_worker_error{}; ///< of the latest of them
  std::string shortage{};          ///< what its work cannot begin for want of; empty: it can
};

struct dispatchers_query : message {};

struct dispatchers_reply : message {
  std::vector<dispatcher_status> dispatchers;
};

} // namespace boyd
