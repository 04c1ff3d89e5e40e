#pragma once

#include "boyd/ports/dispatch_store.hpp"
#include "messages/message.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace boyd {

/// Operations for one transaction; they may share it with other requests (group commit).
struct store_request : message {
  std::vector<store::operation> operations;
  request_end until = request_end::max();
};

/// One reply per operation, in order. A type of its own keeps the names of actors readable.
struct store_reply {
  std::vector<store::any_reply> values;
  /// It was asked for twice, and the first time may have been carried out: a claim then told of
  /// other rows, which are ours as well.
  bool repeated = false;
};

/// Work that has just been enqueued for one agent, due at once.
using queued_work = store::due_agents::row;

/// Work may have become due: something was enqueued, retried or released, here or on another node.
struct queue_changed : message {
  /// All that has changed, when that is known and little: who hears it need not ask the store.
  /// (What was enqueued before is counted once more.) Empty: the store has to be asked.
  std::vector<queued_work> queued;
  /// Another node says so: what this one asks or claims meanwhile may be older, or newer.
  bool elsewhere = false;
};

/// These dispatches have reached a new state here; rows say which.
struct dispatches_settled : message {
  std::vector<std::string> dispatch_ids;
  /// Agents of whom the database refused a claim: what waits for them does not begin.
  struct refused_claim {
    std::string kernel_id;
    std::string agent_id;
    error why;
  };
  std::vector<refused_claim> refused{};
};

/// Another node has changed the queue (LISTEN/NOTIFY): sent by the wake-up source's thread.
struct external_wakeup : message {
  std::vector<queued_work> queued; ///< as queue_changed's
};

} // namespace boyd
