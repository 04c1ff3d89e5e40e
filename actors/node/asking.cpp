#include "actors/node/parts.hpp"
#include "actors/support/ask.hpp"

#include <algorithm>
#include <utility>

namespace boyd::node_impl {

namespace {

constexpr milliseconds tree_limit = 2s;
constexpr milliseconds answer_first = 50ms;
constexpr std::string_view dispatcher_prefix = "dispatcher:";

} // namespace

caf::typed_response_promise<result<tree_reply>> tree_of(self_pointer self) {
  auto& s = self->state;
  auto promise = self->make_response_promise<result<tree_reply>>();
  tree_reply own;
  own.children.push_back({"root", s.stopping ? "stopping" : "running", 0, s.failed, 0, {}});
  for (const auto& c : s.shell->view())
    own.children.push_back({c.id, c.state, c.restarts, c.last_error, 1, c.reason});
  auto pool = child<dispatcher_pool_actor>(self, "dispatchers");
  if (!pool) {
    answer<tree_reply>(promise, std::move(own));
    return promise;
  }
  ask<tree_reply>(
      self, pool, tree_query{},
      [own, promise](result<tree_reply> r) mutable {
        auto at = std::find_if(own.children.begin(), own.children.end(),
                               [](const child_status& c) { return c.name == "dispatchers"; });
        if (r && at != own.children.end())
          for (auto& c : r->children) {
            c.depth = 2;
            at = own.children.insert(at + 1, std::move(c));
          }
        answer<tree_reply>(promise, std::move(own));
      },
      tree_limit);
  return promise;
}

/// A dispatcher is its pool's; it is told so that the restart is its decision.
caf::typed_response_promise<result<actor_order_reply>> obey(self_pointer self,
                                                            const actor_order& order) {
  auto promise = self->make_response_promise<result<actor_order_reply>>();
  auto pool = child<dispatcher_pool_actor>(self, "dispatchers");
  if (pool && order.name.starts_with(dispatcher_prefix)) {
    promise.delegate(pool, order);
    return promise;
  }
  answer<actor_order_reply>(promise, self->state.shell->obey(order));
  // The answer goes through the gateway, which holds every other handle and so is restarted with
  // almost anything.
  self->delayed_send(self, answer_first, supervise_tick{});
  return promise;
}

void say_pulse(const root_state& s) {
  if (!s.context->heartbeat)
    return;
  pulse_report report;
  report.round = s.heartbeats;
  report.silent = s.shell->silent();
  for (const auto& c : s.shell->view())
    if (c.state == "parked")
      report.parked.push_back(c.id);
  report.giving_up = s.failed;
  s.context->heartbeat->set(std::move(report));
}

void beat(self_pointer self) {
  auto& s = self->state;
  const auto every = s.context->housekeeping.heartbeat;
  if (every == milliseconds{0})
    return;
  ++s.heartbeats;
  s.shell->beat(every);
  say_pulse(s);
  record_restarts(self);
  self->delayed_send(self, every, heartbeat_tick{});
}

} // namespace boyd::node_impl
