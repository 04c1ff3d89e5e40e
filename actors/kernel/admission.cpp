#include "actors/kernel/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/plan/advice.hpp"
#include "boyd/plan/slots.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::kernel_impl {

namespace {

/// Rows of a cycle's decisions that are the kernel's own: what models were asked.
constexpr std::size_t voices = 2;

std::string pause_reason(self_pointer self, const std::vector<pause_record>& pauses) {
  for (const auto& p : pauses)
    if (p.agent_id.empty())
      return p.reason.empty() ? "no reason given" : p.reason;
  if (auto q = plan::is_quiet(self->state.quiet, now_of(self)))
    return q->reason;
  return {};
}

std::string new_cycle_id(self_pointer self) {
  return make_uuid_v7(now_of(self), *self->state.parts.context->ports.random);
}

/// A slot that has come due may be begun this much later: the store is asked first.
constexpr milliseconds start_margin = 2s;

/// Nothing is in the way of a cycle whose slot is opened now.
bool begins_at_once(self_pointer self) {
  const auto& s = self->state;
  return !s.cycle && !s.opening && !s.stopping && s.loaded && !s.resuming && !s.following &&
         s.to_resume.empty() && s.admitted.empty() && !lacks_commits(self);
}

/// The request for a slot, and for its cycle's row when that begins at once.
store::open_occurrence slot_request(self_pointer self, occurrence slot,
                                    const std::string& cycle_id) {
  const auto& s = self->state;
  store::open_occurrence op{std::move(slot), {}};
  if (op.slot.state != occurrence_state::open || !begins_at_once(self))
    return op;
  op.slot.cycle_id = cycle_id;
  op.cycle =
      cycle_core(*s.settings, cycle_id, s.parts.context->node_id, op.slot, s.since, now_of(self))
          .record();
  return op;
}

using slot_ticket = store_ticket<store::open_occurrence>;

/// Slots that the store has written, in order: what it accepted as open is to be run. Asked for
/// twice before the first answer, as by a reload, a slot is ours both times, and run once. One that
/// is not after the last may be ours as well: that one came from a clock that was wrong. True: one
/// of them is news, ours or of another node, and the running cycle makes room for it.
bool take_slots(self_pointer self, const std::vector<store::open_occurrence>& asked,
                const std::vector<slot_ticket>& tickets, store_reply& answer) {
  auto& s = self->state;
  bool news = false;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto& row = asked[i].slot;
    const auto opened = tickets.at(i).of(answer);
    if (!s.last_slot || row.scheduled_at > *s.last_slot) {
      s.last_slot = row.scheduled_at;
      news = true;
    }
    if (opened && !opened->opened)
      s.progress = now_of(self); // another node has it, or it ran before the clock was set back
    const bool ours = opened && opened->opened && s.taken.insert(row.scheduled_at).second;
    if (!ours || row.state != occurrence_state::open)
      continue;
    s.admitted.push_back(admitted(asked[i], {}));
    news = true;
  }
  return news;
}

/// Slots without an answer that are decided no more: the schedule has changed, or too many others
/// have come due since.
void doubt_others(self_pointer self, const std::vector<occurrence>& decided) {
  auto& s = self->state;
  for (auto it = s.unanswered.begin(); it != s.unanswered.end();) {
    if (std::ranges::find(decided, it->first, &occurrence::scheduled_at) != decided.end()) {
      ++it;
      continue;
    }
    if (it->second.in_doubt)
      s.doubtful.push_back({std::move(it->second.asked)});
    it = s.unanswered.erase(it);
  }
  settle_doubts(self);
}

/// They were asked for, and may have been written. What is doubtful already is decided once, and
/// what another answer has told of is known.
void note_doubt(self_pointer self, const std::vector<store::open_occurrence>& asked) {
  auto& s = self->state;
  for (const auto& op : asked)
    if (!s.taken.contains(op.slot.scheduled_at) &&
        std::ranges::none_of(s.doubtful, [&](const auto& d) { return d.asked.slot == op.slot; }))
      s.unanswered.insert_or_assign(op.slot.scheduled_at, asked_slot{op, true});
}

