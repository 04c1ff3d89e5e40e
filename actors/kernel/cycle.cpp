#include "actors/kernel/state.hpp"
#include "actors/librarian/core.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/final_refusal.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/queue/spent.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace boyd::kernel_impl {

namespace {

/// More agents than this in one kernel are refused by the configuration.
constexpr std::size_t rows_of_a_cycle = 4096;

result<void> as_void(const result<store_reply>& r) {
  if (!r)
    return fail(r.error());
  if (const auto* e = r->failure())
    return fail(*e);
  return {};
}

void take_orientation(self_pointer self, const orient_questions& asked, result<store_reply> r);

/// Answers in any order.
struct perception {
  result<std::string> state = fail(errc::timed_out, "no answer");
  result<gathered_context> context = fail(errc::timed_out, "no answer");
  result<void> begun;
  std::optional<orient_questions> asked; ///< where the rows were asked for at once
  result<store_reply> rows;
  int missing = 2;
};

void perceived(self_pointer self, perception& p) {
  auto& s = self->state;
  if (--p.missing > 0)
    return;
  if (!p.begun)
    return retry_step(self, p.begun.error());
  // When it has just died, this part is about to be started anew with it, and asks again: agents
  // are not to run without their goal. One that is parked is waited for once.
  if (!p.context && p.context.error().code == errc::actor_down &&
      std::exchange(s.waited_for_context, s.cycle->id()) != s.cycle->id())
    return retry_step(self, p.context.error());
  s.cycle->perceive(std::move(p.state), std::move(p.context));
  if (p.asked)
    take_orientation(self, *p.asked, std::move(p.rows));
  else
    run_step(self);
}

void read_files(self_pointer self, const std::shared_ptr<perception>& all) {
  auto& s = self->state;
  ask<state_reply>(self, s.parts.state_writer, state_request{{}, read_state{s.settings->kernel_id}},
                   [self, all](result<state_reply> r) {
                     if (r)
                       all->state = std::move(r->text);
                     else
                       all->state = fail(r.error());
                     perceived(self, *all);
                   });
  ask<gathered_context>(
      self, s.parts.librarian, gather_context{{}, s.settings->kernel_id},
      [self, all](result<gathered_context> r) {
        all->context = std::move(r);
        perceived(self, *all);
      },
      gather_limit(*s.settings));
}

/// A new cycle's row is written meanwhile: reading has no effects, and waits for nothing.
void perceive(self_pointer self) {
  auto& s = self->state;
  announce(self, "perceive", {}, "reading STATE.md, goal, memory and senses");
  auto all = std::make_shared<perception>();
  if (s.cycle->step() == cycle_step::begin) {
    ++all->missing;
    store_request request;
    request.add(store::begin_cycle{s.cycle->record()});
    ask<store_reply>(self, s.parts.store, std::move(request), [self, all](result<store_reply> r) {
      all->begun = as_void(r);
      self->state.cycle->begin(all->begun);
      perceived(self, *all);
    });
  }
  read_files(self, all);
  auto known = std::exchange(s.rows_at_begin, std::nullopt);
  // Files are read at once: the rows are no older for it. Senses may take minutes.
  if (!s.settings->senses.empty())
    return;
  if (known && known->asked_under == s.parts.configuration) {
    all->asked = known->asked;
    all->rows = std::move(known->rows);
    return;
  }
  ++all->missing;
  store_request request;
  all->asked = ask_orientation(self, request);
  ask<store_reply>(self, s.parts.store, std::move(request), [self, all](result<store_reply> r) {
    all->rows = std::move(r);
    perceived(self, *all);
  });
}

/// With what today's budgets hold back. An error is one of the store, and the step is repeated.
result<orientation> read_orientation(self_pointer self, const orient_questions& asked,
                                     result<store_reply>& r) {
  if (!r)
    return fail(r.error());
  const auto& s = self->state;
  auto latest = asked.latest.of(*r);
  auto recent = asked.recent.of(*r);
  auto pauses = asked.pauses.of(*r);
  auto slots = asked.slots.of(*r);
  auto spent = asked.spent ? asked.spent->of(*r) : store::sum_spend::reply{};
  for (const auto* e : {latest ? nullptr : &latest.error(), recent ? nullptr : &recent.error(),
                        pauses ? nullptr : &pauses.error(), slots ? nullptr : &slots.error(),
                        spent ? nullptr : &spent.error()})
    if (e != nullptr)
      return fail(*e);
  orientation seen{
      std::move(*latest), std::move(*recent), std::move(*pauses), std::move(*slots), {}};
  if (asked.spent)
    seen.spent =
        queue::spent_agents(*s.parts.configuration, *s.settings, s.parts.context->node_id, *spent);
  return seen;
}

void take_orientation(self_pointer self, const orient_questions& asked, result<store_reply> r) {
  auto& s = self->state;
  auto seen = read_orientation(self, asked, r);
  const auto failed = seen ? std::optional<error>{} : seen.error();
  auto context = s.parts.context;
  s.cycle->orient(
      std::move(seen), plan::is_quiet(s.quiet, now_of(self)), s.agent_rules,
      [context] { return make_uuid_v7(context->ports.clock->now(), *context->ports.random); },
      now_of(self));
  if (failed)
    return retry_step(self, *failed);
  run_step(self);
}

/// Asks for the rows; `then(asked, reply)`.
template <class Then>
void look_around(self_pointer self, Then then) {
  store_request request;
  const auto asked = ask_orientation(self, request);
  ask<store_reply>(self, self->state.parts.store, std::move(request),
                   [asked, then](result<store_reply> r) { then(asked, std::move(r)); });
}

/// Agents that waited for others of this cycle are planned by what stands now.
void release(self_pointer self) {
  look_around(self, [self](const orient_questions& asked, result<store_reply> r) {
    auto seen = read_orientation(self, asked, r);
    if (!seen)
      return retry_step(self, seen.error());
    self->state.cycle->release(std::move(seen));
    run_step(self);
  });
}

void orient(self_pointer self) {
  look_around(self, [self](const orient_questions& asked, result<store_reply> r) {
    take_orientation(self, asked, std::move(r));
  });
}

void wake(self_pointer self) {
  auto& s = self->state;
  ask<wake_results>(
      self, s.parts.librarian,
      check_wake{{}, s.settings->kernel_id, s.cycle->wake_candidates(), s.cycle->by_hand()},
      [self](result<wake_results> r) {
        self->state.cycle->wake(std::move(r));
        run_step(self);
      },
      wake_limit(*s.settings));
}

/// Nobody waits for the plan of a cycle that goes no further: a node that stops leaves it to the
/// next start, and what a later slot has cancelled runs nothing.
void plan_stopped(self_pointer self) {
  auto& s = self->state;
  if (s.stopping && !s.cycle->cancel_requested())
    return;
  s.cycle->decide(plan::plan_static(*s.settings, s.cycle->input()));
  run_step(self);
}

void decide(self_pointer self) {
  auto& s = self->state;
  const bool asks = s.settings->plan.type == config::planner::type_t::llm && !s.cycle->input().only;
  if (asks && (s.stopping || s.cycle->cancel_requested()))
    return plan_stopped(self);
  plan_request request{{}, s.parts.configuration, s.settings->kernel_id, s.cycle->input(), false,
                       {}};
  request.time_left = s.settings->cycle_deadline - time_of_cycle(self).taken;
  if (asks)
    announce(self, "decide", {}, "asking a model which agents to run");
  ask<plan::plan_output>(
      self, s.parts.planner, std::move(request),
      [self](result<plan::plan_output> r) {
        // It is being restarted; a plan has no effects, so it is asked for again. (A model's answer
        // is on record before it is given.)
        if (!r && r.error().code == errc::actor_down)
          return retry_step(self, r.error());
        if (!r && r.error().code == errc::cancelled)
          return plan_stopped(self);
        if (!r && r.error().code == errc::store_unavailable)
          return retry_step(self, r.error());
        self->state.cycle->decide(std::move(r));
        run_step(self);
      },
      asks ? question_limit(s.settings->plan.ask) : limits::request_timeout);
}

void act(self_pointer self) {
  auto& s = self->state;
  // What was written before this cycle is being committed: what its agents write is not to be in
  // there, half of it perhaps.
  s.act_is_held = s.writing_snapshots;
  if (s.act_is_held)
    return;
  const auto& plan = s.cycle->plan();
  store_request request;
  request.add(
      store::enqueue_cycle{s.settings->kernel_id, s.cycle->id(), plan.specs, plan.decisions});
  for (const auto& [agent, slot] : plan.agent_slots)
    request.add(
        store::put_fact{"slots:" + s.settings->kernel_id, agent, std::to_string(to_unix_ms(slot))});
  if (auto trouble = s.cycle->trouble(); !trouble.empty())
    request.add(store::put_fact{trouble_scope(self), s.cycle->id(), std::move(trouble)});
  ask<store_reply>(self, s.parts.store, std::move(request), [self](result<store_reply> r) {
    const auto done = as_void(r);
    auto& st = self->state;
    st.cycle->act(done, time_of_cycle(self));
    if (!done)
      return retry_step(self, done.error());
    for (const auto& d : st.cycle->plan().decisions)
      announce(self, "act", d.agent_id,
               d.dispatched
                   ? "dispatched"
                   : "skipped (" + d.reason + ")" + (d.detail.empty() ? "" : ": " + d.detail));
    // What was queued just now is not final yet: its end is told, and looked for by the poll.
    if (!st.cycle->plan().specs.empty() && !st.finishing && !st.cycle->cancel_requested())
      return retry_in(self, st.parts.context->housekeeping.rows_poll);
    run_step(self);
  });
}

void announce_ends(self_pointer self) {
  auto& s = self->state;
  for (const auto& d : s.cycle->rows()) {
    if (!is_final(d.status) || !s.told.insert(d.dispatch_id).second)
      continue;
    const auto& why = d.status == dispatch_status::done || d.outcome.error.empty()
                          ? d.outcome.summary
                          : d.outcome.error;
    announce(self, "act", d.agent_id, std::string(name_of(d.status)) + ": " + why);
  }
}

} // namespace

