#include "actors/dispatcher/actor.hpp"

#include "actors/dispatcher/core.hpp"
#include "actors/dispatcher/shortage.hpp"
#include "actors/dispatcher/unknown_rows.hpp"
#include "actors/executor/actor.hpp"
#include "actors/supervision/helpers.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/queue/end_in_words.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace boyd {

namespace {

struct dispatcher_tick : message {};

struct grace_over : message {};

/// Behind the ends of other runs that wait in the mailbox: they are settled together.
struct next_step : message {};

using dispatcher_impl =
    dispatcher_actor::extend<caf::reacts_to<dispatcher_tick>, caf::reacts_to<grace_over>,
                             caf::reacts_to<next_step>, caf::replies_to<ping>::with<pong>,
                             caf::reacts_to<pong>>;

/// An execution worker and the attempt that it has not reported yet.
struct worker {
  executor_actor handle;
  std::string dispatch_id;
  std::int64_t fence = 0;
};

struct dispatcher_state {
  dispatcher_parts parts;
  const config::agent* agent = nullptr;
  std::shared_ptr<present_agent> present; ///< the same, for attempts under way
  std::unique_ptr<dispatcher_core> core;
  std::map<caf::actor_addr, worker> workers;
  helper_pings pings;                                         ///< of the workers
  std::unordered_map<std::string, caf::actor_addr> worker_of; ///< by dispatch
  /// Runs that are told to end, and are told again at each tick until they have.
  std::map<std::string, cancel_cause> cancelling;
  std::uint64_t runs = 0;      ///< of this agent, for scripts that answer in turn
  std::uint64_t runs_kept = 0; ///< as the store has it
  bool counts_runs = false;
  bool ticking = false;
  bool stepping = false; ///< a next_step is in the mailbox
  bool store_failed = false;
  bool orphans_left = false; ///< the predecessor's rows could not be listed
  bool in_doubt = false;     ///< no claim has succeeded since one failed
  bool unheard_left = false; ///< nor what a claim without an answer may have taken
  work_due last_due;         ///< all that was due when the pool spoke last
  bool due_left = false;     ///< a claim of it failed: it is tried again by the next tick
  bool removed = false;      ///< by a reload; not while the node shuts down
  int worker_restarts = 0;
  std::string last_worker_error;
  shortage lacking;
  static inline const char* name = "dispatcher";