/// The store has answered for them: none of them is in doubt.
void take_answered(self_pointer self, const std::vector<store::open_occurrence>& asked) {
  auto& s = self->state;
  for (const auto& op : asked) {
    s.unanswered.erase(op.slot.scheduled_at);
    std::erase_if(s.doubtful,
                  [&](const doubtful_slot& d) { return !d.of_trigger && d.asked.slot == op.slot; });
  }
}

/// What is to be asked for a slot. Of a request that is under way the same again, so that both ask
/// for one cycle. What was refused is nothing to go by: since then a later slot may stand for this
/// one. One that the store may have, and that is not to run any more, is looked after apart.
const store::open_occurrence& request_for(self_pointer self, store::open_occurrence now) {
  auto& s = self->state;
  const auto at = now.slot.scheduled_at;
  const auto known = s.unanswered.find(at);
  if (known != s.unanswered.end()) {
    const auto& before = known->second;
    const bool runs = now.slot.state == occurrence_state::open;
    const bool ran = before.asked.slot.state == occurrence_state::open;
    if (before.in_doubt ? runs || !ran : s.asking_slots > 0)
      return before.asked;
    if (before.in_doubt)
      s.doubtful.push_back({before.asked});
  }
  return s.unanswered.insert_or_assign(at, asked_slot{std::move(now)}).first->second.asked;
}

/// Writes the decided rows.
void open_rows(self_pointer self, plan::slot_decision decision) {
  auto& s = self->state;
  doubt_others(self, decision.rows);
  if (decision.rows.empty())
    return look_at(self, decision.look_again);
  store_request request;
  std::vector<store::open_occurrence> asked;
  std::vector<slot_ticket> tickets;
  for (auto& row : decision.rows) {
    row.node_id = s.parts.context->node_id;
    row.created_at = now_of(self);
    const bool is_last = &row == &decision.rows.back();
    auto op =
        is_last ? slot_request(self, row, new_cycle_id(self)) : store::open_occurrence{row, {}};
    asked.push_back(request_for(self, std::move(op)));
    tickets.push_back(request.add(asked.back()));
  }
  ++s.asking_slots;
  ask<store_reply>(self, s.parts.store, std::move(request),
                   [self, decision, asked, tickets](result<store_reply> r) {
                     auto& st = self->state;
                     --st.asking_slots;
                     if (!r) {
                       st.problem = to_string(r.error());
                       if (is_doubt(r.error()))
                         note_doubt(self, asked);
                     } else {
                       take_answered(self, asked);
                       if (take_slots(self, asked, tickets, *r) && decision.cancel_running)
                         cancel_running_cycle(self);
                     }
                     if (st.asking_slots == 0)
                       st.taken.clear();
                     settle_doubts(self);
                     if (!r)
                       return look_at(self, now_of(self) + st.parts.context->housekeeping.retry);
                     start_next(self);
                     look_at(self, decision.look_again);
                   });
}

void refuse(const caf::typed_response_promise<result<trigger_reply>>& promise, std::string reason,
            std::string running) {
  trigger_reply reply;
  reply.reason = std::move(reason);
  reply.cycle_id = std::move(running);
  answer<trigger_reply>(promise, std::move(reply));
}

/// An earlier process left the running cycle: what is asked for now comes behind it. One that this
/// process began and a restarted part resumes is simply running.
bool is_left_over(self_pointer self) {
  const auto& s = self->state;
  return s.resumed && s.cycle->started_at() < s.parts.context->started_at;
}

/// So many runs may wait for the kernel.
constexpr std::size_t most_waiting_runs = 64;

