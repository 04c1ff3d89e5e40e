#pragma once

#include "boyd/core/limits.hpp"
#include "boyd/faults/points.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_clock.hpp>
#include <caf/actor_system.hpp>
#include <caf/error.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/sec.hpp>
#include <caf/typed_response_promise.hpp>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace boyd {

/// Translates CAF's own errors: no answer in time, or nobody there.
inline error from_caf(const caf::error& e, const char* who) {
  if (e == caf::sec::request_timeout)
    return {errc::timed_out, "no answer in time", who, {}};
  return {errc::actor_down, "the part is not running", who,
          "try again; check whether it is parked: boyd actors ls"};
}

/// The fault point on the way to a part; nothing on the way to a helper of the asker's own.
template <class Handle>
constexpr std::optional<faults::point> request_point() {
  if constexpr (std::is_same_v<Handle, store_actor>)
    return faults::point("store.request");
  else if constexpr (std::is_same_v<Handle, state_writer_actor>)
    return faults::point("state_writer.request");
  else if constexpr (std::is_same_v<Handle, git_committer_actor>)
    return faults::point("git_committer.request");
  else if constexpr (std::is_same_v<Handle, graph_recorder_actor>)
    return faults::point("graph_recorder.request");
  else if constexpr (std::is_same_v<Handle, knowledge_actor>)
    return faults::point("knowledge.request");
  else if constexpr (std::is_same_v<Handle, workspace_actor>)
    return faults::point("workspace.request");
  else if constexpr (std::is_same_v<Handle, librarian_actor>)
    return faults::point("librarian.request");
  else if constexpr (std::is_same_v<Handle, planner_actor>)
    return faults::point("planner.request");
  else if constexpr (std::is_same_v<Handle, kernel_actor>)
    return faults::point("kernel.request");
  else if constexpr (std::is_same_v<Handle, permits_actor>)
    return faults::point("permits.request");
  else if constexpr (std::is_same_v<Handle, dispatcher_actor>)
    return faults::point("dispatcher.request");
  else if constexpr (std::is_same_v<Handle, dispatcher_pool_actor>)
    return faults::point("dispatchers.request");
  else if constexpr (std::is_same_v<Handle, governor_actor>)
    return faults::point("governor.request");
  else if constexpr (std::is_same_v<Handle, mcp_actor>)
    return faults::point("mcp.request");
  else if constexpr (std::is_same_v<Handle, approvals_actor>)
    return faults::point("approvals.request");
  else if constexpr (std::is_same_v<Handle, tree_source_actor>)
    return faults::point("root.request");
  else
    return std::nullopt;
}

/// A request on which the faults at the point have their effect: it comes later, or never, or finds
/// nobody, as when the part dies. A crash ends the asker.
template <class Self, class Handle, class Message>
auto faulty_request(Self* self, const Handle& to, Message&& what, milliseconds limit,
                    faults::point at) {
  using response = decltype(self->request(to, limit, std::forward<Message>(what)));
  const auto met = faults::meet(at);
  if (!met)
    return self->request(Handle{}, limit, std::forward<Message>(what));
  if (!met->what)
    return self->request(to, limit, std::forward<Message>(what));
  const auto id = self->new_request_id(caf::message_priority::normal);
  if (!met->drops()) {
    auto& clock = self->system().clock();
    clock.schedule_message(
        clock.now() + met->delay, caf::actor_cast<caf::strong_actor_ptr>(to),
        caf::make_mailbox_element(self->ctrl(), id, {}, std::forward<Message>(what)));
  }
  self->request_response_timeout(caf::duration{limit}, id);
  return response(id.response_id(), self);
}

/// `who`: was asked, for the error.
template <class T, class Response, class Done>
void hear(Response sent, Done done, const char* who) {
  sent.then([done](result<T>& r) mutable { done(std::move(r)); },
            [done, who](caf::error& e) mutable { done(result<T>(fail(from_caf(e, who)))); });
}

/// As `ask`, but without the fault point on the way: a crash there ends the asker, and the root's
/// end is the node's.
template <class T, class Self, class Handle, class Message, class Done>
void ask_past_faults(Self* self, const Handle& to, Message&& what, Done done,
                     milliseconds limit = limits::request_timeout) {
  if constexpr (requires { what.until; })
    what.until = self->clock().now() + limit;
  hear<T>(self->request(to, limit, std::forward<Message>(what)), std::move(done),
          to ? "actor" : "nobody");
}

/// Sends a request with a finite time-out; `done(result<T>)` is called exactly once, unless the
/// asker ends first. The only way in which actors ask each other.
template <class T, class Self, class Handle, class Message, class Done>
void ask(Self* self, const Handle& to, Message&& what, Done done,
         milliseconds limit = limits::request_timeout) {
  if constexpr (requires { what.until; })
    what.until = self->clock().now() + limit;
  constexpr auto at = request_point<Handle>();
  auto sent = [&] {
    if constexpr (at.has_value())
      if (faults::any_armed())
        return faulty_request(self, to, std::forward<Message>(what), limit, *at);
    return self->request(to, limit, std::forward<Message>(what));
  }();
  hear<T>(std::move(sent), std::move(done), to ? "actor" : "nobody");
}

/// Answers a request that was held back; a promise answers only once.
template <class T>
void answer(caf::typed_response_promise<result<T>> promise, result<T> reply) {
  promise.deliver(std::move(reply));
}

/// Held while a handler does what may end its actor before anybody else has the promise: then who
/// asked is told, and need not wait for its limit.
template <class T>
class answers_if_it_throws {
 public:
  answers_if_it_throws(caf::typed_response_promise<result<T>> promise, error why)
      : promise_(std::move(promise)), why_(std::move(why)) {}
  ~answers_if_it_throws() {
    if (std::uncaught_exceptions() > before_)
      promise_.deliver(result<T>(fail(std::move(why_))));
  }
  answers_if_it_throws(const answers_if_it_throws&) = delete;
  answers_if_it_throws& operator=(const answers_if_it_throws&) = delete;

 private:
  caf::typed_response_promise<result<T>> promise_;
  error why_;
  int before_ = std::uncaught_exceptions();
};

/// Asks the store for one operation; `done(result<Operation::reply>)`.
template <class Operation, class Self, class Done>
void ask_store(Self* self, const store_actor& to, Operation op, Done done,
               milliseconds limit = limits::request_timeout) {
  store_request request;
  const auto ticket = request.add(std::move(op));
  ask<store_reply>(
      self, to, std::move(request),
      [ticket, done](result<store_reply> r) mutable { done(ticket.of(r)); }, limit);
}

} // namespace boyd
