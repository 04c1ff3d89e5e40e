#include "actors/kernel/cycle_core.hpp"

#include "boyd/core/invariant.hpp"
#include "boyd/core/text.hpp"
#include "boyd/effects/run_facts.hpp"
#include "boyd/plan/recent_results.hpp"
#include "boyd/plan/slots.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace boyd {

namespace {

/// How a dispatch stands that is not final when the cycle is recorded.
std::string standing_of(const dispatch& d) {
  const char* how = d.status == dispatch_status::running ? "still running"
                    : d.attempt > 0                      ? "waiting for another attempt"
                                                         : "not started";
  return std::string(how) + " at the cycle's deadline";
}

std::string summary_of(const dispatch& d) {
  const auto& text = d.status == dispatch_status::failed && !d.outcome.error.empty()
                         ? d.outcome.error
                         : d.outcome.summary;
  return std::string(cut_characters(first_line(text), limits::summary_characters));
}

} // namespace

const char* phase_of(cycle_step s) noexcept {
  switch (s) {
  case cycle_step::begin:
  case cycle_step::perceive:
    return "perceive";
  case cycle_step::orient:
  case cycle_step::wake:
    return "orient";
  case cycle_step::decide:
    return "decide";
  case cycle_step::act:
  case cycle_step::release:
  case cycle_step::wait:
    return "act";
  case cycle_step::done:
    return "idle";
  default:
    return "record";
  }
}

cycle_status status_of(int dispatched, int succeeded, bool broken) noexcept {
  if (broken)
    return cycle_status::error;
  if (succeeded == dispatched)
    return cycle_status::success;
  return succeeded == 0 ? cycle_status::failed : cycle_status::partial_success;
}

cycle_core::cycle_core(const config::kernel& kernel, utc_time since)
    : kernel_(&kernel), since_(since) {}

cycle_core::cycle_core(const config::kernel& kernel, std::string cycle_id, std::string node_id,
                       const occurrence& slot, utc_time since, utc_time now)
    : cycle_core(kernel, since) {
  record_.cycle_id = std::move(cycle_id);
  record_.kernel_id = kernel.kernel_id;
  record_.scheduled_at = slot.scheduled_at;
  record_.started_at = now;
  record_.node_id = std::move(node_id);
  by_hand_ = slot.trigger != plan::schedule_trigger;
}

cycle_core cycle_core::resume(const config::kernel& kernel, const cycle_record& row,
                              const std::set<std::string>& decided, const std::string& trouble,
                              utc_time since, std::optional<plan::single_run> only) {
  cycle_core core(kernel, since);
  core.record_ = row;
  const bool recorded = row.status != cycle_status::running;
  core.step_ = !decided.empty() || recorded ? cycle_step::wait : cycle_step::perceive;
  const bool may_hold = core.step_ == cycle_step::wait && !recorded && !only;
  for (const auto& agent : kernel.agents)
    if (may_hold && !agent.after.agents.empty() && !decided.contains(agent.agent_id))
      core.held_.push_back({&agent, {agent.agent_id, true, {}, {}}, agent.priority});
  core.set_only(std::move(only));
  core.goes_on_ = !core.held_.empty();
  if (core.goes_on_)
    core.step_ = cycle_step::perceive;
  if (!trouble.empty())
    core.take_trouble(trouble);
  return core;
}