/// The gate's answer to a trigger: empty, or why not.
std::string gate(self_pointer self, const std::vector<pause_record>& pauses,
                 const trigger_cycle& trigger) {
  auto& s = self->state;
  for (const auto& p : pauses)
    if (p.agent_id.empty())
      return "the kernel is paused (" + (p.reason.empty() ? "no reason given" : p.reason) +
             "); to end the pause: boyd resume" +
             (s.parts.configuration->kernels.size() > 1 ? " --kernel " + s.settings->kernel_id
                                                        : "");
  if (auto q = plan::is_quiet(s.quiet, now_of(self)))
    return "quiet hours until " + format_rfc3339(q->until) + " (" + q->reason + ")";
  if (trigger.only && s.admitted.size() >= most_waiting_runs)
    return std::to_string(most_waiting_runs) + " runs are already waiting for the kernel";
  if (trigger.only)
    return {};
  // One trigger at a time: a second one would find the same open gate.
  const bool free = !s.cycle || is_left_over(self);
  if (s.opening || (!s.admitted.empty() && free))
    return "a cycle is about to begin";
  if (free)
    return {};
  switch (s.settings->when.overlap) {
  case config::overlap_policy::skip:
    return "cycle " + s.cycle->id() + " has been running since " +
           format_rfc3339(s.cycle->started_at());
  case config::overlap_policy::queue_one:
  case config::overlap_policy::cancel:
    return s.admitted.empty() ? "" : "a cycle is running and another one is waiting";
  }
  return {};
}

/// The cycle that a trigger which passed the gate will cancel; empty: none.
std::string replaced_by_trigger(self_pointer self, const trigger_cycle& trigger) {
  const auto& s = self->state;
  const bool replaces = !trigger.only &&
                        s.settings->when.overlap == config::overlap_policy::cancel && s.cycle &&
                        !is_left_over(self);
  return replaces ? s.cycle->id() : "";
}

admitted_slot slot_of(self_pointer self, const trigger_cycle& trigger, const std::string& refusal,
                      utc_time at) {
  const auto& s = self->state;
  admitted_slot a;
  a.slot.kernel_id = s.settings->kernel_id;
  a.slot.scheduled_at = at;
  a.slot.trigger = trigger.trigger;
  a.only = trigger.only;
  a.slot.node_id = s.parts.context->node_id;
  a.slot.state = refusal.empty() ? occurrence_state::open : occurrence_state::skipped;
  a.slot.reason = refusal;
  a.slot.created_at = now_of(self);
  a.cycle_id = new_cycle_id(self);
  // The asker is told this id and may wait for it: it holds after a crash, too.
  if (refusal.empty())
    a.slot.cycle_id = a.cycle_id;
  return a;
}

using trigger_promise = caf::typed_response_promise<result<trigger_reply>>;

/// The store did not say that the trigger's slot is written.
void not_opened(self_pointer self, const store::open_occurrence& asked, error why,
                const trigger_promise& promise, std::string replaced = {},
                std::optional<plan::single_run> only = {}) {
  auto& s = self->state;
  if (is_doubt(why) && asked.slot.state == occurrence_state::open) {
    why.next = "it may still start; check with: boyd status";
    s.opening = true;
    // What has ended the store's worker twice is not given to the next one as well.
    s.doubtful.push_back(
        {asked, true, why.code == errc::bug, std::move(replaced), std::move(only)});
    settle_doubts(self);
  }
  answer<trigger_reply>(promise, fail(std::move(why)));
}

void trigger_opened(self_pointer self, admitted_slot slot, const trigger_promise& promise,
                    const std::string& replaced) {
  auto& s = self->state;
  const bool waits = s.cycle.has_value();
  answer<trigger_reply>(promise,
                        trigger_reply{{}, true, slot.cycle_id, waits ? "a cycle is running" : ""});
  s.admitted.push_back(std::move(slot));
  // Not before the slot stands: else a store that goes away would leave neither.
  cancel_replaced(self, replaced);
  start_next(self);
  if (makes_way(self))
    ask_rows(self);
}

