#include "boyd/improve/cycle_core.hpp"

#include "boyd/improve/patch.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace boyd::improve {

namespace {

/// What takes too long before there is a patch is not the task's fault.
bool counts_as_strike(failure_kind k, phase at) {
  return k == failure_kind::deterministic || k == failure_kind::policy ||
         (k == failure_kind::transient && at == phase::verify);
}

/// Boyd's own, which looks at files in every repository.
constexpr std::string_view own_scanner = "hygiene";

/// Why a cycle without candidates is over.
std::string nothing_found(const scan_results& results) {
  const bool any =
      std::ranges::any_of(results.scanners, [](const auto& s) { return s.name != own_scanner; });
  return any ? "nothing was found"
             : "nothing was checked but the hygiene of files: no tests or scanners were found";
}

template <class T>
void keep_newest(std::vector<T>& list, std::size_t most) {
  if (list.size() > most)
    list.erase(list.begin(), list.end() - static_cast<std::ptrdiff_t>(most));
}

/// How often a patch for it came to nothing: so much stronger is who is asked next.
std::size_t rung_for(const candidate& task, const std::vector<failure_entry>& log) {
  return static_cast<std::size_t>(std::ranges::count_if(log, [&](const failure_entry& f) {
    return f.task_id == task.task_id &&
           (f.kind == failure_kind::deterministic || f.kind == failure_kind::policy);
  }));
}

/// An id names a second: of several cycles in one, the later ones take the seconds behind it.
std::string free_id(const std::string& earlier, utc_time now) {
  constexpr int most = 60; // an earlier cycle further ahead had another clock
  auto id = cycle_id_of(now);
  for (int i = 1; i <= most && id <= earlier; ++i)
    id = cycle_id_of(now + i * 1s);
  return id <= earlier ? cycle_id_of(now) : id;
}

/// Why tests that took too long verify nothing; empty: all came to their end.
std::string why_late(const scan_results& r) {
  const auto late = std::ranges::find_if(
      r.scanners, [](const auto& s) { return s.is_test && !s.longer_than.empty(); });
  return late == r.scanners.end() ? std::string()
                                  : late->name + " took longer than " + late->longer_than +
                                        ", so no change can be verified: raise its timeout "
                                        "(improve.scanners[].timeout)";
}

} // namespace

cycle_core cycle_core::fresh(const cycle_state& earlier, const cycle_options& options,
                             utc_time now) {
  cycle_state s;
  s.cycle_id = free_id(earlier.cycle_id, now);
  s.started_at = now;
  s.applies = options.apply;
  s.wants_approval = options.approve;
  s.commits = options.auto_commit;
  s.failure_log = earlier.failure_log;
  s.successes = earlier.successes;
  s.strikes = earlier.strikes;
  s.paused_tasks = earlier.paused_tasks;
  s.quarantined = earlier.quarantined;
  s.set_aside = earlier.set_aside;
  s.answers = earlier.answers;
  s.untold = earlier.untold;
  return cycle_core(std::move(s), options);
}

result<cycle_core> cycle_core::resumed(cycle_state open, const cycle_options& options) {
  if (open.awaits_approval() && open.wants_approval) {
    if (digest_of(open.execution.patch->changes) != options.approved)
      return fail(errc::refused,
                  options.approved.empty()
                      ? "cycle " + open.cycle_id + " waits for the approval of its patch"
                      : "what waits for approval is not what was approved",
                  {},
                  "look at the patch, then give its digest: --resume --approved " +
                      open.execution.patch->digest);
    open.status = improve_status::running;
    open.approved = options.approved;
    open.completed_at.reset();
    return cycle_core(std::move(open), options);
  }
  if (!open.is_open())
    return fail(errc::refused,
                "no cycle is interrupted: the last one, " + open.cycle_id + ", is " +
                    std::string(name_of(open.status)),
                {}, "begin another one without --resume");
  return cycle_core(std::move(open), options);
}

void cycle_core::complete(phase done, phase next) {
  state_.last_completed = done;
  state_.at = next;
}

cycle_effects cycle_core::begin(utc_time now) {
  switch (state_.at) {
  case phase::boot:
    return {saved(), effect::look{}};
  case phase::scan:
  case phase::sense: // the findings are gone
    return {effect::scan{}};
  case phase::select:
    return {effect::look{}}; // what was so before the crash may not be so now
  case phase::execute:
    restarts_ = state_.outcome.empty();
    return {saved(), effect::roll_back{}};
  case phase::verify:
    if (!state_.outcome.empty())
      return {effect::roll_back{}}; // it had failed already
    state_.verification = {};
    return {effect::compare{}};
  case phase::learn:
    return learn(now);
  case phase::checkpoint:
    break;
  }
  return checkpoint(now);
}

