#include "actors/kernel/state.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/http_status.hpp"
#include "boyd/core/final_refusal.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/http_client.hpp"
#include "boyd/state/runtime_block.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace boyd::kernel_impl {

commit_boundary boundary(self_pointer self, const std::string& message, const std::string& cycle,
                         const std::string& graph_head, bool restarted) {
  auto& s = self->state;
  commit_boundary c;
  c.kernel_id = s.settings->kernel_id;
  c.message = message;
  c.trailers = {{"Boyd-Cycle", cycle}, {"Boyd-Node", s.parts.context->node_id}};
  // The newest one: a commit without facts of its own confirms those that are there, too.
  const auto newest = s.parts.context->written->head();
  const auto& head = newest.empty() ? graph_head : newest;
  if (!head.empty())
    c.trailers.emplace_back("Boyd-Graph-Head", head);
  c.restarted = restarted;
  return c;
}

std::string subject_of(const std::string& cycle_id, cycle_status status) {
  return "cycle " + cycle_id + ": " + std::string(name_of(status));
}

std::string earlier_subject(const std::string& cycle_id) {
  return "pre-cycle " + cycle_id;
}

write_runtime_block block_of(self_pointer self, const std::vector<cycle_record>& history) {
  const auto at = history.empty() ? std::nullopt : history.front().finished_at;
  return {self->state.settings->kernel_id, at.value_or(now_of(self)), history};
}

namespace {

/// Late results that one record tells of.
constexpr std::size_t late_results = 256;
/// Of a call after a cycle, in all.
constexpr milliseconds heartbeat_limit = 10s;
constexpr std::size_t heartbeat_answer_bytes = 64u << 10;

/// By less than this clocks differ without having been set.
constexpr milliseconds clocks_drift = 1s;

/// What finished in the very millisecond of the earlier record is asked for again: nobody knows
/// from the times alone which came first. The record itself does.
bool is_told_by(const cycle_record& earlier, const dispatch& d) {
  return d.cycle_id == earlier.cycle_id && d.finished_at <= earlier.finished_at &&
         std::ranges::any_of(earlier.agents, [&](const agent_result& a) {
           return a.agent_id == d.agent_id && a.status == name_of(d.status);
         });
}

/// What ended later than now did so before the clock was set back, and was told then.
bool is_told(const dispatch& d, const std::optional<cycle_record>& latest,
             const result<std::vector<cycle_record>>& history, utc_time now) {
  const auto told = [&](const cycle_record& c) { return is_told_by(c, d); };
  return d.finished_at > now + clocks_drift || (latest && told(*latest)) ||
         (history && std::ranges::any_of(*history, told));
}

/// When the latest cycle ended, by today's clock: one that was set back since then gives what ends
/// now an earlier time.
utc_time end_of_latest(self_pointer self) {
  const auto& s = self->state;
  const auto recorded = *s.latest->finished_at;
  if (!s.latest_ended)
    return recorded;
  const auto since = s.parts.context->ports.clock->steady() - *s.latest_ended;
  const auto by_now = now_of(self) - since;
  return by_now + clocks_drift < recorded ? by_now : recorded;
}

/// What ended late of earlier cycles, and what their records have told.
void gather(self_pointer self) {
  auto& s = self->state;
  if (!s.latest || !s.latest->finished_at) {
    s.cycle->gather({});
    return run_step(self);
  }
  const auto& kernel_id = s.settings->kernel_id;
  store_request request;
  const auto cycles =
      request.add(store::list_cycles{kernel_id, false, s.settings->max_cycle_history});
  store::list_dispatches late;
  late.kernel_id = kernel_id;
  late.finished_since = end_of_latest(self);
  late.not_cycle_id = s.cycle->id();
  late.limit = late_results + 1;
  const auto ended = request.add(std::move(late));
  ask<store_reply>(self, s.parts.store, std::move(request), [self, cycles, ended](auto r) {
    if (!r)
      return retry_step(self, r.error());
    auto& st = self->state;
    const auto history = cycles.of(*r);
    auto rows = ended.of(*r);
    std::vector<dispatch> found;
    const bool more = rows && rows->size() > late_results;
    if (rows) {
      rows->resize(std::min(rows->size(), late_results));
      for (auto& d : *rows)
        if (d.cycle_id != st.cycle->id() && is_final(d.status) &&
            !is_told(d, st.latest, history, now_of(self)))
          found.push_back(std::move(d));
    }
    st.cycle->gather(std::move(found), more);
    run_step(self);
  });
}

store::close_occurrence end_of_slot(const cycle_record& record) {
  return {record.kernel_id, record.scheduled_at, occurrence_state::ran, {}, record.cycle_id};
}

/// The row, the end of its slot, and what follows: in one transaction, so that whatever crashes
/// behind it, the next start finds what is left to be done.
void record(self_pointer self) {
  auto& s = self->state;
  const auto& record = s.cycle->record();
  auto fresh = s.cycle->effects();
  s.effects.number(fresh);
  store_request request;
  request.add(store::finish_cycle{record});
  const auto cycles =
      request.add(store::list_cycles{record.kernel_id, false, s.settings->max_cycle_history});
  std::map<std::string, std::string> changes;
  // Where the database has refused all of it, the row goes alone, and what follows is tried now.
  if (s.cycle->form() == record_form::whole) {
    request.add(end_of_slot(record));
    if (s.cycle->trouble_is_kept())
      request.add(store::put_fact{trouble_scope(self), record.cycle_id, {}});
    if (s.cycle->input().only)
      request.add(store::put_fact{single_scope(self), record.cycle_id, {}});
    changes = s.effects.changes();
    for (const auto& e : fresh)
      changes[effects::key_of(e.number)] = effects::text_of(e);
    add_changes(self, request, changes);
  }
  ask<store_reply>(self, s.parts.store, std::move(request),
                   [self, fresh = std::move(fresh), changes, cycles](auto r) mutable {
                     auto& st = self->state;
                     auto history = cycles.of(r);
                     if (!history)
                       return retry_step(self, history.error());
                     st.effects.saved(changes);
                     st.effects.add(std::move(fresh));
                     st.cycle->recorded({});
                     st.problem.clear();
                     st.rows_recorded = std::move(*history);
                     run_step(self);
                   });
}

void take_reduction(self_pointer self, result<reduction> r) {
  auto& s = self->state;
  const auto why =
      r ? r->problem : "recent_actions was written without a model: " + to_string(r.error());
  if (!why.empty())
    spdlog::warn("kernel {}: cycle {}: {}", s.settings->kernel_id, s.cycle->id(), why);
  s.cycle->reduce(std::move(r));
  run_step(self);
}

void reduce(self_pointer self) {
  auto& s = self->state;
  // A node that stops waits for no model.
  if (s.stopping)
    return take_reduction(self, reduction{});
  announce(self, "record", {}, "asking a model to write recent_actions");
  reduce_request request{
      {}, s.parts.configuration, s.settings->kernel_id, s.cycle->id(), s.cycle->told_outcomes()};
  ask<reduction>(
      self, s.parts.planner, std::move(request),
      [self](result<reduction> r) { take_reduction(self, std::move(r)); },
      question_limit(s.settings->reduce.ask));
}

} // namespace