void open_trigger(self_pointer self, const trigger_cycle& trigger, std::string refusal,
                  trigger_promise promise, utc_time at) {
  auto& s = self->state;
  auto a = slot_of(self, trigger, refusal, at);
  auto op = slot_request(self, a.slot, a.cycle_id);
  s.opening = s.opening || refusal.empty();
  a = admitted(op, std::move(a.cycle_id), trigger.only);
  store_request request;
  const auto slot = request.add(op);
  if (refusal.empty() && trigger.only)
    request.add(store::put_fact{single_scope(self), a.cycle_id, plan::text_of(*trigger.only)});
  ask<store_reply>(
      self, s.parts.store, std::move(request),
      [self, a, op, trigger, refusal, promise, slot,
       replaced = replaced_by_trigger(self, trigger)](result<store_reply> all) mutable {
        if (refusal.empty())
          self->state.opening = false;
        const auto r = slot.of(all);
        if (!r)
          return not_opened(self, op, r.error(), promise, std::move(replaced), trigger.only);
        // Two triggers in the same millisecond: the ledger is the gate, the next one is free.
        if (!r->opened)
          return open_trigger(self, trigger, refusal, promise,
                              std::max(now_of(self), a.slot.scheduled_at + 1ms));
        if (!refusal.empty())
          return refuse(promise, refusal, self->state.cycle ? self->state.cycle->id() : "");
        trigger_opened(self, std::move(a), promise, replaced);
      });
}

/// A pause is in the way, or the millisecond was taken.
void not_begun(self_pointer self, const trigger_cycle& trigger,
               const result<store::list_pauses::reply>& pauses, trigger_promise promise) {
  if (!pauses)
    return answer<trigger_reply>(promise, fail(pauses.error()));
  open_trigger(self, trigger, gate(self, *pauses, trigger), std::move(promise), now_of(self));
}

/// The same where nothing but a pause can be in the way: the store looks at that itself, and says
/// at once what the cycle begins with.
void begin_trigger(self_pointer self, const trigger_cycle& trigger, trigger_promise promise) {
  auto& s = self->state;
  auto a = slot_of(self, trigger, {}, now_of(self));
  auto op = slot_request(self, a.slot, a.cycle_id);
  op.unless_paused = true;
  a = admitted(op, std::move(a.cycle_id));
  store_request request;
  const auto slot_asked = request.add(op);
  const auto rows_asked = ask_orientation(self, request);
  s.opening = true;
  ask<store_reply>(self, s.parts.store, std::move(request),
                   [self, a, op, trigger, promise, slot_asked, rows_asked,
                    configuration = s.parts.configuration](result<store_reply> r) {
                     auto& st = self->state;
                     st.opening = false;
                     const auto slot = slot_asked.of(r);
                     if (!slot)
                       return not_opened(self, op, slot.error(), promise);
                     if (!slot->opened)
                       return not_begun(self, trigger, rows_asked.pauses.of(*r), promise);
                     answer<trigger_reply>(promise, trigger_reply{{}, true, a.cycle_id, {}});
                     st.admitted.push_back(a);
                     st.rows_at_begin = begin_rows{configuration, rows_asked, std::move(*r)};
                     start_next(self);
                     st.rows_at_begin.reset(); // they were for now
                   });
}

