#pragma once

#include "boyd/core/limits.hpp"
#include "messages/interfaces.hpp"

#include <caf/error.hpp>
#include <caf/sec.hpp>
#include <caf/typed_response_promise.hpp>

#include <utility>
#include <variant>

namespace boyd {

/// Translates CAF's own errors: no answer in time, or nobody there.
inline error from_caf(const caf::error& e, const char* who) {
  if (e == caf::sec::request_timeout)
    return {errc::timed_out, "no answer in time", who, {}};
  return {errc::actor_down, "the part is being restarted", who, "try again"};
}

/// Sends a request with a finite time-out; `done(result<T>)` is called exactly once, unless the
/// asker ends first. The only way in which actors ask each other.
template <class T, class Self, class Handle, class Message, class Done>
void ask(Self* self, const Handle& to, Message&& what, Done done,
         milliseconds limit = limits::request_timeout) {
  self->request(to, limit, std::forward<Message>(what))
      .then([done](result<T>& r) mutable { done(std::move(r)); },
            [done, to](caf::error& e) mutable {
              done(result<T>(fail(from_caf(e, to ? "actor" : "nobody"))));
            });
}

/// Answers a request that was held back; a promise answers only once.
template <class T>
void answer(caf::typed_response_promise<result<T>> promise, result<T> reply) {
  promise.deliver(std::move(reply));
}

/// The reply of one store operation out of a batch's, or its error.
template <class Operation>
result<typename Operation::reply> reply_of(store::any_reply& any) {
  if (auto* e = std::get_if<error>(&any))
    return fail(std::move(*e));
  if (auto* r = std::get_if<typename Operation::reply>(&any))
    return std::move(*r);
  return fail(errc::bug, "the store answered with another operation's reply");
}

/// Asks the store for one operation; `done(result<Operation::reply>)`.
template <class Operation, class Self, class Done>
void ask_store(Self* self, const store_actor& to, Operation op, Done done,
               milliseconds limit = limits::request_timeout) {
  store_request request;
  request.operations.emplace_back(std::move(op));
  ask<store_reply>(
      self, to, std::move(request),
      [done](result<store_reply> r) mutable {
        if (!r)
          done(result<typename Operation::reply>(fail(std::move(r.error()))));
        else if (r->values.empty())
          done(result<typename Operation::reply>(fail(errc::bug, "the store answered nothing")));
        else
          done(reply_of<Operation>(r->values.front()));
      },
      limit);
}

} // namespace boyd