namespace {

void answer_waiters(self_pointer self, const awaited_cycle& ended) {
  auto& s = self->state;
  const auto it = s.waiters.find(ended.record.cycle_id);
  if (it == s.waiters.end())
    return;
  for (auto& w : it->second)
    answer<awaited_cycle>(w, ended);
  s.waiters.erase(it);
}

/// The reply for the waiting client: with the rows of the verdict, when all of them were final
/// and all that follows is done.
awaited_cycle told_of(self_pointer self, const cycle_record& record) {
  const auto& s = self->state;
  const auto ended = [](const dispatch& d) { return is_final(d.status); };
  auto problems = effects::behind_of(s.effects.open(), record.cycle_id);
  const bool whole = s.waiters.contains(record.cycle_id) &&
                     std::ranges::all_of(s.cycle->rows(), ended) && problems.empty();
  return {{}, record, whole ? std::optional(s.cycle->rows()) : std::nullopt, std::move(problems)};
}

} // namespace

void repair_later(self_pointer self) {
  self->delayed_send(self, self->state.parts.context->housekeeping.repair,
                     look_tick{{}, self->state.look_generation});
}

void answer_recorded(self_pointer self) {
  for (const auto& each : std::exchange(self->state.ended, {}))
    answer_waiters(self, each);
}