/// Looks up how far the oldest left-over cycle got, and goes on from there.
void resume_next(self_pointer self) {
  auto& s = self->state;
  auto left_over = std::move(s.to_resume.front());
  s.to_resume.pop_front();
  s.resuming = left_over.row.cycle_id;
  store_request request;
  const auto decisions_asked =
      request.add(store::list_decisions{left_over.row.kernel_id,
                                        {},
                                        left_over.row.cycle_id,
                                        {},
                                        voices + s.settings->agents.size() + 1});
  const auto troubles_asked = request.add(store::get_facts{trouble_scope(self)});
  ask<store_reply>(self, s.parts.store, std::move(request),
                   [self, left_over, decisions_asked, troubles_asked](result<store_reply> r) {
                     auto& st = self->state;
                     st.resuming.reset();
                     const auto& row = left_over.row;
                     auto decisions = decisions_asked.of(r);
                     auto troubles = troubles_asked.of(r);
                     if (!decisions || !troubles) {
                       st.to_resume.push_front(left_over);
                       return retry_step(self, decisions ? troubles.error() : decisions.error());
                     }
                     spdlog::info("kernel {}: resuming cycle {}", row.kernel_id, row.cycle_id);
                     st.resumed = true;
                     st.becomes_latest = left_over.becomes_latest;
                     // What a model answered stands there before anything is enqueued.
                     std::set<std::string> decided;
                     for (const auto& each : *decisions)
                       if (!plan::is_kernel_voice(each.decision.agent_id))
                         decided.insert(each.decision.agent_id);
                     st.cycle =
                         cycle_core::resume(*st.settings, row, decided, (*troubles)[row.cycle_id],
                                            st.since, left_over.only);
                     st.cycle->set_by_hand(left_over.by_hand);
                     for (const auto& each : *decisions)
                       st.cycle->note_reason(each.decision);
                     // Of an earlier process's time only the wall clock tells.
                     st.cycle_since =
                         st.parts.context->ports.clock->steady() -
                         std::clamp<milliseconds>(now_of(self) - row.started_at, milliseconds{0},
                                                  st.settings->cycle_deadline);
                     st.progress = now_of(self);
                     st.cycle->carry(std::exchange(st.carried, {}));
                     run_step(self);
                   });
}

} // namespace

admitted_slot admitted(const store::open_occurrence& op, std::string cycle_id,
                       std::optional<plan::single_run> only) {
  if (op.cycle)
    return {op.slot, op.cycle->cycle_id, op.cycle->started_at, std::move(only)};
  return {op.slot, std::move(cycle_id), {}, std::move(only)};
}

void cancel_running_cycle(self_pointer self) {
  auto& s = self->state;
  if (!s.cycle)
    return;
  s.cycle->request_cancel();
  stop_questions_of(self);
  for (const auto& id : s.cycle->unfinished()) {
    ask_store(self, s.parts.store, store::cancel_dispatch{id, "with its cycle"},
              [](result<store::cancel_dispatch::reply>) {
                // A running one is ended below; the rows tell the rest.
              });
    self->send(s.parts.dispatchers, cancel_run{{}, id, cancel_cause::overlap});
  }
}

void cancel_replaced(self_pointer self, const std::string& cycle_id) {
  if (const auto& cycle = self->state.cycle; cycle && cycle->id() == cycle_id)
    cancel_running_cycle(self);
}

std::string missed_slots(self_pointer self) {
  const auto& s = self->state;
  if (!s.parts.context->scheduled || !s.rule || s.stopping || !s.paused.empty())
    return {};
  const auto first = s.rule->next_after(s.progress);
  const auto second = first ? s.rule->next_after(*first) : std::nullopt;
  if (!second || now_of(self) < s.rule->due_at(s.settings->kernel_id, *second) + start_margin)
    return {};
  const auto idle = "no cycle has begun or ended since " + format_rfc3339(s.progress) +
                    ", for at least two slots: ";
  if (!s.cycle)
    return idle + "the next cycle does not start";
  return idle + "cycle " + s.cycle->id() + " is still in phase " + phase_of(s.cycle->step());
}

void look_at(self_pointer self, utc_time when) {
  auto& s = self->state;
  if (s.stopping)
    return;
  // In short steps: the wall clock may jump, and a delayed message cannot.
  const auto delay =
      std::clamp<milliseconds>(when - now_of(self), 1ms, s.parts.context->housekeeping.clock_check);
  self->delayed_send(self, delay, look_tick{{}, ++s.look_generation});
}

namespace {

/// The log has each change of it.
void tell_clock(self_pointer self, std::string note) {
  auto& s = self->state;
  if (note.empty() != s.clock_note.empty()) {
    if (note.empty())
      spdlog::info("kernel {}: the clock has passed the newest slot again", s.settings->kernel_id);
    else
      spdlog::warn("kernel {}: {}", s.settings->kernel_id, note);
  }
  if (!note.empty())
    s.progress = now_of(self); // it waits, and does not stand still
  s.clock_note = std::move(note);
}

} // namespace

