#include "actors/kernel/state.hpp"
#include "actors/support/ask.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace boyd::kernel_impl {

namespace {

using effects::effect;
using effects::effect_kind;

/// A cycle that is about to begin does not wait longer for what earlier ones left: after this time
/// nothing of them is begun any more.
constexpr seconds pass_limit{5};
/// Reasons that the next record tells of.
constexpr std::size_t most_carried = 20;
/// Runs whose records are completed by one request.
constexpr std::size_t records_at_once = 32;
/// One commit, with the wait for somebody else's lock.
constexpr milliseconds commit_limit = 2 * limits::repository_lock_wait;

/// One try of all that is open, the oldest first: edges one after the other, then their lessons,
/// and beside them the renderings with their commits.
struct pass {
  steady_time until{};
  std::string fresh;                        ///< the cycle that was just recorded; empty: none
  std::vector<cycle_record> rows;           ///< recorded cycles, newest first
  std::map<std::string, std::string> heads; ///< of the graph, by the cycle whose edges it ends with
  bool edges_tried = false;
  /// A commit waits for its cycle's edges. It is handed the pass, which it must not hold: it would
  /// hold itself.
  std::function<void(const std::shared_ptr<pass>&)> after_edges;
  std::string shown; ///< the cycle that STATE.md was made to show
  std::function<void()> then;
};

using pass_ptr = std::shared_ptr<pass>;

/// What failed stands in the store, and in the next record.
void note_failure(self_pointer self, const effect& e, const char* where, const error& why) {
  auto& s = self->state;
  const auto text = std::string(where) + ": " + to_string(why);
  if (s.carried.size() < most_carried && std::ranges::find(s.carried, text) == s.carried.end())
    s.carried.push_back(text);
  s.effects.failed(e.number, text);
}

// -- edges ---------------------------------------------------------------------------------------

void edges_done(const pass_ptr& p) {
  p->edges_tried = true;
  if (auto waiting = std::exchange(p->after_edges, nullptr))
    waiting(p);
}

/// The recorder will never take them: they must not stand before the others.
bool is_refused_for_good(const error& e) {
  return e.code == errc::invalid_argument || e.code == errc::limit_exceeded;
}

void draw_lessons_of(self_pointer self, const pass_ptr& p);

void record_edges(self_pointer self, const pass_ptr& p) {
  auto& s = self->state;
  const auto* e = s.effects.first(effect_kind::edges);
  if (e == nullptr)
    return draw_lessons_of(self, p);
  ask<graph_reply>(self, s.parts.graph_recorder, graph_request{{}, e->edges},
                   [self, p, e = *e](const result<graph_reply>& r) {
                     auto& st = self->state;
                     if (r)
                       p->heads[e.cycle_id] = r->head;
                     else
                       note_failure(self, e, "graph recorder", r.error());
                     if (!r && !is_refused_for_good(r.error()))
                       return edges_done(p);
                     if (!r)
                       spdlog::error("kernel {}: cannot record the facts of cycle {}: {}",
                                     st.settings->kernel_id, e.cycle_id, to_string(r.error()));
                     st.effects.done(e.number);
                     record_edges(self, p);
                   });
}

// -- what the facts mean for items and skills -----------------------------------------------------

void lessons_drawn(self_pointer self, const pass_ptr& p, const effect& e) {
  self->state.effects.done(e.number);
  draw_lessons_of(self, p);
}

/// The rest comes with the next try: the same lessons, drawn once more, add nothing.
void stop_lessons(self_pointer self, const pass_ptr& p, const effect& e, const char* where,
                  const error& why) {
  note_failure(self, e, where, why);
  edges_done(p);
}

/// What the log has of the effect's runs from `first` on goes to their records, some at a time.
void complete_records(self_pointer self, const pass_ptr& p, const effect& e, std::size_t first) {
  const auto& runs = e.about.runs;
  auto& s = self->state;
  if (first >= runs.size())
    return lessons_drawn(self, p, e);
  const auto end = std::min(runs.size(), first + records_at_once);
  const auto at = [&runs](std::size_t i) { return runs.begin() + static_cast<std::ptrdiff_t>(i); };
  find_evidence question{{s.settings->kernel_id, e.cycle_id, e.ended, {at(first), at(end)}}};
  ask<knowledge_reply>(
      self, s.parts.knowledge->player(), knowledge_request{{}, std::move(question)},
      [self, p, e, end](result<knowledge_reply> r) {
        if (!r && (r.error().code == errc::refused || is_refused_for_good(r.error())))
          return complete_records(self, p, e, end);
        if (!r)
          return stop_lessons(self, p, e, "knowledge", r.error());
        ask<workspace_reply>(self, self->state.parts.workspace,
                             workspace_request{{}, add_evidence{std::move(r->evidence)}},
                             [self, p, e, end](const result<workspace_reply>& added) {
                               if (added || is_refused_for_good(added.error()))
                                 return complete_records(self, p, e, end);
                               stop_lessons(self, p, e, "workspace", added.error());
                             });
      });
}

void record_lessons(self_pointer self, const pass_ptr& p, const effect& e,
                    std::vector<graph::edge> facts) {
  if (facts.empty())
    return complete_records(self, p, e, 0);
  ask<graph_reply>(self, self->state.parts.graph_recorder, graph_request{{}, std::move(facts)},
                   [self, p, e](const result<graph_reply>& r) {
                     const bool is_refused = !r && is_refused_for_good(r.error());
                     if (!r && !is_refused)
                       return stop_lessons(self, p, e, "graph recorder", r.error());
                     if (r)
                       p->heads[e.cycle_id] = r->head;
                     else
                       spdlog::error("kernel {}: cannot record the lessons of cycle {}: {}",
                                     self->state.settings->kernel_id, e.cycle_id,
                                     to_string(r.error()));
                     complete_records(self, p, e, 0);
                   });
}

/// Files first: a skill that a fact approves is then there.
void take_lessons(self_pointer self, const pass_ptr& p, const effect& e, knowledge_reply drawn) {
  if (drawn.files.empty())
    return record_lessons(self, p, e, std::move(drawn.facts));
  auto& s = self->state;
  ask<state_reply>(
      self, s.parts.state_writer,
      state_request{{}, write_derived_files{s.settings->kernel_id, std::move(drawn.files)}},
      [self, p, e, facts = std::move(drawn.facts)](const result<state_reply>& r) {
        if (r)
          return record_lessons(self, p, e, facts);
        stop_lessons(self, p, e, "state writer", r.error());
      });
}

void draw_lessons_of(self_pointer self, const pass_ptr& p) {
  auto& s = self->state;
  const auto* first = s.effects.first(effect_kind::lessons);
  if (first == nullptr)
    return edges_done(p);
  const auto e = *first;
  // A node without an index learns nothing.
  if (!s.parts.knowledge)
    return lessons_drawn(self, p, e);
  ask<knowledge_reply>(
      self, s.parts.knowledge->player(),
      knowledge_request{{}, draw_lessons{s.settings->kernel_id, e.cycle_id, e.ended, e.about}},
      [self, p, e](result<knowledge_reply> r) {
        if (r)
          return take_lessons(self, p, e, std::move(*r));
        if (r.error().code == errc::refused || is_refused_for_good(r.error()))
          return lessons_drawn(self, p, e);
        stop_lessons(self, p, e, "knowledge", r.error());
      });
}

// -- STATE.md and the commits --------------------------------------------------------------------

void next_history(self_pointer self, const pass_ptr& p);

/// What the store does not know yet goes to it; whoever waits for a cycle is answered behind that:
/// it may end the process.
void end_pass(self_pointer self, const pass_ptr& p) {
  auto& s = self->state;
  s.following = false;
  p->then();
  save_effects(self);
  start_next(self); // held back meanwhile
}

/// Ends when the edges have been tried as well. STATE.md shows the newest cycle, whatever could not
/// be committed.
void end_history(self_pointer self, const pass_ptr& p) {
  const auto end = [self, p] {
    if (p->edges_tried)
      return end_pass(self, p);
    p->after_edges = [self](const pass_ptr& same) { end_pass(self, same); };
  };
  auto& s = self->state;
  const bool shows_newest = p->rows.empty() || p->shown == p->rows.front().cycle_id ||
                            (p->shown.empty() && p->fresh.empty());
  if (shows_newest)
    return end();
  auto rows = p->rows;
  rows.resize(std::min(rows.size(), s.settings->max_cycle_history));
  ask<state_reply>(self, s.parts.state_writer, state_request{{}, block_of(self, rows)},
                   [end](const result<state_reply>&) { end(); });
}

/// What could not be committed stands before all that follows it.
void stop_history(self_pointer self, const pass_ptr& p, const effect& e, const char* where,
                  const error& why) {
  auto& s = self->state;
  note_failure(self, e, where, why);
  std::vector<std::uint64_t> untried;
  for (const auto& each : s.effects.open())
    if (each.kind == effect_kind::history && each.behind.empty())
      untried.push_back(each.number);
  for (const auto number : untried)
    s.effects.failed(number, "git committer: the commits of earlier cycles come first");
  end_history(self, p);
}

commit_boundary boundary_of(self_pointer self, const pass_ptr& p, const effect& e,
                            const std::string& message) {
  const auto head = p->heads.find(e.cycle_id);
  auto b = boundary(self, message, e.cycle_id, head == p->heads.end() ? "" : head->second,
                    e.cycle_id != p->fresh || self->state.resumed);
  if (!e.behind.empty())
    b.trailers.emplace_back("Boyd-Late", format_rfc3339(e.ended));
  return b;
}

/// Commits of earlier cycles that are in no branch any more are made again, before all others.
error commits_lost(self_pointer self, const std::vector<commit_info>& lost) {
  auto& s = self->state;
  std::string hashes;
  std::vector<effect> again;
  for (const auto& commit : lost) {
    hashes += (hashes.empty() ? "" : ", ") + commit.hash;
    const auto status = cycle_status_from(commit.subject.substr(commit.subject.rfind(' ') + 1));
    for (const auto& [name, id] : commit.trailers)
      if (name == "Boyd-Cycle" && status && commit.subject == subject_of(id, *status))
        again.push_back({.cycle_id = id,
                         .behind = "its commit is no longer in any branch: " + commit.hash,
                         .status = *status,
                         .ended = commit.time});
  }
  s.effects.again(std::move(again));
  return {
      errc::conflict, "commits of earlier cycles are no longer in any branch: " + hashes,
      s.parts.context->kernel_home(s.settings->kernel_id),
      "Boyd commits these cycles again before the next cycle; see the old commits with `git show`"};
}

void take_commit(self_pointer self, const pass_ptr& p, const effect& e,
                 const result<repository_reply>& r) {
  auto& s = self->state;
  if (!r)
    return stop_history(self, p, e, "git committer", r.error());
  if (!r->lost.empty()) {
    const auto why = commits_lost(self, r->lost);
    // It has another number now.
    const auto now = std::ranges::find_if(s.effects.open(), [&](const effect& each) {
      return each.kind == effect_kind::history && each.cycle_id == e.cycle_id;
    });
    return stop_history(self, p, now == s.effects.open().end() ? e : effect(*now), "git committer",
                        why);
  }
  if (!e.behind.empty())
    spdlog::info("kernel {}: the missing commits of cycle {} have been made", s.settings->kernel_id,
                 e.cycle_id);
  s.effects.done(e.number);
  next_history(self, p);
}

void commit(self_pointer self, const pass_ptr& p, const effect& e) {
  if (!p->edges_tried) {
    p->after_edges = [self, e](const pass_ptr& same) { commit(self, same, e); };
    return;
  }
  auto& s = self->state;
  repository_request request;
  auto later = boundary_of(self, p, e, subject_of(e.cycle_id, e.status));
  if (e.behind.empty())
    request.what = commit_cycle{std::move(later), earlier_subject(e.cycle_id)};
  else
    request.what = std::move(later);
  ask<repository_reply>(
      self, s.parts.git_committer, std::move(request),
      [self, p, e](const result<repository_reply>& r) { take_commit(self, p, e, r); },
      commit_limit);
}

/// The block as it was at the end of that cycle, if STATE.md is to show each one in its commit: a
/// newer one that has its commits stays.
write_runtime_block block_for(self_pointer self, const pass_ptr& p, const effect& e) {
  auto& s = self->state;
  auto newest = e.cycle_id;
  for (const auto& each : s.effects.open())
    if (each.kind == effect_kind::history)
      newest = each.cycle_id;
  auto row = std::ranges::find(p->rows, e.cycle_id, &cycle_record::cycle_id);
  if (row == p->rows.end() || e.cycle_id == p->fresh || p->rows.front().cycle_id != newest)
    row = p->rows.begin();
  std::vector<cycle_record> rows(row, p->rows.end());
  rows.resize(std::min(rows.size(), s.settings->max_cycle_history));
  p->shown = rows.front().cycle_id;
  return block_of(self, rows);
}

/// The commit of a cycle is its rendering, also when it comes late.
void render(self_pointer self, const pass_ptr& p, const effect& e) {
  auto& s = self->state;
  render_cycle what{block_for(self, p, e), e.outcomes, s.settings->recent_actions};
  ask<state_reply>(
      self, s.parts.state_writer, state_request{{}, std::move(what)},
      [self, p, e](const result<state_reply>& r) {
        if (r)
          return commit(self, p, e);
        p->shown = self->state.settings->kernel_id; // nobody knows what it shows
        stop_history(self, p, e, "state writer", r.error());
      },
      commit_limit);
}

void next_history(self_pointer self, const pass_ptr& p) {
  auto& s = self->state;
  const auto* e = s.effects.first(effect_kind::history);
  if (e == nullptr)
    return end_history(self, p);
  const bool is_over = s.stopping || s.parts.context->ports.clock->steady() >= p->until;
  if (is_over && e->cycle_id != p->fresh)
    return end_history(self, p);
  if (e->behind.empty())
    return render(self, p, *e);
  ask<repository_reply>(
      self, s.parts.git_committer,
      repository_request{{}, boundary_of(self, p, *e, earlier_subject(e->cycle_id))},
      [self, p, e = *e](const result<repository_reply>& r) {
        if (!r)
          return stop_history(self, p, e, "git committer", r.error());
        render(self, p, e);
      },
      commit_limit);
}

void load_again(self_pointer self, const std::function<void()>& then) {
  auto& s = self->state;
  ask_store(self, s.parts.store, effects_query(self),
            [self, then](const result<std::map<std::string, std::string>>& facts) {
              if (facts)
                self->state.effects.load(effects::read_effects(*facts));
              then();
            });
}

void begin_pass(self_pointer self, const pass_ptr& p) {
  record_edges(self, p);
  next_history(self, p);
}

} // namespace