cycle_effects cycle_core::on_look(const preflight& p, utc_time now) {
  preflight_ = p;
  has_looked_ = true;
  state_.base = p.head;
  if (state_.at != phase::boot)
    return select(now);
  complete(phase::boot, phase::scan);
  return {saved(), effect::scan{}};
}

cycle_effects cycle_core::on_scan(const std::vector<finding>& findings, scan_results results,
                                  utc_time now) {
  state_.results = std::move(results);
  complete(phase::scan, phase::sense);
  cycle_effects effects{saved()};
  // SENSE: what happened to these tasks before decides about their order.
  take_up_changed(state_, findings);
  state_.candidates = candidates_of(findings, state_);
  complete(phase::sense, phase::select);
  effects.emplace_back(saved());
  if (!has_looked_) {
    effects.emplace_back(effect::look{}); // resumed behind BOOT
    return effects;
  }
  for (auto& e : select(now))
    effects.push_back(std::move(e));
  return effects;
}

cycle_effects cycle_core::select(utc_time now) {
  const auto* chosen = choose(state_);
  const auto blocked =
      std::ranges::find_if(state_.results.scanners, [](const auto& s) { return s.blocked; });
  if (chosen == nullptr) {
    if (!state_.candidates.empty())
      return stop(improve_status::paused,
                  "nothing is left to do: all " + std::to_string(state_.candidates.size()) +
                      " candidates are blocked, paused or quarantined" +
                      (state_.paused_tasks.empty() && state_.quarantined.empty()
                           ? ""
                           : "; to take one of these up again: boyd improve retry TASK"),
                  now);
    if (blocked != state_.results.scanners.end())
      return stop(improve_status::paused, blocked->name + " could not run: " + blocked->problem,
                  now);
    auto late = state_.applies ? why_late(state_.results) : std::string();
    return late.empty() ? stop(improve_status::completed, nothing_found(state_.results), now)
                        : stop(improve_status::paused, std::move(late), now);
  }
  state_.selected = *chosen;
  if (!state_.applies)
    return stop(improve_status::completed, "a dry run: nothing was changed", now);
  if (!preflight_.hindrance.empty() || !preflight_.dirty.empty())
    return stop(improve_status::paused,
                preflight_.hindrance.empty() ? preflight_.dirty : preflight_.hindrance, now);
  // What tests cannot tell now they cannot tell of a patch either.
  if (auto why = why_late(state_.results); !why.empty())
    return stop(improve_status::paused, std::move(why), now);
  const auto silent = std::ranges::find_if(state_.results.scanners,
                                           [](const auto& s) { return s.blocked && s.is_test; });
  if (silent != state_.results.scanners.end())
    return stop(improve_status::paused,
                silent->name + " could not run, so no change can be verified: " + silent->problem,
                now);
  complete(phase::select, phase::execute);
  climb(rung_for(*state_.selected, state_.failure_log));
  cycle_effects effects{saved()};
  effects.push_back(begun());
  return effects;
}

/// Programs may tell another thing the next time; Boyd's own eyes do not.
cycle_effect cycle_core::begun() const {
  if (state_.selected->what.from == finding_source::hygiene)
    return asked();
  return effect::recheck{*state_.selected};
}

cycle_effects cycle_core::on_recheck(const check_end& c, utc_time now) {
  if (c.passed)
    return fail_task(failure_kind::flaky, "it was not found when the scanner ran again", now);
  if (c.failure == failure_kind::flaky)
    return fail_task(failure_kind::flaky, c.detail, now);
  if (c.failure == failure_kind::environment || c.failure == failure_kind::transient)
    return fail_task(c.failure, "it could not be checked again: " + c.detail, now);
  if (!c.could_run)
    return fail_task(failure_kind::environment, "its proof does not work: " + c.detail, now);
  state_.execution.evidence = c.printed;
  return ask_again();
}

cycle_effects cycle_core::ask_again() {
  return {saved(), asked()};
}

effect::ask cycle_core::asked() const {
  const auto rung = state_.execution.rung;
  const bool edits = rung < executors_.size() && executors_[rung].edits;
  return {*state_.selected, state_.execution.executor, edits};
}

