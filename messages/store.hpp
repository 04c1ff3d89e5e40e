#pragma once

#include "boyd/ports/dispatch_store.hpp"
#include "messages/message.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace boyd {

/// The replies to a store_request, one per operation. Who asked fetches each by the ticket that
/// store_request::add gave; only the store's own parts see them in order
/// (actors/store/replies.hpp).
class store_reply {
 public:
  store_reply() = default;
  explicit store_reply(std::vector<store::any_reply> values, bool asked_twice = false)
      : repeated(asked_twice), values_(std::move(values)) {}

  /// The error of the first operation that has one; null when all were carried out. Of replies that
  /// were not fetched yet.
  const error* failure() const {
    for (const auto& any : values_)
      if (const auto* e = std::get_if<error>(&any))
        return e;
    return nullptr;
  }

  /// It was asked for twice, and the first time may have been carried out: a claim then told of
  /// other rows, which are ours as well.
  bool repeated = false;

 private:
  template <class Operation>
  friend class store_ticket;
  friend struct store_replies;

  std::vector<store::any_reply> values_;
};

/// Fetches the reply of one operation from the answer to the request that it was added to.
template <class Operation>
class store_ticket {
 public:
  using reply = typename Operation::reply;

  /// The reply, which is moved out, or the operation's error.
  result<reply> of(store_reply& answer) const {
    if (place_ >= answer.values_.size())
      return fail(errc::bug, "the store answered fewer operations than were asked");
    auto& any = answer.values_[place_];
    if (auto* e = std::get_if<error>(&any))
      return fail(std::move(*e));
    if (auto* r = std::get_if<reply>(&any))
      return std::move(*r);
    return fail(errc::bug, "the store answered with another operation's reply");
  }

  /// The same; the error of the whole request is the operation's, too.
  result<reply> of(result<store_reply>& answer) const {
    if (!answer)
      return fail(answer.error());
    return of(*answer);
  }

 private:
  friend struct store_request;
  explicit store_ticket(std::size_t place) : place_(place) {}

  std::size_t place_;
};

/// Operations for one transaction; they may share it with other requests (group commit).
struct store_request : message {
  std::vector<store::operation> operations;
  request_end until = request_end::max();

  /// Adds an operation; the ticket fetches its reply.
  template <class Operation>
  store_ticket<Operation> add(Operation op) {
    operations.emplace_back(std::move(op));
    return store_ticket<Operation>(operations.size() - 1);
  }
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