orient_questions ask_orientation(self_pointer self, store_request& request) {
  const auto& settings = *self->state.settings;
  store::list_dispatches recent;
  recent.kernel_id = settings.kernel_id;
  recent.ended_only = true;
  recent.limit = limits::recent_results;
  orient_questions asked{request.add(store::latest_per_agent{settings.kernel_id}),
                         request.add(std::move(recent)),
                         request.add(store::list_pauses{settings.kernel_id}),
                         request.add(store::get_facts{"slots:" + settings.kernel_id}),
                         {}};
  if (queue::has_budgets(settings))
    asked.spent = request.add(queue::todays_totals());
  return asked;
}

void announce(self_pointer self, const std::string& phase, const std::string& agent,
              const std::string& text) {
  auto& s = self->state;
  cycle_event e;
  e.kernel_id = s.settings->kernel_id;
  e.cycle_id = s.cycle ? s.cycle->id() : "";
  e.phase = phase;
  e.agent_id = agent;
  e.text = text;
  e.at = now_of(self);
  for (const auto& l : s.listeners)
    self->send(l, e);
}

milliseconds question_limit(const config::adviser& ask) {
  return ask.timeout + 2 * limits::request_timeout;
}

void stop_questions_of(self_pointer self) {
  auto& s = self->state;
  if (s.cycle && (s.cycle->step() == cycle_step::decide || s.cycle->step() == cycle_step::reduce))
    self->send(s.parts.planner, stop_questions{{}, s.settings->kernel_id});
}

