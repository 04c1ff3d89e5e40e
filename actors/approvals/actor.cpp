#include "actors/approvals/actor.hpp"

#include "actors/approvals/core.hpp"
#include "actors/approvals/notices.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "actors/support/past_faults.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/mcp/form.hpp"
#include "boyd/queue/approvals.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace boyd {

namespace approving {

namespace {

/// Somebody's time may be over. `number`: an old timer does nothing.
struct room_tick : message {
  std::uint64_t number = 0;
};

struct sweep_tick : message {};

/// From the transport's thread, or the process runner's.
struct notice_ended : message {
  std::uint64_t number = 0;
  std::string why;
};

struct notice_due : message {
  std::uint64_t number = 0;
};

struct notice_look : message {
  std::uint64_t number = 0;
};

using approvals_impl =
    approvals_actor::extend<caf::reacts_to<room_tick>, caf::reacts_to<sweep_tick>,
                            caf::reacts_to<notice_ended>, caf::reacts_to<notice_due>,
                            caf::reacts_to<notice_look>, caf::reacts_to<late_order>>;

/// The clock is not looked at more often.
constexpr milliseconds least_look = 100ms;
/// Nor less often while anybody waits: a delayed message cannot be taken back.
constexpr milliseconds longest_look = 30s;
/// Between sweeps while something is open.
constexpr milliseconds sweep_every = 1min;

/// A run that waits, and what it waits for.
struct waiting_run {
  approval_waiter_actor handle;
  std::map<std::string, approval_over> wishes; ///< and whose they are
};

struct approvals_state {
  node_context_ptr context;
  configuration_ptr configuration;
  store_actor store;
  std::unique_ptr<waiting_room> room;
  std::unique_ptr<notices> told;
  std::map<caf::actor_addr, waiting_run> runs;
  std::map<std::string, caf::actor_addr> waiters; ///< by wish
  std::uint64_t ticks = 0;
  std::optional<steady_time> tick_at;
  bool sweeping = false;
  static inline const char* name = "approvals";
};

using self_pointer = approvals_impl::stateful_pointer<approvals_state>;

void perform(self_pointer self, effects all);

steady_time now_of(self_pointer self) {
  return self->state.context->ports.clock->steady();
}

void arm(self_pointer self) {
  auto& s = self->state;
  const auto next = s.room->next(now_of(self));
  if (!next || (s.tick_at && *s.tick_at <= *next))
    return;
  s.tick_at = next;
  const auto wait = std::clamp<milliseconds>(*next - now_of(self), least_look, longest_look);
  self->delayed_send(self, wait, room_tick{{}, ++s.ticks});
}

void sweep_in(self_pointer self, milliseconds delay) {
  if (std::exchange(self->state.sweeping, true))
    return;
  self->delayed_send(self, delay, sweep_tick{});
}

/// What has expired, or belonged to runs that are over: of this node before it crashed, too.
void sweep(self_pointer self) {
  self->state.sweeping = false;
  ask_store(self, self->state.store, store::sweep_approvals{},
            [self](result<store::sweep_approvals::reply> r) {
              if (!r)
                return sweep_in(self, sweep_every);
              if (r->ended > 0)
                spdlog::info("approvals: {} requests closed: expired, or their runs have ended",
                             r->ended);
              if (r->pending + r->approved > 0)
                sweep_in(self, sweep_every);
            });
}

void forget(self_pointer self, const std::string& wish) {
  auto& s = self->state;
  s.room->forget(wish);
  const auto waiter = s.waiters.find(wish);
  if (waiter == s.waiters.end())
    return;
  const auto run = s.runs.find(waiter->second);
  if (run != s.runs.end()) {
    run->second.wishes.erase(wish);
    if (run->second.wishes.empty()) {
      self->demonitor(run->first);
      s.runs.erase(run);
    }
  }
  s.waiters.erase(waiter);
}

void tell(self_pointer self, effect::tell& e) {
  auto& s = self->state;
  const auto waiter = s.waiters.find(e.answer.wish);
  if (waiter == s.waiters.end())
    return;
  const bool last =
      e.answer.word != approval_word::asked && e.answer.word != approval_word::approved;
  const auto wish = e.answer.wish;
  send_past_faults(self, s.runs.at(waiter->second).handle, faults::point("approvals.answer"),
                   std::move(e.answer));
  if (last)
    forget(self, wish);
}

void withdraw(self_pointer self, effect::withdraw& e) {
  ask_store(self, self->state.store, std::move(e.what),
            [self, wish = e.wish](const result<store::withdraw_approvals::reply>& r) {
              if (!r)
                spdlog::warn(
                    "approvals: cannot withdraw the requests of a run; they end with the run: {}",
                    to_string(r.error()));
              if (!wish.empty())
                perform(self, self->state.room->on_withdrawn(wish, r));
            });
}

void look(self_pointer self, std::uint64_t number) {
  if (const auto next = self->state.told->look(number))
    self->delayed_send(self, *next, notice_look{{}, number});
}

void notify(self_pointer self, const store::approval& row) {
  auto& s = self->state;
  sweep_in(self, sweep_every);
  spdlog::info("approvals: agent {}/{} requests approval for {}: boyd approvals show {}",
               row.matter.kernel_id, row.matter.agent_id, row.matter.tool, row.approval_id);
  for (const auto number : s.told->begin(row, s.configuration))
    look(self, number);
}

void perform_one(self_pointer self, any_effect& any) {
  auto& s = self->state;
  if (auto* ask = std::get_if<effect::ask>(&any)) {
    const auto wish = ask->what.approval_id;
    ask_store(self, s.store, std::move(ask->what),
              [self, wish](const result<store::ask_approval::reply>& r) {
                perform(self, self->state.room->on_asked(wish, r, now_of(self)));
              });
  } else if (auto* use = std::get_if<effect::use>(&any)) {
    ask_store(self, s.store, std::move(use->what),
              [self, wish = use->wish](const result<store::use_approval::reply>& r) {
                perform(self, self->state.room->on_used(wish, r, now_of(self)));
              });
  } else if (auto* gone = std::get_if<effect::withdraw>(&any)) {
    withdraw(self, *gone);
  } else if (auto* look = std::get_if<effect::look>(&any)) {
    store::list_approvals q;
    q.limit = look->ids.size();
    q.ids = std::move(look->ids);
    ask_store(self, s.store, std::move(q), [self](const result<store::list_approvals::reply>& r) {
      if (r)
        perform(self, self->state.room->on_rows(*r));
    });
  } else if (auto* word = std::get_if<effect::tell>(&any)) {
    tell(self, *word);
  } else if (auto* fresh = std::get_if<effect::notify>(&any)) {
    notify(self, fresh->row);
  }
}

void perform(self_pointer self, effects all) {
  for (auto& e : all)
    perform_one(self, e);
  arm(self);
}

/// An answer that the wish never got beyond this part for.
void refuse(self_pointer self, const approval_waiter_actor& waiter, const std::string& wish,
            const std::string& why) {
  self->send(waiter, approval_answer{{}, wish, approval_word::denied, {}, why});
}

void take(self_pointer self, approval_request& m, const error* fault) {
  auto& s = self->state;
  if (fault != nullptr)
    return refuse(self, m.waiter, m.wish.ask.approval_id,
                  "cannot ask for approval: " + to_string(*fault));
  const auto& ask = m.wish.ask;
  const auto address = m.waiter.address();
  auto [run, fresh] = s.runs.try_emplace(address, waiting_run{m.waiter, {}});
  if (fresh)
    self->monitor(m.waiter);
  run->second.wishes[ask.approval_id] = {ask.matter.dispatch_id, ask.fence};
  s.waiters[ask.approval_id] = address;
  perform(self, s.room->on_wish(std::move(m.wish), now_of(self)));
}

void use(self_pointer self, const approval_use_request& m, const error* fault) {
  if (fault == nullptr)
    return perform(self, self->state.room->on_use(m.use));
  refuse(self, m.waiter, m.use.wish, "cannot use the approval: " + to_string(*fault));
  forget(self, m.use.wish);
}

/// What the run has asked is withdrawn, whether it still waits for it or not.
void end_run(self_pointer self, const approval_over& over, const char* why) {
  effect::withdraw e;
  e.what.dispatch_id = over.dispatch_id;
  e.what.fence = over.fence;
  e.what.why = why;
  withdraw(self, e);
}

void forget_run(self_pointer self, const caf::actor_addr& waiter) {
  const auto run = self->state.runs.find(waiter);
  if (run == self->state.runs.end())
    return;
  const auto wishes = run->second.wishes;
  for (const auto& [wish, over] : wishes)
    forget(self, wish);
}

/// A waiter died without a word: a run, or a server of tools that asks for many runs.
void on_down(self_pointer self, const caf::actor_addr& waiter) {
  const auto run = self->state.runs.find(waiter);
  if (run == self->state.runs.end())
    return;
  std::set<std::pair<std::string, std::int64_t>> asked_for;
  for (const auto& [wish, over] : run->second.wishes)
    asked_for.emplace(over.dispatch_id, over.fence);
  forget_run(self, waiter);
  for (const auto& [dispatch_id, fence] : asked_for)
    end_run(self, {dispatch_id, fence}, "the run has ended unexpectedly");
}

/// What is lost on the way ends with the run: its death is heard of.
void on_end(self_pointer self, const approval_end& m, const error* fault) {
  if (fault != nullptr)
    return spdlog::warn("approvals: cannot withdraw the requests of a run yet: {}",
                        to_string(*fault));
  forget_run(self, m.waiter.address());
  end_run(self, m.over, "the run has ended");
}

void on_withdrawal(self_pointer self, const approval_withdrawal& m, const error* fault) {
  if (fault != nullptr)
    return spdlog::warn("approvals: cannot withdraw request {}; it ends with its run: {}", m.wish,
                        to_string(*fault));
  perform(self, self->state.room->on_withdrawal(m.wish, m.why));
}

/// Each attempt stands in the request's trail; that of a request which is not there stands nowhere
/// else.
void log_decision(const store::decide_approval& what,
                  const result<store::decide_approval::reply>& r) {
  const auto* const verb = what.approve ? "approve" : "reject";
  if (!r)
    spdlog::warn("approvals: {} of {} by {}: {}", verb, what.approval_id, what.by,
                 to_string(r.error()));
  else if (r->outcome == store::approval_outcome::accepted)
    spdlog::info("approvals: {} of {} by {}", verb, what.approval_id, what.by);
  else
    spdlog::warn("approvals: {} of {} by {} was refused: {}", verb, what.approval_id, what.by,
                 what.refused.empty() ? queue::name_of(r->outcome)
                                      : std::string_view(what.refused));
}

/// An answer that does not fill in what was asked for is not taken: the person is told, and the
/// question stays open.
void judge_answer(self_pointer self, store::decide_approval& what) {
  const auto form = self->state.room->form_of(what.approval_id);
  if (!what.approve || !what.refused.empty() || form.empty())
    return;
  if (const auto content = mcp::form_content(form, what.note); !content)
    what.refused = "not a valid answer to the question: " + content.error().what;
}

caf::typed_response_promise<result<store::approval_change>> decide(self_pointer self,
                                                                   approval_decision& m) {
  auto promise = self->make_response_promise<result<store::approval_change>>();
  judge_answer(self, m.what);
  ask_store(self, self->state.store, m.what,
            [self, promise, what = m.what](result<store::decide_approval::reply> r) mutable {
              log_decision(what, r);
              if (r && r->row && r->outcome == store::approval_outcome::accepted)
                perform(self, self->state.room->on_decided(*r->row));
              if (r && r->outcome == store::approval_outcome::refused)
                r = fail(errc::invalid_argument, what.refused, what.approval_id,
                         "see: boyd approvals show " + what.approval_id);
              answer<store::approval_change>(promise, std::move(r));
            });
  return promise;
}

void on_notice(self_pointer self, const notice_ended& m) {
  if (const auto wait = self->state.told->on_end(m.number, m.why))
    self->delayed_send(self, *wait, notice_due{{}, m.number});
}

std::unique_ptr<notices> make_notices(self_pointer self) {
  const caf::actor_addr me = self->address();
  return std::make_unique<notices>(self->state.context,
                                   [me](std::uint64_t number, const std::string& why) {
                                     if (auto strong = caf::actor_cast<caf::actor>(me))
                                       caf::anon_send(strong, notice_ended{{}, number, why});
                                   });
}

approvals_impl::behavior_type approvals_behavior(self_pointer self, node_context_ptr context,
                                                 configuration_ptr configuration,
                                                 store_actor store) {
  install_handlers(self, "approvals");
  self->set_down_handler([self](caf::down_msg& m) { on_down(self, m.source); });
  auto& s = self->state;
  s.context = std::move(context);
  s.configuration = std::move(configuration);
  s.store = std::move(store);
  const auto& intervals = s.context->housekeeping;
  s.room = std::make_unique<waiting_room>(
      [ports = s.context->ports] { return make_uuid_v7(ports.clock->now(), *ports.random); },
      s.context->shared_store ? intervals.queue_poll : intervals.queue_poll_alone);
  s.told = make_notices(self);
  if (s.context->shared_store && !s.context->passive)
    self->send(s.store, subscribe_queue{{}, queue_listener_actor(approvals_impl(self))});
  if (!s.context->passive)
    sweep_in(self, least_look);
  return {
      [self](approval_request& m) {
        past_faults(self, faults::point("approvals.ask"),
                    [self, m = std::move(m)](const error* why) mutable { take(self, m, why); });
      },
      [self](approval_use_request& m) {
        past_faults(self, faults::point("approvals.use"),
                    [self, m = std::move(m)](const error* why) { use(self, m, why); });
      },
      [self](approval_end& m) {
        past_faults(self, faults::point("approvals.end"),
                    [self, m = std::move(m)](const error* why) { on_end(self, m, why); });
      },
      [self](approval_withdrawal& m) {
        past_faults(self, faults::point("approvals.end"),
                    [self, m = std::move(m)](const error* why) { on_withdrawal(self, m, why); });
      },
      [self](approval_decision& m) { return decide(self, m); },
      [self](approvals_query&) -> result<approvals_status> {
        const auto& told = *self->state.told;
        return approvals_status{self->state.room->waiting(), told.sent(), told.failed(),
                                told.last_error()};
      },
      [self](queue_changed&) {
        self->state.room->look_soon();
        arm(self);
      },
      [](dispatches_settled&) {
        // a run that ends says so itself
      },
      [self](reload_order& m) {
        faults::may_crash("parts.reload");
        self->state.configuration = m.configuration;
      },
      [](health_query&) -> result<part_health> { return part_health{}; },
      [self](room_tick& m) {
        if (m.number != self->state.ticks)
          return;
        self->state.tick_at.reset();
        perform(self, self->state.room->on_time(now_of(self)));
      },
      [self](sweep_tick&) { sweep(self); },
      [self](notice_ended& m) { on_notice(self, m); },
      [self](notice_due& m) {
        self->state.told->again(m.number);
        look(self, m.number);
      },
      [self](notice_look& m) { look(self, m.number); },
      [](late_order& m) { m.carry_out(); },
  };
}

} // namespace

} // namespace approving

approvals_actor spawn_approvals(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration, store_actor store) {
  return system.spawn(approving::approvals_behavior, std::move(context), std::move(configuration),
                      std::move(store));
}

} // namespace boyd