/// The strongest is asked again where there is no stronger one.
void cycle_core::climb(std::size_t rung) {
  if (executors_.empty())
    return;
  state_.execution.rung = std::min(rung, executors_.size() - 1);
  state_.execution.executor = executors_[state_.execution.rung].name;
}

cycle_effects cycle_core::on_answer(answer_end a, utc_time now) {
  ++state_.answers;
  state_.execution.spent += a.spent;
  if (a.failure == failure_kind::transient && ++passing_failures_ < most_tries)
    return ask_again();
  if (a.failure != failure_kind::none)
    return fail_task(a.failure, "the executor failed: " + a.reason, now);
  passing_failures_ = 0;
  ++state_.execution.tries;
  return {effect::judge{std::move(a.text), a.is_diff}};
}

/// Nobody's fault: no strike.
cycle_effects cycle_core::on_disturbed(std::string reason, const spending& spent, utc_time now) {
  state_.execution.spent += spent;
  return fail_task(failure_kind::environment, std::move(reason), now);
}

cycle_effects cycle_core::on_judged(result<accepted_patch> patch, utc_time now) {
  if (!patch) {
    state_.execution.refusals.push_back(to_string(patch.error()));
    if (state_.execution.tries < most_tries)
      return ask_again();
    if (state_.execution.rung + 1 < executors_.size()) {
      climb(state_.execution.rung + 1);
      state_.execution.tries = 0;
      return ask_again();
    }
    return fail_task(patch.error().code == errc::refused ? failure_kind::policy
                                                         : failure_kind::deterministic,
                     "no usable patch in " + std::to_string(most_tries) +
                         " tries; the last one: " + to_string(patch.error()),
                     now);
  }
  state_.execution.patch = std::move(*patch);
  if (state_.execution.patch->summary.empty())
    state_.execution.patch->summary = "mends: " + state_.selected->title;
  if (state_.wants_approval)
    return stop(improve_status::paused,
                "the patch waits for a person; to apply it: --apply --resume --approved " +
                    state_.execution.patch->digest,
                now);
  return {saved(), effect::apply{*state_.execution.patch}};
}

cycle_effects cycle_core::on_applied(const result<void>& done, utc_time now) {
  if (!done)
    return fail_task(failure_kind::environment,
                     "the patch could not be applied: " + to_string(done.error()), now);
  state_.execution.applied = true;
  complete(phase::execute, phase::verify);
  return {saved(), effect::prove{*state_.selected}};
}

/// Before the proof, after a resume; and behind the gate, so that what was verified is what stays.
cycle_effects cycle_core::on_compared(const result<bool>& stands, utc_time now) {
  if (!stands)
    return fail_task(failure_kind::environment, to_string(stands.error()), now);
  if (!*stands)
    return fail_task(failure_kind::environment,
                     state_.verification.gate_passed
                         ? "the patched files were changed again while they were verified"
                         : "the patched files were changed again before they were verified",
                     now);
  if (!state_.verification.gate_passed)
    return {effect::prove{*state_.selected}};
  state_.outcome = "SUCCESS";
  state_.reason = state_.execution.patch->summary;
  complete(phase::verify, phase::learn);
  cycle_effects effects{saved()};
  for (auto& e : learn(now))
    effects.push_back(std::move(e));
  return effects;
}

cycle_effects cycle_core::on_proved(const check_end& c, utc_time now) {
  state_.verification.proof_passed = c.passed;
  state_.verification.detail = c.detail;
  if (c.passed)
    return {effect::guard{}};
  return fail_task(c.failure, "the proof failed: " + c.detail, now);
}

cycle_effects cycle_core::on_guarded(const check_end& c, utc_time now) {
  state_.verification.gate_passed = c.passed;
  state_.verification.detail = c.detail;
  if (!c.passed)
    return fail_task(c.failure, "the gate failed: " + c.detail, now);
  return {effect::compare{}};
}

cycle_effects cycle_core::fail_task(failure_kind kind, std::string reason, utc_time now) {
  state_.failure = kind;
  state_.reason = std::move(reason);
  state_.outcome = kind == failure_kind::flaky && !state_.execution.applied ? "PARTIAL" : "FAILURE";
  if (!state_.execution.patch)
    return after_failure(now);
  return {saved(), effect::roll_back{}};
}

