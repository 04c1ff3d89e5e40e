#include "actors/dispatcher/pool_health.hpp"
#include "actors/dispatcher/pool_parts.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/faults/points.hpp"

#include <caf/actor_system.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace boyd {

namespace dispatcher_pool {

namespace {

void reconcile(self_pointer self) {
  // Its children are parked, each for itself: there is nothing to escalate (ADR 9).
  self->state.shell->reconcile();
}

/// Whose rows its next dispatcher finds running. Before an earlier process's are taken back those
/// are all there are.
std::optional<unknown_rows> left_rows(self_pointer self, const std::string& id) {
  auto& s = self->state;
  const bool renewed = s.renewed.erase(id) > 0;
  if (!s.context->own_rows_recovered->load())
    return std::nullopt;
  return renewed ? unknown_rows::of_renewed : unknown_rows::of_crashed;
}

void add_member(self_pointer self, const std::string& kernel, const std::string& agent) {
  auto& s = self->state;
  const auto id = child_id(kernel, agent);
  s.members[id] = {kernel, agent, true};
  child_spec spec;
  spec.rule.id = id;
  // The other agents go on without it.
  spec.rule.vital = false;
  spec.make = [self, kernel, agent] {
    auto& st = self->state;
    dispatcher_parts parts{st.context,
                           st.configuration,
                           kernel,
                           agent,
                           st.services,
                           drain_listener_actor(pool_impl(self)),
                           left_rows(self, child_id(kernel, agent))};
    return caf::actor_cast<caf::actor>(spawn_dispatcher(self->system(), std::move(parts)));
  };
  s.shell->add(std::move(spec));
}

/// A removed member is gone, or empty: it is not supervised any more.
void retire(self_pointer self, const std::string& id) {
  auto& s = self->state;
  auto it = s.members.find(id);
  if (it == s.members.end())
    return;
  const member m = it->second;
  s.shell->remove(id);
  s.members.erase(it);
  s.renewed.erase(id);
  cancel_unknown(self, m.kernel_id, m.agent_id);
}

/// Removed by a reload; its dispatcher may still have attempts that run.
bool is_removed(self_pointer self, const std::string& id) {
  const auto it = self->state.members.find(id);
  return it != self->state.members.end() && !it->second.wanted;
}

/// Removed members whose dispatcher does not live have nothing to drain.
void retire_dead(self_pointer self) {
  std::vector<std::string> dead;
  for (const auto& [id, m] : self->state.members)
    if (!m.wanted && !self->state.shell->handle(id))
      dead.push_back(id);
  for (const auto& id : dead)
    retire(self, id);
}

// -- whose work is due ---------------------------------------------------------------------------

void poll_in(self_pointer self, milliseconds delay) {
  self->delayed_send(self, delay, poll_tick{{}, ++self->state.poll_generation});
}

void tell_one(self_pointer self, const std::string& kernel, const std::string& agent,
              const work_due& due) {
  const auto it = self->state.members.find(child_id(kernel, agent));
  if (it == self->state.members.end() || !it->second.wanted) {
    // A kernel that was planning during a reload may have queued it. What another node has queued
    // is most likely its own to run; the poll looks at what stays.
    if (!due.elsewhere)
      cancel_unknown(self, kernel, agent);
  } else if (auto d = handle_of(self, it->first)) {
    if (!faults::lost("dispatcher.due"))
      self->send(d, due);
  }
}

void tell_due(self_pointer self, const store::due_agents::reply& r) {
  for (const auto& row : r.due)
    tell_one(self, row.kernel_id, row.agent_id, {{}, row.priority, row.count, false});
  const auto& context = *self->state.context;
  const auto longest = context.shared_store ? context.housekeeping.queue_poll
                                            : context.housekeeping.queue_poll_alone;
  const auto next = std::min(r.next_in.value_or(longest), longest);
  poll_in(self, std::max(next, milliseconds{1}));
}

/// What somebody has just enqueued needs no question. Another node's word does not come in order
/// with what the store answers: an answer that is under way may not have seen it.
void tell_queued(self_pointer self, const queue_changed& m) {
  auto& s = self->state;
  if (!s.claiming || s.draining)
    return;
  s.ask_again = s.ask_again || (s.asking && m.elsewhere);
  for (const auto& w : m.queued)
    tell_one(self, w.kernel_id, w.agent_id, {{}, w.priority, w.count, true, m.elsewhere});
}

} // namespace

void ask_due(self_pointer self) {
  auto& s = self->state;
  if (!s.claiming || s.draining)
    return;
  if (s.asking) {
    s.ask_again = true;
    return;
  }
  s.asking = true;
  ask_store(self, s.services.store, store::due_agents{},
            [self](result<store::due_agents::reply> r) {
              auto& st = self->state;
              st.asking = false;
              if (r) {
                st.store_problem.clear();
                tell_due(self, *r);
              } else {
                st.store_problem = to_string(r.error());
                poll_in(self, st.context->housekeeping.retry);
              }
              if (std::exchange(st.ask_again, false))
                ask_due(self);
            });
}

namespace {

// -- reload and drain ----------------------------------------------------------------------------

void reload(self_pointer self, const reload_order& order) {
  auto& s = self->state;
  const auto& configuration = order.configuration;
  s.configuration = configuration;
  std::set<std::string> wanted;
  for (const auto& k : configuration->kernels)
    for (const auto& a : k.agents) {
      const auto id = child_id(k.kernel_id, a.agent_id);
      wanted.insert(id);
      const bool is_new = s.members.find(id) == s.members.end();
      if (is_new || is_removed(self, id))
        add_member(self, k.kernel_id, a.agent_id);
      if (auto d = handle_of(self, id); d && !is_new)
        self->send(d, order);
    }
  for (auto& [id, m] : s.members) {
    if (wanted.count(id) > 0 || !m.wanted)
      continue;
    m.wanted = false;
    if (auto d = handle_of(self, id)) {
      self->send(d, drain_order{{}, unlimited_grace});
      self->send(d, order); // behind it: it is no agent's any more
      cancel_unknown(self, m.kernel_id, m.agent_id);
    }
  }
  retire_dead(self);
  reconcile(self);
  ask_due(self);
}

void check_drained(self_pointer self) {
  auto& s = self->state;
  if (!s.draining || !s.undrained.empty())
    return;
  for (auto& p : std::exchange(s.drain_askers, {}))
    p.deliver(result<drained>(drained{{}, "dispatchers"}));
}

void on_drained(self_pointer self, const std::string& name) {
  auto& s = self->state;
  const auto id = "dispatcher:" + name;
  s.undrained.erase(id);
  if (s.draining)
    return check_drained(self);
  auto it = s.members.find(id);
  if (it == s.members.end())
    return;
  // A drained dispatcher never claims again: one that was removed and came back starts anew.
  if (it->second.wanted)
    s.shell->renew(id, "the agent is configured again");
  else
    retire(self, id);
  reconcile(self);
}

drain_promise drain(self_pointer self, const drain_order& order) {
  auto& s = self->state;
  auto promise = self->make_response_promise<result<drained>>();
  s.draining = true;
  s.drain_askers.push_back(promise);
  s.shell->hold();
  for (const auto& [id, m] : s.members) {
    if (auto d = handle_of(self, id)) {
      s.undrained.insert(id);
      self->send(d, order);
    }
  }
  check_drained(self);
  return promise;
}

void on_down(self_pointer self, caf::down_msg& m) {
  if (!self->state.shell->on_down(m))
    return;
  if (self->state.draining) {
    std::erase_if(self->state.undrained,
                  [&](const std::string& id) { return !self->state.shell->handle(id); });
    check_drained(self);
    return;
  }
  retire_dead(self);
  reconcile(self);
  ask_due(self);
}

// -- questions -----------------------------------------------------------------------------------

caf::typed_response_promise<result<dispatchers_reply>> collect_status(self_pointer self) {
  auto collector = std::make_shared<status_collector>();
  collector->promise = self->make_response_promise<result<dispatchers_reply>>();
  collector->missing = 1;
  std::erase_if(self->state.collectors, [](const auto& weak) { return weak.expired(); });
  self->state.collectors.push_back(collector);
  for (const auto& [id, m] : self->state.members) {
    auto d = handle_of(self, id);
    if (!d)
      continue;
    ++collector->missing;
    ask<dispatcher_status>(
        self, d, dispatchers_query{},
        [collector](result<dispatcher_status> r) {
          if (r)
            collector->reply.dispatchers.push_back(std::move(*r));
          collector->one_less();
        },
        2s);
  }
  auto promise = collector->promise;
  collector->one_less();
  return promise;
}

tree_reply tree_of(self_pointer self) {
  tree_reply reply;
  for (const auto& c : self->state.shell->view())
    reply.children.push_back({c.id, c.state, c.restarts, c.last_error, 1, c.reason, c.renewals});
  return reply;
}

/// Its own children are asked by the way: no clock of its own.
pong answer_ping(self_pointer self) {
  self->state.shell->beat(self->state.context->housekeeping.heartbeat);
  return {{}, milliseconds{0}, self->state.shell->silent()};
}

pool_impl::behavior_type pool_behavior(self_pointer self, node_context_ptr context,
                                       configuration_ptr configuration, run_services services) {
  install_handlers(self, "dispatchers");
  self->set_down_handler([self](caf::down_msg& m) { on_down(self, m); });
  auto& s = self->state;
  s.context = context;
  s.configuration = configuration;
  s.services = std::move(services);
  s.shell = std::make_unique<supervisor_shell<pool_impl::base>>(
      self, "dispatchers", context->ports.clock, context->ports.random, restart_intensity{});
  s.shell->record_in(context->restarts);
  for (const auto& k : configuration->kernels)
    for (const auto& a : k.agents)
      add_member(self, k.kernel_id, a.agent_id);
  // It is no fault of the runs that a pool before this one is gone.
  for (const auto& [id, m] : s.members)
    s.renewed.insert(id);
  reconcile(self);
  self->send(s.services.store, subscribe_queue{{}, queue_listener_actor(pool_impl(self))});
  self->send(self, sweep_tick{});
  return {
      [self](start_claiming&) {
        if (!self->state.claiming)
          recover(self);
      },
      [self](queue_changed& m) { m.queued.empty() ? ask_due(self) : tell_queued(self, m); },
      [](dispatches_settled&) {
        // nop
      },
      [self](cancel_run& m) {
        if (faults::lost("dispatchers.cancel"))
          return;
        for (const auto& [id, member] : self->state.members)
          if (auto d = handle_of(self, id))
            self->send(d, m);
      },
      [self](reload_order& m) {
        faults::may_crash("parts.reload");
        reload(self, m);
      },
      [self](drain_order& m) { return drain(self, m); },
      [self](drained& m) {
        faults::may_crash("dispatchers.drained");
        on_drained(self, m.name);
      },
      [self](hurry_order& m) {
        for (const auto& [id, member] : self->state.members)
          if (auto d = handle_of(self, id))
            self->send(d, m);
      },
      [self](dispatchers_query&) { return collect_status(self); },
      [self](tree_query&) -> result<tree_reply> { return tree_of(self); },
      [self](actor_order& m) -> result<actor_order_reply> {
        auto done = self->state.shell->obey(m);
        if (done && m.verb == actor_verb::restart && handle_of(self, m.name))
          self->state.renewed.insert(m.name);
        reconcile(self);
        // Who was just started has not heard of its work.
        ask_due(self);
        return done;
      },
      [self](health_query&) -> result<part_health> {
        const auto& st = self->state;
        return pool_health(st.shell->view(), st.store_problem, st.draining);
      },
      [self](ping&) { return answer_ping(self); },
      [self](pong& m) { self->state.shell->on_pong(self->current_sender(), m); },
      [self](supervise_tick&) {
        reconcile(self);
        // Who was just started again has not heard of its work.
        ask_due(self);
      },
      [self](stop_overdue& m) { self->state.shell->on_overdue(m); },
      [self](sweep_tick&) { sweep(self); },
      [self](rescue_again&) {
        self->state.rescuing = false;
        if (self->state.claiming)
          rescue(self);
      },
      [self](lease_over& m) {
        if (m.generation != self->state.lease_generation)
          return;
        self->state.lease_end.reset();
        if (self->state.claiming)
          rescue(self);
      },
      [self](poll_tick& m) {
        if (m.generation == self->state.poll_generation)
          ask_due(self);
      },
  };
}

} // namespace

} // namespace dispatcher_pool

dispatcher_pool_actor spawn_dispatcher_pool(caf::actor_system& system, node_context_ptr context,
                                            configuration_ptr configuration,
                                            run_services services) {
  return system.spawn(dispatcher_pool::pool_behavior, std::move(context), std::move(configuration),
                      std::move(services));
}

} // namespace boyd