store::get_facts effects_query(self_pointer self) {
  const auto& s = self->state;
  return {effects::scope_of(s.settings->kernel_id, s.parts.context->node_id)};
}

void add_changes(self_pointer self, store_request& to,
                 const std::map<std::string, std::string>& changes) {
  const auto scope = effects_query(self).scope;
  for (const auto& [key, text] : changes)
    to.add(store::put_fact{scope, key, text});
}

void save_effects(self_pointer self) {
  auto& s = self->state;
  const auto changes = s.effects.changes();
  if (changes.empty())
    return answer_recorded(self);
  store_request request;
  add_changes(self, request, changes);
  ask<store_reply>(self, s.parts.store, std::move(request),
                   [self, changes](const result<store_reply>& r) {
                     if (r)
                       self->state.effects.saved(changes);
                     // Done again after a restart, an effect changes nothing.
                     answer_recorded(self);
                     if (!r)
                       repair_later(self);
                   });
}

void follow(self_pointer self, std::vector<cycle_record> rows, std::string fresh,
            std::function<void()> then) {
  auto& s = self->state;
  s.following = true;
  auto p = std::make_shared<pass>();
  p->until = s.parts.context->ports.clock->steady() + pass_limit;
  p->fresh = std::move(fresh);
  p->rows = std::move(rows);
  p->then = std::move(then);
  const auto open = static_cast<std::size_t>(
      std::ranges::count(s.effects.open(), effect_kind::history, &effect::kind));
  if (!p->fresh.empty() && open <= 1)
    return begin_pass(self, p); // its rows came with the record
  const auto wanted = open + s.settings->max_cycle_history + 1;
  ask_store(self, s.parts.store, store::list_cycles{s.settings->kernel_id, false, wanted},
            [self, p](result<std::vector<cycle_record>> r) {
              if (r)
                p->rows = std::move(*r);
              if (p->rows.empty())
                return end_pass(self, p);
              if (self->state.effects.open().empty() && self->state.effects.is_cut() &&
                  self->state.effects.changes().empty())
                return load_again(self, [self, p] { begin_pass(self, p); });
              begin_pass(self, p);
            });
}

bool is_behind(self_pointer self) {
  const auto& s = self->state;
  return !s.effects.open().empty() || s.effects.is_cut();
}

bool lacks_commits(self_pointer self) {
  const auto& s = self->state;
  return s.effects.first(effect_kind::history) != nullptr || s.effects.is_cut();
}

} // namespace boyd::kernel_impl