cycle_effects cycle_core::on_rolled_back(const result<undo_end>& end, utc_time now) {
  if (!end)
    return {}; // it stays open: a resume tries again
  if (restarts_) {
    restarts_ = false;
    if (state_.execution.patch) // it passed the gate, and what it was made for is compared again
      return {effect::apply{*state_.execution.patch}};
    state_.execution.tries = 0;
    state_.execution.refusals.clear();
    state_.execution.applied = false;
    return {saved(), begun()};
  }
  state_.execution.applied = false;
  if (!end->told.empty())
    state_.reason += "; " + end->told;
  return after_failure(now);
}

cycle_effects cycle_core::after_failure(utc_time now) {
  complete(state_.at, phase::learn);
  cycle_effects effects{saved()};
  for (auto& e : learn(now))
    effects.push_back(std::move(e));
  return effects;
}

cycle_effects cycle_core::learn(utc_time now) {
  const auto& task = *state_.selected;
  const auto approach = state_.execution.patch ? state_.execution.patch->summary : std::string();
  if (state_.outcome == "SUCCESS") {
    state_.successes.push_back({state_.cycle_id, task.task_id, kind_of_task(task), approach,
                                state_.execution.executor, state_.execution.spent});
    state_.strikes.erase(task.task_id);
    keep_newest(state_.successes, kept_successes);
  } else {
    state_.failure_log.push_back({state_.cycle_id, task.task_id, state_.failure,
                                  std::string(name_of(*state_.last_completed)), state_.reason,
                                  approach, state_.execution.executor, state_.execution.spent});
    keep_newest(state_.failure_log, kept_failures);
    if (state_.failure == failure_kind::flaky)
      set_aside(state_.quarantined);
    const auto at = *state_.last_completed;
    if (counts_as_strike(state_.failure, at) &&
        ++state_.strikes[task.task_id] == strikes_that_pause)
      set_aside(state_.paused_tasks);
    // A patch that nothing can be checked with would be paid for again and again.
    if (state_.failure == failure_kind::environment && at == phase::verify)
      set_aside(state_.paused_tasks);
  }
  complete(phase::learn, phase::checkpoint);
  cycle_effects effects{saved()};
  for (auto& e : checkpoint(now))
    effects.push_back(std::move(e));
  return effects;
}

/// Puts the task where it is not chosen any more, until its file is another one.
void cycle_core::set_aside(std::vector<std::string>& list) {
  const auto& task = *state_.selected;
  if (std::ranges::find(list, task.task_id) == list.end())
    list.push_back(task.task_id);
  if (!task.what.file_hash.empty())
    state_.set_aside[task.task_id] = task.what.file_hash;
}

cycle_effects cycle_core::checkpoint(utc_time now) {
  if (state_.outcome != "SUCCESS") {
    const bool pauses = state_.failure == failure_kind::environment;
    return stop(pauses                        ? improve_status::paused
                : state_.outcome == "PARTIAL" ? improve_status::completed
                                              : improve_status::failed,
                state_.reason, now);
  }
  if (!state_.commits)
    return {effect::forget{}};
  const auto& patch = *state_.execution.patch;
  return {effect::commit{patch.summary + "\n\nTask: " + state_.selected->task_id +
                             "\nCycle: " + state_.cycle_id + "\n",
                         patch.changes}};
}

cycle_effects cycle_core::on_committed(const result<std::string>& hash, utc_time) {
  state_.reason = state_.execution.patch->summary;
  state_.failure = hash ? failure_kind::none : failure_kind::environment;
  if (hash)
    state_.commit = *hash;
  else
    state_.reason += "; it is verified, but not committed: " + to_string(hash.error());
  return {saved(), effect::forget{}};
}

cycle_effects cycle_core::on_forgotten(const result<void>& done, utc_time now) {
  if (!done)
    return {}; // it stays open: a resume tries again
  return stop(state_.failure == failure_kind::none ? improve_status::completed
                                                   : improve_status::paused,
              state_.reason, now);
}

cycle_effects cycle_core::stop(improve_status status, std::string reason, utc_time now) {
  state_.status = status;
  state_.reason = std::move(reason);
  state_.completed_at = now;
  if (!state_.outcome.empty() && !told_elsewhere_) {
    state_.untold.push_back(end_event(state_));
    keep_newest(state_.untold, kept_untold);
  }
  if (!state_.awaits_approval()) {
    state_.at = phase::checkpoint;
    state_.last_completed = phase::checkpoint;
  }
  // A crash between the two writes the report once more.
  cycle_effects effects{effect::report{}, saved()};
  // The copy of the state still has the contents of the patch, which nobody needs any more.
  if (state_.execution.patch && !state_.awaits_approval())
    effects.emplace_back(saved());
  return effects;
}

} // namespace boyd::improve
