#pragma once

#include "boyd/ports/dispatch_store.hpp"
#include "messages/message.hpp"

#include <string>
#include <vector>

namespace boyd {

/// Operations for one transaction; they may share it with other requests (group commit).
struct store_request : message {
  std::vector<store::operation> operations;
};

/// One reply per operation, in order. A type of its own keeps the names of actors readable.
struct store_reply {
  std::vector<store::any_reply> values;
};

/// Work may have become due: something was enqueued, retried or released, here or on another node.
struct queue_changed : message {};

/// These dispatches have reached a new state here; rows say which.
struct dispatches_settled : message {
  std::vector<std::string> dispatch_ids;
};

/// Another node has changed the queue (LISTEN/NOTIFY): sent by the wake-up source's thread.
struct external_wakeup : message {};

} // namespace boyd