void retry_in(self_pointer self, milliseconds delay) {
  self->delayed_send(self, delay, step_tick{{}, ++self->state.step_generation});
}

namespace {

/// What is refused for what it is would be so each second: the cycle ends with that reason.
void give_up(self_pointer self, const error& why) {
  auto& s = self->state;
  spdlog::error("kernel {}: cycle {} cannot {}: {}", s.settings->kernel_id, s.cycle->id(),
                phase_of(s.cycle->step()), to_string(why));
  s.cycle->give_up(why, time_of_cycle(self));
  if (s.finishing && s.cycle->step() <= cycle_step::wait)
    return write_final_block(self);
  run_step(self);
}

} // namespace

void retry_step(self_pointer self, const error& why) {
  auto& s = self->state;
  if (s.cycle && is_final_refusal(why))
    return give_up(self, why);
  const auto text = to_string(why);
  if (s.problem != text)
    spdlog::warn("kernel {}: waiting: {}", s.settings->kernel_id, text);
  s.problem = text;
  retry_in(self, s.parts.context->housekeeping.retry);
}

namespace {

bool waits_for_rows(self_pointer self) {
  const auto& s = self->state;
  return s.cycle && s.cycle->step() == cycle_step::wait && !s.final_block;
}

/// Its deadline has come, or the next slot of the schedule is due, or somebody asks for a run.
bool is_overdue(self_pointer self, cycle_time at) {
  const auto& s = self->state;
  if (at.taken >= s.settings->cycle_deadline)
    return true;
  if (!makes_way(self))
    return false;
  if (!s.admitted.empty() && s.admitted.front().only)
    return true;
  if (!s.parts.context->scheduled || !s.rule)
    return false;
  const auto next = s.rule->next_after(std::max(s.cycle->slot(), s.cycle->started_at()));
  return next && at.now >= s.rule->due_at(s.settings->kernel_id, *next);
}

/// `again`: they may have changed since they were asked for.
void take_rows(self_pointer self, result<std::vector<dispatch>> rows, bool again) {
  auto& s = self->state;
  const auto failed = rows ? std::optional<error>{} : rows.error();
  const auto at = time_of_cycle(self);
  s.cycle->wait(std::move(rows), is_overdue(self, at), at,
                s.parts.configuration->node_settings.retention);
  if (failed && s.finishing)
    return write_final_block(self);
  if (failed)
    return retry_step(self, *failed);
  s.problem.clear();
  announce_ends(self);
  // What is to be enqueued again is so by the next start.
  const auto step = s.cycle->step();
  if (s.finishing && (step == cycle_step::act || step == cycle_step::release))
    return write_final_block(self);
  if (s.cycle->step() != cycle_step::wait)
    return run_step(self);
  if (s.finishing && !again)
    return write_final_block(self);
  if (s.cycle->cancel_requested())
    cancel_running_cycle(self);
  if (again)
    return ask_rows(self);
  retry_in(self, s.parts.context->housekeeping.rows_poll);
}

/// A claim is tried again each second; a refusal may have been of a moment.
constexpr int most_refused_claims = 5;

/// Nothing of this cycle runs, and something of it cannot begin.
bool is_stuck(self_pointer self, const dispatches_settled& news) {
  auto& s = self->state;
  for (const auto& refused : news.refused)
    for (const auto& d : s.cycle->rows())
      if (refused.kernel_id == s.settings->kernel_id && d.agent_id == refused.agent_id &&
          d.status == dispatch_status::pending)
        return ++s.refused_claims >= most_refused_claims &&
               std::ranges::none_of(s.cycle->rows(), [](const dispatch& each) {
                 return each.status == dispatch_status::running;
               });
  return false;
}

} // namespace