void run_record_step(self_pointer self) {
  auto& s = self->state;
  switch (s.cycle->step()) {
  case cycle_step::gather:
    announce(self, "record", {}, "storing the cycle");
    return gather(self);
  case cycle_step::reduce:
    return reduce(self);
  case cycle_step::record:
    return record(self);
  case cycle_step::follow:
    return follow(self, std::exchange(s.rows_recorded, {}), s.cycle->id(), [self] {
      self->state.cycle->followed();
      run_step(self);
    });
  default:
    return cycle_done(self);
  }
}

namespace {

/// The monitor's own alarm is that no call comes; one that fails is no reason to fail anything
/// here.
void call_heartbeat(self_pointer self, const std::string& cycle_id) {
  const auto& s = self->state;
  const auto& http = s.parts.context->ports.http;
  if (s.settings->heartbeat_url.empty() || !http)
    return;
  const auto ended = [kernel = s.settings->kernel_id, cycle_id](const std::string& why) {
    if (!why.empty())
      spdlog::warn("kernel {}: cycle {} is stored, but its heartbeat failed: {}", kernel, cycle_id,
                   why);
  };
  http_request request;
  request.method = "GET";
  request.url = s.settings->heartbeat_url;
  request.connect_timeout = request.timeout = heartbeat_limit;
  request.max_answer_bytes = heartbeat_answer_bytes;
  const auto met = faults::meet("kernel.heartbeat");
  if (!met)
    ended(to_string(met.error()));
  else if (!met->drops())
    http->start(std::move(request), by_status(ended));
}

} // namespace

void cycle_done(self_pointer self) {
  auto& s = self->state;
  const auto record = s.cycle->record();
  // What goes on from cycle to cycle is told of when it begins; each record has it.
  std::set<std::string> problems(s.cycle->problems().begin(), s.cycle->problems().end());
  for (const auto& p : problems)
    if (!s.told_problems.contains(p))
      spdlog::warn("kernel {}: cycle {}: {}", s.settings->kernel_id, record.cycle_id, p);
  s.told_problems = std::move(problems);
  spdlog::info("kernel {}: cycle {}: {} ({} dispatched, {} done, {} failed, {} ms)",
               s.settings->kernel_id, record.cycle_id, name_of(record.status), record.dispatched,
               record.succeeded, record.failed, record.duration_ms);
  announce(self, "done", {},
           "cycle " + record.cycle_id + ": " + std::string(name_of(record.status)));
  s.progress = now_of(self);
  call_heartbeat(self, record.cycle_id);
  // Of a record that the database refused.
  for (auto& untold : s.cycle->untold())
    s.carried.push_back(std::move(untold));
  if (s.cycle->form() != record_form::whole)
    ask_store(self, s.parts.store, end_of_slot(record), [record](const result<store::ok>& r) {
      if (!r)
        spdlog::error("kernel {}: cannot close the slot of cycle {}: {}", record.kernel_id,
                      record.cycle_id, to_string(r.error()));
    });
  s.tried_effects = false;
  // A left-over cycle may be older than one that is recorded.
  if (s.becomes_latest || !s.latest) {
    s.latest = record;
    s.latest_ended = s.cycle_since + milliseconds{record.duration_ms};
  }
  s.ended.push_back(told_of(self, record));
  if (s.finishing)
    answer_waiters(self, s.ended.back());
  // Nothing follows what is not recorded: nobody else would answer.
  else if (s.cycle->is_unrecorded())
    answer_recorded(self);
  s.cycle.reset();
  s.resumed = false;
  s.problem.clear();
  if (auto configuration = std::exchange(s.pending_configuration, nullptr))
    self->send(self, reload_order{{}, std::move(configuration)});
  if (s.finishing)
    return write_final_block(self);
  start_next(self);
  if (!s.cycle && is_behind(self))
    repair_later(self);
}

void follow_again(self_pointer self) {
  auto& s = self->state;
  if (s.following || s.resuming || s.cycle)
    return;
  if (!is_behind(self)) {
    if (!s.effects.changes().empty())
      save_effects(self);
    return;
  }
  follow(self, {}, {}, [self] {
    if (is_behind(self))
      repair_later(self);
  });
}

namespace {

/// STATE.md as the rows have it, and the latest cycle's commit.
void show_latest(self_pointer self, const std::vector<cycle_record>& history) {
  const auto latest = history.front();
  ask<state_reply>(self, self->state.parts.state_writer, state_request{{}, block_of(self, history)},
                   [self, latest](const result<state_reply>& r) {
                     if (r)
                       return commit_latest(self, latest);
                     self->state.following = false;
                     self->state.shows_latest = false;
                     repair_later(self);
                     start_next(self);
                   });
}

} // namespace