std::string cycle_core::trouble() const {
  if (!broken_ && problems_.empty() && carried_.empty())
    return {};
  auto all = carried_;
  all.insert(all.end(), problems_.begin(), problems_.end());
  // Texts come from anywhere, and need not be UTF-8.
  return nlohmann::json{{"broken", broken_}, {"problems", all}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void cycle_core::take_trouble(const std::string& text) {
  trouble_is_kept_ = true;
  const auto kept = nlohmann::json::parse(text, nullptr, false);
  if (!kept.is_object()) {
    problems_.emplace_back("cannot read the problems before the restart");
    return;
  }
  if (const auto broken = kept.find("broken"); broken != kept.end() && broken->is_boolean())
    broken_ = broken->get<bool>();
  if (const auto all = kept.find("problems"); all != kept.end() && all->is_array())
    for (const auto& p : *all)
      if (p.is_string())
        problems_.push_back(p.get<std::string>());
}

void cycle_core::problem(const char* where, const error& e) {
  problems_.push_back(std::string(where) + ": " + to_string(e));
}

void cycle_core::carry(std::vector<std::string> problems) {
  carried_ = std::move(problems);
}

std::vector<std::string> cycle_core::untold() const {
  auto all = carried_;
  // A record that was cut off by a crash may fail again in the same way.
  for (const auto& p : problems_)
    if (std::ranges::find(all, p) == all.end())
      all.push_back(p);
  return all;
}

void cycle_core::begin(const result<void>& r) {
  if (r)
    step_ = cycle_step::perceive;
}

void cycle_core::perceive(result<std::string> state, result<gathered_context> context) {
  if (state)
    input_.values.state = std::move(*state);
  else
    problem("perceive", state.error());
  if (context) {
    context_ = std::move(*context);
    for (const auto& p : context_.problems)
      problems_.push_back("perceive: " + p);
  } else {
    problem("perceive", context.error());
  }
  input_.values.goal = context_.goal;
  input_.values.memory = context_.memory;
  input_.buffer = context_.buffer;
  input_.values.skills = context_.skills;
  input_.values.senses = context_.senses;
  step_ = cycle_step::orient;
}

void cycle_core::orient(result<orientation> r, std::optional<plan::quiet_now> quiet,
                        std::map<std::string, plan::schedule_rule> schedules,
                        std::function<std::string()> make_id, utc_time now) {
  if (!r)
    return;
  input_.cycle_id = record_.cycle_id;
  input_.now = now;
  input_.values.time = format_rfc3339(now);
  take_orientation(*r);
  input_.quiet = std::move(quiet);
  input_.schedules = std::move(schedules);
  input_.agent_slots = plan::read_agent_slots(r->agent_slots);
  input_.since = since_;
  input_.make_id = std::move(make_id);
  for (const auto& d : input_.latest)
    input_.last_dispatched_at[d.agent_id] = d.created_at;
  wake_candidates_ = plan::wake_candidates(*kernel_, input_);
  if (wake_candidates_.empty())
    oriented();
  else
    step_ = cycle_step::wake;
}

void cycle_core::take_orientation(orientation& r) {
  input_.values.recent_results = plan::render_recent_results(r.recent);
  input_.latest = std::move(r.latest);
  input_.pauses = std::move(r.pauses);
  input_.spent = std::move(r.spent);
}

void cycle_core::oriented() {
  step_ = goes_on_ ? cycle_step::wait : cycle_step::decide;
}

void cycle_core::wake(result<wake_results> r) {
  if (r)
    input_.wake = std::move(r->agents);
  else
    problem("wake", r.error());
  // A broken check must not silence its agent.
  for (const auto& id : wake_candidates_)
    if (input_.wake.find(id) == input_.wake.end())
      input_.wake[id] = {plan::wake_kind::error, r ? "no answer" : to_string(r.error())};
  oriented();
}

void cycle_core::decide(result<plan::plan_output> r) {
  if (r) {
    plan_ = std::move(*r);
    if (!plan_.problem.empty())
      problems_.push_back("planner: " + plan_.problem);
  } else {
    problem("planner", r.error());
    broken_ = true;
    for (const auto& a : kernel_->agents)
      if (!input_.only || input_.only->agent_id == a.agent_id)
        plan_.decisions.push_back({a.agent_id, false, "planner", to_string(r.error())});
  }
  if (cancel_requested_)
    empty_plan();
  else
    hold_back();
  step_ = cycle_step::act;
}

void cycle_core::hold_back() {
  std::set<std::string> taking_part;
  for (const auto& d : plan_.decisions)
    if (d.dispatched)
      taking_part.insert(d.agent_id);
  for (const auto& agent : kernel_->agents) {
    const auto takes_part = [&](const std::string& id) { return taking_part.contains(id); };
    if (!takes_part(agent.agent_id) || std::ranges::none_of(agent.after.agents, takes_part))
      continue;
    const auto decision =
        std::ranges::find(plan_.decisions, agent.agent_id, &agent_decision::agent_id);
    const auto spec = std::ranges::find(plan_.specs, agent.agent_id, &dispatch_spec::agent_id);
    if (decision == plan_.decisions.end() || spec == plan_.specs.end())
      continue;
    held_agent held{&agent, std::move(*decision), spec->priority};
    if (auto slot = plan_.agent_slots.extract(agent.agent_id))
      held.slot = slot.mapped();
    held_.push_back(std::move(held));
    plan_.decisions.erase(decision);
    plan_.specs.erase(spec);
  }
}

std::optional<agent_decision> cycle_core::decision_on(const held_agent& held) const {
  const auto skip = [&](const char* reason, std::string why) {
    return agent_decision{held.decision.agent_id, false, reason, std::move(why)};
  };
  if (cancel_requested_)
    return skip("planner", "the cycle was cancelled by the next slot");
  std::string waits;
  std::string not_done;
  for (const auto& id : held.agent->after.agents) {
    const auto row = std::ranges::find(rows_, id, &dispatch::agent_id);
    const bool is_held = std::ranges::any_of(
        held_, [&](const held_agent& other) { return other.decision.agent_id == id; });
    if (is_held || (row != rows_.end() && !is_final(row->status)))
      waits = id;
    else if (not_run_.contains(id))
      not_done = id + " was skipped";
    else if (row != rows_.end() && row->status != dispatch_status::done)
      not_done = id + " is " + std::string(name_of(row->status));
  }
  if (held.agent->after.need_success && !not_done.empty())
    return skip("after", not_done);
  if (!waits.empty() && overdue_)
    return skip("after", waits + " had not ended when the cycle was recorded");
  return waits.empty() ? std::optional(held.decision) : std::nullopt;
}

bool cycle_core::can_release() const {
  return std::ranges::any_of(held_,
                             [this](const auto& held) { return decision_on(held).has_value(); });
}

void cycle_core::release(result<orientation> r) {
  if (!r)
    return;
  take_orientation(*r);
  const auto all = plan::plan_static(*kernel_, input_);
  plan_ = {};
  // One that is skipped may be what another one waits for.
  for (auto it = held_.begin(); it != held_.end();) {
    auto decision = decision_on(*it);
    if (!decision) {
      ++it;
      continue;
    }
    const auto held = std::move(*it);
    held_.erase(it);
    it = held_.begin();
    const auto spec =
        std::ranges::find(all.specs, held.decision.agent_id, &dispatch_spec::agent_id);
    const auto now =
        std::ranges::find(all.decisions, held.decision.agent_id, &agent_decision::agent_id);
    // A pause, say, that came meanwhile.
    if (decision->dispatched && spec == all.specs.end() && now != all.decisions.end())
      *decision = *now;
    if (decision->dispatched && spec != all.specs.end()) {
      plan_.specs.push_back(*spec);
      plan_.specs.back().priority = held.priority;
      if (held.slot)
        plan_.agent_slots[held.decision.agent_id] = *held.slot;
    } else {
      not_run_.insert(held.decision.agent_id);
    }
    plan_.decisions.push_back(std::move(*decision));
  }
  step_ = plan_.decisions.empty() ? cycle_step::wait : cycle_step::act;
}

void cycle_core::empty_plan() {
  for (auto& d : plan_.decisions)
    if (std::exchange(d.dispatched, false))
      d.reason = "planner", d.detail = "the cycle was cancelled by the next slot";
  plan_.specs.clear();
  plan_.agent_slots.clear();
}

void cycle_core::act(const result<void>& r, cycle_time at) {
  if (!r)
    return;
  for (const auto& d : plan_.decisions)
    note_reason(d);
  looked_at_ = at;
  trouble_is_kept_ = !trouble().empty();
  step_ = cycle_step::wait;
}

void cycle_core::note_reason(const agent_decision& d) {
  if (d.dispatched && !d.detail.empty())
    reasons_[d.agent_id] = d.detail;
}

void cycle_core::wait(result<std::vector<dispatch>> rows, bool overdue, cycle_time at,
                      milliseconds kept) {
  if (!rows)
    return;
  // Who ended and is not there any more was too old to be kept; its end is known. Who had not ended
  // is lost, also where nobody has its request any more: of a resumed cycle, or at a second loss.
  auto known = std::exchange(rows_, std::move(*rows));
  for (auto& d : known) {
    if (has_row_of(d.agent_id))
      continue;
    if (is_final(d.status))
      rows_.push_back(std::move(d));
    else
      gone_.insert(std::move(d.agent_id));
  }
  std::erase_if(gone_, [this](const std::string& agent) { return has_row_of(agent); });
  std::ranges::sort(rows_,
                    [](const dispatch& a, const dispatch& b) { return a.agent_id < b.agent_id; });
  // A resumed cycle whose row stands already is only recorded to its end.
  const bool recorded = record_.status != cycle_status::running;
  // After so long without a look some may have ended, and be too old to be kept. A machine that was
  // suspended knows by the one clock, one whose clock was set back by the other.
  if (looked_at_)
    unwatched_ =
        unwatched_ || at.taken - looked_at_->taken >= kept || at.now - looked_at_->now >= kept;
  looked_at_ = at;
  auto missing = recorded || cancel_requested_ ? std::vector<dispatch_spec>{} : without_row();
  if (!missing.empty() && !overdue && !unwatched_)
    return enqueue_again(std::move(missing));
  overdue_ = overdue;
  if (!recorded && can_release()) {
    step_ = cycle_step::release;
    return;
  }
  if (!recorded && !overdue && !unfinished().empty())
    return;
  if (!recorded) {
    // No success of the others alone: what became of these nobody knows.
    const auto lost = cancel_requested_ ? 0 : lost_with(missing);
    broken_ = broken_ || lost > 0;
    if (lost > 0)
      problems_.push_back("act: " + std::to_string(lost) +
                          " queued dispatches are missing in the database");
    judge(at);
    judged_ = true;
  }
  step_ = cycle_step::gather;
}

bool cycle_core::has_row_of(const std::string& agent_id) const {
  return std::ranges::find(rows_, agent_id, &dispatch::agent_id) != rows_.end();
}

std::vector<dispatch_spec> cycle_core::without_row() const {
  auto missing = plan_.specs;
  std::erase_if(missing, [this](const dispatch_spec& spec) { return has_row_of(spec.agent_id); });
  return missing;
}

std::size_t cycle_core::lost_with(const std::vector<dispatch_spec>& missing) const {
  auto lost = gone_;
  for (const auto& spec : missing)
    lost.insert(spec.agent_id);
  return lost.size();
}

void cycle_core::enqueue_again(std::vector<dispatch_spec> lost) {
  // The others must not be: what has ended and was removed would run once more.
  plan_.specs = std::move(lost);
  problems_.push_back("act: the database has lost " + std::to_string(plan_.specs.size()) +
                      " acknowledged dispatches (a failover?); they are queued again");
  step_ = cycle_step::act;
}

std::vector<std::string> cycle_core::unfinished() const {
  std::vector<std::string> ids;
  for (const auto& d : rows_)
    if (!is_final(d.status))
      ids.push_back(d.dispatch_id);
  return ids;
}

void cycle_core::judge(cycle_time at, const char* cut_short) {
  record_.dispatched = static_cast<int>(rows_.size());
  record_.succeeded = record_.failed = 0;
  record_.agents.clear();
  record_.failed_agents.clear();
  int unfinished_count = 0;
  for (const auto& d : rows_) {
    std::string summary = summary_of(d);
    if (d.status == dispatch_status::done) {
      ++record_.succeeded;
    } else if (is_final(d.status)) {
      ++record_.failed;
      record_.failed_agents.push_back(d.agent_id);
    } else {
      ++unfinished_count;
      summary = cut_short != nullptr ? cut_short : standing_of(d);
    }
    record_.agents.push_back({d.agent_id, std::string(name_of(d.status)), std::move(summary)});
  }
  invariant(record_.succeeded + record_.failed + unfinished_count == record_.dispatched,
            "cycle: every dispatch is counted once");
  // What still runs is neither success nor failure; with it alone the cycle is a partial success.
  record_.status = status_of(record_.dispatched, record_.succeeded, broken_);
  if (record_.status == cycle_status::failed && unfinished_count > 0)
    record_.status = cycle_status::partial_success;
  record_.finished_at = at.now;
  record_.duration_ms = at.taken.count();
  record_.error.clear();
  const auto tell = [&](const std::string& what) {
    record_.error += (record_.error.empty() ? "" : "; ") + what;
  };
  for (const auto& p : carried_)
    tell("before this cycle: " + p);
  for (const auto& p : problems_)
    tell(p);
}

void cycle_core::give_up(const error& why, cycle_time at) {
  problem(phase_of(step_), why);
  if (step_ == cycle_step::record)
    return shorten_record();
  if (step_ == cycle_step::gather) {
    step_ = cycle_step::record;
    return;
  }
  if (step_ > cycle_step::record)
    return;
  if (record_.status == cycle_status::running) {
    broken_ = true;
    judge(at);
    judged_ = true;
  }
  step_ = cycle_step::gather;
}

void cycle_core::shorten_record() {
  switch (form_) {
  case record_form::whole:
    form_ = record_form::alone;
    record_.error += (record_.error.empty() ? "" : "; ") + problems_.back();
    return;
  case record_form::alone:
    form_ = record_form::bare;
    record_.agents.clear();
    record_.failed_agents.clear();
    broken_ = true;
    record_.status = status_of(record_.dispatched, record_.succeeded, broken_);
    record_.error = "the database refused the record of this cycle; the log has the reason";
    return;
  case record_form::bare:
    is_unrecorded_ = true;
    step_ = cycle_step::done;
    return;
  }
}

void cycle_core::gather(std::vector<dispatch> late, bool more) {
  late_ = std::move(late);
  if (more) {
    problems_.push_back("recent_actions: only " + std::to_string(late_.size()) +
                        " of the late results are listed; list all with: boyd dispatches ls");
    record_.error += (record_.error.empty() ? "" : "; ") + problems_.back();
  }
  const bool asks = kernel_->reduce.type == config::reducer::type_t::llm;
  step_ = asks && !told_outcomes().empty() ? cycle_step::reduce : cycle_step::record;
}

void cycle_core::reduce(result<reduction> r) {
  // Without it nothing is missing: the rules do.
  if (r)
    worded_ = std::move(r->lines);
  step_ = cycle_step::record;
}

void cycle_core::recorded(const result<void>& r) {
  if (!r)
    return;
  problems_.clear(); // they stand in the row
  if (judged_)
    carried_.clear();
  step_ = cycle_step::follow;
}

void cycle_core::followed() {
  step_ = cycle_step::done;
}

std::vector<effects::effect> cycle_core::effects() const {
  std::vector<effects::effect> all;
  auto facts = edges();
  auto about = effects::about_of(facts);
  const auto ended = record_.finished_at.value_or(record_.started_at);
  for (auto& part : effects::in_parts(std::move(facts))) {
    auto& e = all.emplace_back();
    e.kind = effects::effect_kind::edges;
    e.cycle_id = record_.cycle_id;
    e.edges = std::move(part);
  }
  if (!about.empty())
    all.push_back({.kind = effects::effect_kind::lessons,
                   .cycle_id = record_.cycle_id,
                   .ended = ended,
                   .about = std::move(about)});
  auto& e = all.emplace_back();
  e.kind = effects::effect_kind::history;
  e.cycle_id = record_.cycle_id;
  e.status = record_.status;
  e.ended = ended;
  if (form_ != record_form::bare)
    e.outcomes = outcomes();
  return all;
}

std::vector<graph::edge> cycle_core::edges() const {
  std::vector<graph::edge> all;
  const auto at = record_.finished_at.value_or(record_.started_at);
  const auto* planner = kernel_->plan.type == config::planner::type_t::llm ? "llm" : "static";
  for (const auto& d : rows_) {
    const auto why = reasons_.find(d.agent_id);
    all.push_back(effects::decision_of(d, record_.cycle_id, planner,
                                       why == reasons_.end() ? "" : why->second, at));
  }
  for (const auto* list : {&rows_, &late_})
    for (const auto& d : *list)
      if (is_final(d.status))
        for (auto& fact : effects::facts_of(d, at))
          all.push_back(std::move(fact));
  return all;
}

std::vector<state::action_line> cycle_core::outcomes() const {
  std::vector<state::action_line> all;
  for (const auto* list : {&late_, &rows_})
    for (const auto& d : *list) {
      const auto worded = worded_.find(d.dispatch_id);
      all.push_back({d.finished_at.value_or(record_.finished_at.value_or(record_.started_at)),
                     d.agent_id, worded == worded_.end() ? summary_of(d) : worded->second,
                     std::string(name_of(d.status))});
    }
  return all;
}

std::vector<plan::told_outcome> cycle_core::told_outcomes() const {
  std::vector<plan::told_outcome> all;
  for (const auto* list : {&late_, &rows_})
    for (const auto& d : *list)
      all.push_back({d.dispatch_id, d.agent_id, std::string(name_of(d.status)), summary_of(d)});
  return all;
}

cycle_record cycle_core::snapshot(cycle_time at) const {
  cycle_core copy = *this;
  copy.judge(at, "stopped by shutdown, continues at the next start");
  copy.record_.status = cycle_status::running;
  copy.record_.finished_at.reset();
  return copy.record_;
}

} // namespace boyd