  ~dispatcher_state() {
    // What was heard and waits for its step: whoever comes next would not know it.
    if (auto left = core ? core->unsettled() : std::vector<settlement>{}; !left.empty()) {
      store_request request;
      request.add(store::settle{parts.context->node_id, std::move(left)});
      caf::anon_send(parts.services.store, std::move(request));
    }
    for (auto& [address, w] : workers)
      caf::anon_send<caf::message_priority::high>(
          caf::actor_cast<caf::actor>(w.handle),
          caf::exit_msg{caf::actor_addr{}, caf::exit_reason::kill});
  }
};

using self_pointer = dispatcher_impl::stateful_pointer<dispatcher_state>;

void step(self_pointer self);
void keep_ticking(self_pointer self);
void give_back(self_pointer self, unknown_rows which, std::string before = {});

steady_time now_of(self_pointer self) {
  return self->state.parts.context->ports.clock->steady();
}

std::string name_of(const dispatcher_parts& p) {
  return p.kernel_id + "/" + p.agent_id;
}

/// In the log; to those who watch, where the work goes on.
void tell_end(self_pointer self, const settlement& end) {
  const auto& p = self->state.parts;
  const auto words = queue::end_in_words(end);
  spdlog::info("agent {}: dispatch {} {}", name_of(p), end.dispatch_id, words);
  const auto watchers = p.services.watchers();
  if (!watchers || end.to != settle_to::retry)
    return;
  cycle_event e;
  e.kernel_id = p.kernel_id;
  e.cycle_id = end.cycle_id;
  e.phase = "wait";
  e.agent_id = p.agent_id;
  e.text = words;
  e.at = p.context->ports.clock->now();
  e.dispatch_id = end.dispatch_id;
  self->send(watchers, std::move(e));
}

void settle(self_pointer self, const shared_list<settlement>& items) {
  auto& s = self->state;
  if (auto passed = faults::pass("dispatcher.settle"); !passed) {
    s.store_failed = true;
    s.core->settle_failed(items);
    return keep_ticking(self);
  }
  store_request request;
  const auto results = request.add(store::settle{s.parts.context->node_id, items});
  std::optional<store_ticket<store::put_fact>> count;
  // With the results that it counts, so that it costs no transaction of its own. A count that is
  // lost repeats an answer; nothing depends on it.
  if (s.counts_runs && s.runs_kept != s.runs) {
    s.runs_kept = s.runs;
    count = request.add(
        store::put_fact{"runs:" + s.parts.kernel_id, s.parts.agent_id, std::to_string(s.runs)});
  }
  ask<store_reply>(self, s.parts.services.store, std::move(request),
                   [self, results, count, items](result<store_reply> r) {
                     auto& core = *self->state.core;
                     const auto done = results.of(r);
                     self->state.store_failed = !done;
                     if (!done) {
                       core.settle_failed(items);
                       keep_ticking(self);
                     } else {
                       core.settled(items);
                       // The results are in the spool, what counts them is not.
                       if (count && !count->of(*r))
                         self->state.runs_kept = 0;
                       for (std::size_t i = 0; i < done->size() && i < items.size(); ++i)
                         if ((*done)[i] == settle_result::stale)
                           spdlog::warn("dispatcher {}: the result of {} (fence {}) came from a "
                                        "stale owner and was refused",
                                        name_of(self->state.parts), items[i].dispatch_id,
                                        items[i].fence);
                         else if ((*done)[i] != settle_result::not_found)
                           tell_end(self, items[i]);
                       step(self);
                     }
                   });
}

void claim(self_pointer self, std::size_t n) {
  auto& p = self->state.parts;
  store::claim op;
  op.node_id = p.context->node_id;
  op.kernel_id = p.kernel_id;
  op.agent_id = p.agent_id;
  op.limit = n;
  op.lease = p.configuration->node_settings.lease;
  if (auto passed = faults::pass("dispatcher.claim"); !passed) {
    self->state.core->claim_failed();
    self->state.store_failed = true;
    return;
  }
  const auto started = now_of(self);
  store_request request;
  const auto rows = request.add(std::move(op));
  ask<store_reply>(self, p.services.store, std::move(request), [self, started, rows](auto reply) {
    const bool repeated = reply && reply->repeated;
    auto r = rows.of(reply);
    self->state.store_failed = !r;
    if (r) {
      // Once more: what a failed commit had written comes back when the database is opened
      // anew; and a batch that the store repeats then finds its own claim there. Nobody else
      // takes rows where nobody shares the store.
      const bool taken = r->empty() && !self->state.parts.context->shared_store;
      self->state.core->claimed(std::move(*r), started);
      if (std::exchange(self->state.in_doubt, false) || taken || repeated)
        give_back(self, unknown_rows::of_claim);
    } else {
      self->state.in_doubt = true;
      self->state.core->claim_failed();
      // The pool looks anew only after a long while, when it could read the store all the time.
      self->state.due_left = true;
      // Before the next claim, which is then not taken for this one.
      give_back(self, unknown_rows::of_claim);
    }
    step(self);
  });
}

void renew(self_pointer self, std::vector<store::renew_leases::held> held) {
  auto& p = self->state.parts;
  const auto started = now_of(self);
  store::renew_leases op{p.context->node_id, held, p.configuration->node_settings.lease};
  ask_store(self, p.services.store, std::move(op),
            [self, started, held = std::move(held)](result<store::renew_leases::reply> r) {
              if (r)
                self->state.core->renewed(held, r->lost, started);
              else
                self->state.core->renew_failed(now_of(self));
              step(self);
            });
}

void watch(self_pointer self, const executor_actor& handle, const dispatch& row) {
  auto& s = self->state;
  self->monitor(handle);
  s.pings.add(handle);
  s.workers[handle.address()] = {handle, row.dispatch_id, row.fence};
  s.worker_of[row.dispatch_id] = handle.address();
}

void run(self_pointer self, std::shared_ptr<const claimed_dispatch> work) {
  auto& s = self->state;
  run_order order;
  order.context = s.parts.context;
  order.configuration = s.parts.configuration;
  order.agent = s.agent;
  order.work = work;
  order.present = s.present;
  order.run_index = s.runs++;
  order.services = s.parts.services;
  order.sink = run_sink_actor(dispatcher_impl(self));
  watch(self, spawn_executor(self->system(), std::move(order)), work->row);
}

void cancel(self_pointer self, const std::string& dispatch_id, cancel_cause cause) {
  auto& s = self->state;
  const auto it = s.worker_of.find(dispatch_id);
  if (it == s.worker_of.end())
    return;
  s.cancelling[dispatch_id] = cause;
  if (!faults::lost("executor.cancel"))
    self->send(s.workers.at(it->second).handle, cancel_run{{}, dispatch_id, cause});
}

void repeat_cancels(self_pointer self) {
  for (const auto& [id, cause] : std::map(self->state.cancelling))
    cancel(self, id, cause);
}

void tick_in(self_pointer self, milliseconds wait) {
  self->state.ticking = true;
  self->delayed_send(self, wait, dispatcher_tick{});
}

void keep_ticking(self_pointer self) {
  auto& s = self->state;
  if (s.ticking || (s.core->running() == 0 && !s.store_failed))
    return;
  // Settlements, lease renewal and lost answers are looked after while work is in hand; a lost
  // lease is seen when it is lost, and not a tick later, when somebody else may run its row.
  auto wait = std::min(s.parts.context->housekeeping.dispatcher_tick, s.core->longest_wait());
  if (const auto loss = s.core->next_loss())
    wait = std::clamp<milliseconds>(*loss - now_of(self), 1ms, wait);
  tick_in(self, wait);
}

void step(self_pointer self) {
  auto& s = self->state;
  auto todo = s.core->decide(now_of(self));
  for (auto& work : todo.start)
    run(self, std::move(work));
  // After the starts: a claim whose answer slept with us brings a lease that is over.
  for (auto& [id, cause] : todo.cancel)
    cancel(self, id, cause);
  if (!todo.settle.empty())
    settle(self, std::move(todo.settle));
  if (!todo.renew.empty())
    renew(self, std::move(todo.renew));
  const auto me = permit_holder_actor(dispatcher_impl(self));
  if (todo.permits_back > 0)
    self->send(s.parts.services.permits, permit_release{{}, todo.permits_back, me});
  if (todo.wish)
    self->send(
        s.parts.services.permits,
        permit_request{
            {},
            permit_wish{{}, s.parts.kernel_id, name_of(s.parts), *todo.wish, s.core->priority()},
            me});
  if (todo.claim > 0)
    claim(self, todo.claim);
  if (todo.drained)
    // No slower than the news of our end: a successor is not to be taken for us.
    self->send<caf::message_priority::high>(s.parts.pool, drained{{}, name_of(s.parts)});
  keep_ticking(self);
}

void finished(self_pointer self, run_finished end) {
  auto& s = self->state;
  s.cancelling.erase(end.dispatch_id);
  if (auto it = s.worker_of.find(end.dispatch_id); it != s.worker_of.end()) {
    s.workers.erase(it->second);
    s.worker_of.erase(it);
  }
  s.lacking.heard(end.outcome, now_of(self));
  s.core->finished(end.dispatch_id, end.fence, std::move(end.outcome),
                   s.parts.context->ports.random->unit());
}

/// A worker that died without a word: its attempts failed by Boyd's fault and may be tried again.
void on_down(self_pointer self, const caf::down_msg& m) {
  self->state.pings.forget(m.source);
  auto it = self->state.workers.find(m.source);
  if (it == self->state.workers.end())
    return;
  const auto lost = std::move(it->second);
  run_outcome o;
  o.execution = execution_verdict::indeterminate;
  o.failure = failure_class::transient;
  o.error = "the execution worker ended: " + text_of(m.reason);
  o.summary = o.error;
  spdlog::error("dispatcher {}: {}", name_of(self->state.parts), o.error);
  ++self->state.worker_restarts;
  self->state.last_worker_error = o.error;
  const auto& c = *self->state.parts.context;
  c.restarts->note({"dispatcher:" + name_of(self->state.parts) + " worker", text_of(m.reason),
                    c.ports.clock->now()});
  finished(self, {{}, lost.dispatch_id, lost.fence, std::move(o)});
  step(self);
}

void restore_run_count(self_pointer self) {
  auto& s = self->state;
  const auto* script = std::get_if<config::script_executor>(&s.agent->run);
  s.counts_runs = script != nullptr && (!script->file.empty() || script->answers.size() > 1);
  if (!s.counts_runs)
    return;
  ask_store(self, s.parts.services.store, store::get_facts{"runs:" + s.parts.kernel_id},
            [self](result<store::get_facts::reply> r) {
              auto it =
                  r ? r->find(self->state.parts.agent_id) : store::get_facts::reply::iterator{};
              if (!r || it == r->end())
                return;
              std::uint64_t n = 0;
              std::from_chars(it->second.data(), it->second.data() + it->second.size(), n);
              self->state.runs = std::max(self->state.runs, n);
            });
}

dispatcher_limits limits_for(const dispatcher_parts& p, const config::agent& a) {
  dispatcher_limits l;
  l.max_concurrent = a.max_concurrent;
  l.retry = {a.retry.max_attempts, a.retry.base, a.retry.cap};
  l.lease = p.configuration->node_settings.lease;
  l.renewal = p.configuration->node_settings.lease_renewal;
  l.shared_store = p.context->shared_store;
  return l;
}

/// Rows that run here as far as the store knows and that nobody runs: nobody else looks after them
/// while this node lives, but for the sweep after their lease. Page by page, from `before` on: the
/// store answers in order, so that a page never shows what a claim that is not answered yet takes.
void give_back(self_pointer self, unknown_rows which, std::string before) {
  auto& s = self->state;
  store::list_dispatches op;
  op.kernel_id = s.parts.kernel_id;
  op.agent_id = s.parts.agent_id;
  op.status = dispatch_status::running;
  op.before = std::move(before);
  op.limit = listed_rows;
  ask_store(self, s.parts.services.store, std::move(op),
            [self, which](result<std::vector<dispatch>> rows) {
              auto& st = self->state;
              if (!rows) {
                (which == unknown_rows::of_claim ? st.unheard_left : st.orphans_left) = true;
                st.store_failed = true;
                return keep_ticking(self);
              }
              st.store_failed = false;
              const auto next = rows->size() == listed_rows ? rows->back().dispatch_id : "";
              std::vector<settlement> items;
              for (auto& row : *rows) {
                if (row.lease_owner != st.parts.context->node_id ||
                    st.core->has(row.dispatch_id, row.fence))
                  continue;
                items.push_back(settlement_of(std::move(row), which,
                                              limits_for(st.parts, *st.agent).retry,
                                              st.parts.context->ports.random->unit()));
              }
              // To be claimed behind the settlement; the pool would look only after a long while.
              const auto count = items.size();
              st.core->settle(std::move(items));
              if (count > 0 && which == unknown_rows::of_claim)
                st.core->due(count, st.last_due.priority);
              step(self);
              if (!next.empty())
                give_back(self, which, next);
            });
}

/// The same for rows that the store tells of by itself.
void give_back(self_pointer self, const std::vector<store::rescue_expired::own_row>& rows) {
  auto& s = self->state;
  std::vector<settlement> items;
  for (const auto& row : rows)
    if (!s.core->has(row.dispatch_id, row.fence))
      items.push_back(queue::released(row.dispatch_id, row.fence, "not started"));
  if (items.empty() || faults::lost("dispatcher.expired"))
    return;
  s.core->due(items.size(), s.last_due.priority);
  s.core->settle(std::move(items));
  step(self);
}

/// What runs keeps the configuration it was started with, but for what its next actions may be: a
/// stricter policy holds at once. The next attempts take the new one. An agent that is gone keeps
/// its last settings until the pool has drained it.
void reload(self_pointer self, const configuration_ptr& configuration) {
  faults::may_crash("parts.reload");
  auto& s = self->state;
  const auto* kernel = configuration->find_kernel(s.parts.kernel_id);
  const auto* agent = kernel == nullptr ? nullptr : config::find_agent(*kernel, s.parts.agent_id);
  if (agent == nullptr)
    return;
  s.parts.configuration = configuration;
  s.agent = agent;
  s.present->replace(configuration, agent);
  s.core->set_limits(limits_for(s.parts, *agent));
  // It came back while its attempts went on; once it said that it is empty the pool makes a new
  // one.
  if (s.removed && s.core->resume())
    s.removed = false;
  step(self);
}

/// Nothing new; what runs goes on until the grace is over, if it ever is.
void drain(self_pointer self, milliseconds grace) {
  faults::may_crash("dispatcher.drain");
  self->state.removed = grace == unlimited_grace;
  self->state.core->drain();
  if (!self->state.removed)
    self->delayed_send(self, grace, grace_over{});
  step(self);
}

void heard_of_work(self_pointer self, const work_due& m) {
  auto& core = *self->state.core;
  if (m.more)
    core.more_due(m.count, m.priority, m.elsewhere);
  else
    core.due(m.count, m.priority);
  self->state.last_due = {{}, core.priority(), core.waiting(), false};
  step(self);
}

dispatcher_status status_of(self_pointer self) {
  const auto& s = self->state;
  dispatcher_status status;
  status.kernel_id = s.parts.kernel_id;
  status.agent_id = s.parts.agent_id;
  status.running = s.core->running();
  status.limit = s.core->limit();
  status.waiting = s.core->waiting();
  status.shortage = s.lacking.told(now_of(self));
  status.worker_restarts = s.worker_restarts;
  status.last_worker_error = s.last_worker_error;
  return status;
}

dispatcher_impl::behavior_type dispatcher_behavior(self_pointer self, dispatcher_parts parts) {
  install_handlers(self, "dispatcher");
  self->set_down_handler([self](caf::down_msg& m) { on_down(self, m); });
  auto& s = self->state;
  s.parts = std::move(parts);
  const auto* kernel = s.parts.configuration->find_kernel(s.parts.kernel_id);
  s.agent = kernel == nullptr ? nullptr : config::find_agent(*kernel, s.parts.agent_id);
  if (s.agent == nullptr)
    throw std::runtime_error("no such agent: " + name_of(s.parts));
  s.present = std::make_shared<present_agent>(s.parts.configuration, s.agent);
  s.core = std::make_unique<dispatcher_core>(limits_for(s.parts, *s.agent));
  restore_run_count(self);
  if (s.parts.left == unknown_rows::of_crashed) {
    give_back(self, unknown_rows::of_crashed);
  } else if (s.parts.left) {
    // At the first tick: they wait for nothing, and the programs of those that ran have to be gone.
    s.orphans_left = true;
    tick_in(self, s.parts.context->housekeeping.dispatcher_tick);
  }
  return {
      [self](work_due& m) { heard_of_work(self, m); },
      [self](permit_grant& m) {
        self->state.core->granted(m.count);
        step(self);
      },
      [self](run_finished& m) {
        finished(self, std::move(m));
        if (!std::exchange(self->state.stepping, true))
          self->send(self, next_step{});
      },
      [self](next_step&) {
        self->state.stepping = false;
        step(self);
      },
      [self](cancel_run& m) {
        self->state.core->cancel(m.dispatch_id, m.cause, m.fence);
        step(self);
      },
      [self](expired_rows& m) { give_back(self, m.rows); },
      [self](drain_order& m) { drain(self, m.grace); },
      [self](hurry_order&) {
        if (faults::lost("dispatcher.hurry"))
          return;
        self->state.removed = false;
        self->state.core->drain();
        self->state.core->cancel_all(cancel_cause::hurry);
        step(self);
      },
      [self](reload_order& m) { reload(self, m.configuration); },
      [self](dispatchers_query&) -> result<dispatcher_status> { return status_of(self); },
      [self](dispatcher_tick&) {
        self->state.ticking = false;
        repeat_cancels(self);
        if (std::exchange(self->state.orphans_left, false))
          give_back(self, *self->state.parts.left);
        if (std::exchange(self->state.unheard_left, false))
          give_back(self, unknown_rows::of_claim);
        if (std::exchange(self->state.due_left, false))
          self->state.core->due(self->state.last_due.count, self->state.last_due.priority);
        step(self);
      },
      [self](grace_over&) {
        self->state.core->cancel_all(cancel_cause::shutdown);
        step(self);
      },
      [self](ping&) { return self->state.pings.answer(self, now_of(self)); },
      [self](pong&) { self->state.pings.heard(self->current_sender()); },
  };
}

} // namespace

dispatcher_actor spawn_dispatcher(caf::actor_system& system, dispatcher_parts parts) {
  return system.spawn(dispatcher_behavior, std::move(parts));
}

} // namespace boyd