void look(self_pointer self) {
  auto& s = self->state;
  if (s.stopping || !s.loaded || !s.parts.context->scheduled || !s.rule)
    return;
  if (s.doubtful.size() > limits::caught_up_slots)
    return look_at(self, now_of(self) + s.parts.context->housekeeping.retry);
  ask_store(self, s.parts.store, store::list_pauses{s.settings->kernel_id},
            [self](result<store::list_pauses::reply> r) {
              auto& st = self->state;
              if (!r) {
                st.problem = to_string(r.error());
                return look_at(self, now_of(self) + st.parts.context->housekeeping.retry);
              }
              if (!st.cycle)
                st.problem.clear();
              st.paused = pause_reason(self, *r);
              if (!st.paused.empty())
                st.progress = now_of(self);
              plan::slot_input in;
              in.kernel_id = st.settings->kernel_id;
              in.node_id = st.parts.context->node_id;
              in.since = st.since;
              in.now = now_of(self);
              in.last_slot = st.last_slot;
              in.look_every = st.parts.context->housekeeping.clock_check;
              // One that only waits for its agents ends now; they go on.
              const bool ends = makes_way(self);
              in.running_cycle = st.cycle && !ends ? st.cycle->id() : "";
              in.running_is_resumed = st.resumed;
              in.waiting = st.admitted.size();
              in.paused = st.paused;
              auto decision = plan::decide_slots(*st.rule, in);
              st.next_slot = decision.next_slot;
              tell_clock(self, plan::clock_note(in, decision));
              const bool is_due = !decision.rows.empty();
              open_rows(self, std::move(decision));
              if (ends && is_due)
                ask_rows(self);
            });
}

void admit_trigger(self_pointer self, trigger_cycle trigger,
                   caf::typed_response_promise<result<trigger_reply>> promise) {
  auto& s = self->state;
  if (s.stopping)
    return refuse(promise, "the node is shutting down", {});
  if (!s.loaded) {
    s.triggers.push_back({std::move(trigger), std::move(promise)});
    return;
  }
  if (!trigger.only && begins_at_once(self) && !plan::is_quiet(s.quiet, now_of(self)))
    return begin_trigger(self, trigger, promise);
  ask_store(self, s.parts.store, store::list_pauses{s.settings->kernel_id},
            [self, trigger, promise](result<store::list_pauses::reply> r) mutable {
              if (!r)
                return answer<trigger_reply>(promise, fail(r.error()));
              open_trigger(self, trigger, gate(self, *r, trigger), promise, now_of(self));
            });
}

void start_next(self_pointer self) {
  auto& s = self->state;
  if (s.cycle || s.stopping || !s.loaded || s.resuming || s.following)
    return;
  if (s.to_resume.empty() && s.admitted.empty())
    return;
  if (lacks_commits(self) && !std::exchange(s.tried_effects, true))
    return follow(self, {}, {}, [] {
      // start_next follows in any case.
    });
  s.tried_effects = false;
  if (!s.to_resume.empty())
    return resume_next(self);
  auto next = std::move(s.admitted.front());
  s.admitted.pop_front();
  s.resumed = false;
  s.becomes_latest = true;
  s.cycle = cycle_core(*s.settings, next.cycle_id.empty() ? new_cycle_id(self) : next.cycle_id,
                       s.parts.context->node_id, next.slot, s.since,
                       next.begun_at.value_or(now_of(self)));
  s.cycle_since = s.parts.context->ports.clock->steady();
  if (next.begun_at)
    s.cycle->begin({});
  s.cycle->set_only(std::move(next.only));
  s.progress = now_of(self);
  s.cycle->carry(std::exchange(s.carried, {}));
  s.told.clear();
  s.refused_claims = 0;
  announce(self, "perceive", {}, "cycle " + s.cycle->id() + " begins");
  run_step(self);
}

} // namespace boyd::kernel_impl