void hear_settled(self_pointer self, const dispatches_settled& news) {
  auto& s = self->state;
  if (!waits_for_rows(self))
    return;
  if (is_stuck(self, news))
    return give_up(self, news.refused.front().why);
  if (!news.refused.empty() && news.dispatch_ids.empty())
    return ask_rows(self);
  s.refused_claims = 0;
  ask_rows(self);
}

bool makes_way(self_pointer self) {
  return waits_for_rows(self) && self->state.settings->ends_with_slot;
}

void ask_rows(self_pointer self) {
  auto& s = self->state;
  if (!waits_for_rows(self))
    return;
  if (s.asking_rows) {
    s.rows_again = true;
    return;
  }
  s.asking_rows = true;
  store::list_dispatches op;
  op.kernel_id = s.settings->kernel_id;
  op.cycle_id = s.cycle->id();
  op.limit = rows_of_a_cycle;
  ask_store(self, s.parts.store, std::move(op), [self](result<std::vector<dispatch>> rows) {
    auto& st = self->state;
    st.asking_rows = false;
    const bool again = std::exchange(st.rows_again, false);
    if (st.cycle && st.cycle->step() == cycle_step::wait)
      take_rows(self, std::move(rows), again);
  });
}

void release_act(self_pointer self) {
  auto& s = self->state;
  if (s.writing_snapshots || !std::exchange(s.act_is_held, false))
    return;
  // Cancelled while it was held: the store has not heard of its agents yet.
  if (s.cycle && s.cycle->cancel_requested())
    s.cycle->empty_plan();
  run_step(self);
}

void run_step(self_pointer self) {
  auto& s = self->state;
  if (!s.cycle || s.final_block)
    return;
  ++s.step_generation; // ticks of earlier steps are void
  if (auto passed = faults::pass("kernel.step"); !passed)
    return retry_step(self, passed.error());
  switch (s.cycle->step()) {
  case cycle_step::begin:
  case cycle_step::perceive:
    return perceive(self);
  case cycle_step::orient:
    return orient(self);
  case cycle_step::wake:
    return wake(self);
  case cycle_step::decide:
    return decide(self);
  case cycle_step::act:
    return act(self);
  case cycle_step::release:
    return release(self);
  case cycle_step::wait:
    return ask_rows(self);
  default:
    return run_record_step(self);
  }
}

} // namespace boyd::kernel_impl
