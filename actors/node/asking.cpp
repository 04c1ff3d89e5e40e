#include "actors/node/parts.hpp"
#include "actors/support/ask.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace boyd::node_impl {

namespace {

/// Less than who asks the root waits (apps/boyd/live_node.cpp): a part that lives and does not
/// answer must not hide the others.
constexpr milliseconds tree_limit = 1s;
constexpr milliseconds answer_first = 50ms;
constexpr std::string_view dispatcher_prefix = "dispatcher:";
constexpr std::string_view server_prefix = "mcp:";

/// The children of a part that is a supervisor itself, put behind it.
void put_below(tree_reply& own, const char* part, result<tree_reply>& below) {
  auto at = std::find_if(own.children.begin(), own.children.end(),
                         [&](const child_status& c) { return c.name == part; });
  if (!below || at == own.children.end())
    return;
  for (auto& c : below->children) {
    c.depth = 2;
    at = own.children.insert(at + 1, std::move(c));
  }
}

} // namespace

caf::typed_response_promise<result<tree_reply>> tree_of(self_pointer self) {
  auto& s = self->state;
  auto promise = self->make_response_promise<result<tree_reply>>();
  tree_reply own;
  own.children.push_back({"root", s.stopping ? "stopping" : "running", 0, s.failed, 0, {}});
  for (const auto& c : s.shell->view())
    own.children.push_back({c.id, c.state, c.restarts, c.last_error, 1, c.reason, c.renewals});
  auto all = std::make_shared<tree_reply>(std::move(own));
  auto missing = std::make_shared<int>(2);
  // A part that is not there, or does not answer, is shown without its own.
  const auto put = [promise, all, missing](const char* part, result<tree_reply> r) {
    put_below(*all, part, r);
    if (--*missing == 0)
      answer<tree_reply>(promise, std::move(*all));
  };
  ask_past_faults<tree_reply>(
      self, child<dispatcher_pool_actor>(self, "dispatchers"), tree_query{},
      [put](result<tree_reply> r) { put("dispatchers", std::move(r)); }, tree_limit);
  ask_past_faults<tree_reply>(
      self, child<mcp_actor>(self, "mcp"), tree_query{},
      [put](result<tree_reply> r) { put("mcp", std::move(r)); }, tree_limit);
  return promise;
}

/// A dispatcher is its pool's, a server that of all servers: it is told so that the restart is its
/// decision.
caf::typed_response_promise<result<actor_order_reply>> obey(self_pointer self,
                                                            const actor_order& order) {
  auto promise = self->make_response_promise<result<actor_order_reply>>();
  auto pool = child<dispatcher_pool_actor>(self, "dispatchers");
  if (pool && order.name.starts_with(dispatcher_prefix)) {
    promise.delegate(pool, order);
    return promise;
  }
  auto servers = child<mcp_actor>(self, "mcp");
  if (servers && order.name.starts_with(server_prefix)) {
    promise.delegate(servers, order);
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