void repair_latest(self_pointer self) {
  auto& s = self->state;
  if (s.shows_latest || s.following || s.resuming || s.cycle || !s.latest)
    return;
  s.following = true;
  ask_store(self, s.parts.store,
            store::list_cycles{s.settings->kernel_id, false, s.settings->max_cycle_history},
            [self](const result<std::vector<cycle_record>>& history) {
              if (history && !history->empty())
                return show_latest(self, *history);
              self->state.following = false;
              if (!history)
                repair_later(self);
              start_next(self);
            });
}

void commit_latest(self_pointer self, const cycle_record& latest) {
  auto& s = self->state;
  s.following = true;
  auto what = boundary(self, subject_of(latest.cycle_id, latest.status), latest.cycle_id, {}, true);
  ask<repository_reply>(self, s.parts.git_committer, repository_request{{}, std::move(what)},
                        [self](const result<repository_reply>& r) {
                          auto& st = self->state;
                          st.following = false;
                          const bool was_behind = !std::exchange(st.shows_latest, r.has_value());
                          if (!r)
                            repair_later(self);
                          else if (was_behind)
                            spdlog::info("kernel {}: STATE.md shows the latest cycle again",
                                         st.settings->kernel_id);
                          start_next(self);
                        });
}

namespace {

/// The final block is written, or could not be: whoever stops the node goes on.
void finished(self_pointer self) {
  if (auto& promise = self->state.finishing)
    answer<finish_reply>(*promise, finish_reply{});
}

/// The next start makes good what is missing; but whoever reads the home now is to know.
void warn_unfinished(self_pointer self, const char* what, const error& why) {
  spdlog::warn("kernel {}: when the node stopped, {}: {}", self->state.settings->kernel_id, what,
               to_string(why));
}

/// STATE.md with the cycle that is cut short, and the commit of it.
void render_cut_short(self_pointer self, const cycle_record& running,
                      const std::vector<cycle_record>& rows) {
  ask<state_reply>(
      self, self->state.parts.state_writer, state_request{{}, block_of(self, rows)},
      [self, running](result<state_reply> rendered) {
        if (!rendered)
          warn_unfinished(self, "STATE.md was not written", rendered.error());
        // Not called `cycle …`: that one is the record, and there is one for each
        // cycle.
        auto what =
            boundary(self, "stopped in cycle " + running.cycle_id, running.cycle_id, {}, false);
        ask<repository_reply>(self, self->state.parts.git_committer,
                              repository_request{{}, std::move(what)},
                              [self](result<repository_reply> r) {
                                if (!r)
                                  warn_unfinished(self, "nothing was committed", r.error());
                                finished(self);
                              });
      });
}

} // namespace

/// At shutdown: a cycle that is cut short stands in its row and in STATE.md as running, with what
/// it has come to; it is resumed by the next start. Best effort: the next start finds out anyway,
/// and a failure here must not hold the shutdown.
void write_final_block(self_pointer self) {
  auto& s = self->state;
  // A cycle whose row is not written yet is begun anew by the next start: until then nobody knows
  // it.
  const bool under_way =
      s.cycle && s.cycle->step() > cycle_step::begin && s.cycle->step() <= cycle_step::wait;
  if (!under_way || std::exchange(s.final_block, true))
    return finished(self);
  const auto running = s.cycle->snapshot(time_of_cycle(self));
  store_request request;
  request.add(store::begin_cycle{running});
  const auto earlier =
      request.add(store::list_cycles{s.settings->kernel_id, false, s.settings->max_cycle_history});
  ask<store_reply>(self, s.parts.store, std::move(request), [self, running, earlier](auto r) {
    const auto history = earlier.of(r);
    if (!history) {
      // STATE.md stays: without the earlier rows it would forget what has been acknowledged.
      warn_unfinished(self, "the cycles could not be read", history.error());
      return finished(self);
    }
    std::vector<cycle_record> rows{running};
    rows.insert(rows.end(), history->begin(), history->end());
    rows.resize(std::min(rows.size(), self->state.settings->max_cycle_history));
    render_cut_short(self, running, rows);
  });
}

} // namespace boyd::kernel_impl
