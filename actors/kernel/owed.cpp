#include "actors/kernel/state.hpp"
#include "actors/support/ask.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace boyd::kernel_impl {

namespace {

/// A cycle that is about to begin does not wait longer for the earlier ones' commits: after this
/// time none is begun any more.
constexpr milliseconds settle_limit = 5s;
/// One commit, with the wait for somebody else's lock.
constexpr milliseconds settle_request = 2 * limits::repository_lock_wait;

/// One try to make up for what is owed.
struct settlement {
  steady_time until{};
  std::vector<cycle_record> rows; ///< recorded cycles, newest first, without the running one
  bool renders = false;           ///< STATE.md is to show each cycle in its commit
  std::string shown;              ///< the cycle that STATE.md was made to show
  std::size_t paid = 0;           ///< commits that stand now
  std::function<void()> then;
};

using settlement_ptr = std::shared_ptr<settlement>;

void settle_next(self_pointer self, const settlement_ptr& run);

/// The fact may stay behind the truth: a commit that stands already is found, not made again.
void save(self_pointer self) {
  auto& s = self->state;
  ask_store(self, s.parts.store,
            store::put_fact{state::owed_scope(s.settings->kernel_id), s.parts.context->node_id,
                            state::render_owed(s.owed)},
            [](result<store::ok>) {
              // Saved with the end of the next cycle, or settled again.
            });
}

void end(self_pointer self, const settlement_ptr& run) {
  auto& s = self->state;
  s.settling = false;
  if (run->paid > 0) {
    save(self);
    spdlog::info("kernel {}: {} commits of earlier cycles are made up for; {} cycles are owed "
                 "theirs",
                 s.settings->kernel_id, run->paid, s.owed.size());
  }
  run->then();
  start_next(self); // held back meanwhile
}

/// Stopped on the way, STATE.md may show a cycle that is not the newest one.
void stop(self_pointer self, const settlement_ptr& run) {
  if (run->shown.empty() || run->shown == run->rows.front().cycle_id)
    return end(self, run);
  auto rows = run->rows;
  rows.resize(std::min(rows.size(), self->state.settings->max_cycle_history));
  ask<state_reply>(self, self->state.parts.state_writer, state_request{{}, block_of(self, rows)},
                   [self, run](result<state_reply>) { end(self, run); });
}

void ask_commit(self_pointer self, const settlement_ptr& run, const std::string& subject,
                const std::function<void()>& made) {
  const auto& o = self->state.owed.front();
  auto what = boundary(self, subject, o.cycle_id, {}, true);
  what.trailers.emplace_back("Boyd-Late", format_rfc3339(o.ended));
  ask<repository_reply>(
      self, self->state.parts.git_committer, repository_request{{}, std::move(what)},
      [self, run, made](result<repository_reply> r) {
        if (!r)
          return stop(self, run);
        ++run->paid;
        made();
        settle_next(self, run);
      },
      settle_request);
}

void commit_owed(self_pointer self, const settlement_ptr& run) {
  const auto& o = self->state.owed.front();
  ask_commit(self, run, subject_of(o.cycle_id, o.status),
             [self] { self->state.owed.erase(self->state.owed.begin()); });
}

/// The commit of a cycle is its rendering, also when it comes late.
void render_owed_block(self_pointer self, const settlement_ptr& run) {
  auto& s = self->state;
  const auto row = std::ranges::find(run->rows, s.owed.front().cycle_id, &cycle_record::cycle_id);
  if (!run->renders || row == run->rows.end())
    return commit_owed(self, run);
  std::vector<cycle_record> rows(row, run->rows.end());
  rows.resize(std::min(rows.size(), s.settings->max_cycle_history));
  ask<state_reply>(
      self, s.parts.state_writer, state_request{{}, block_of(self, rows)},
      [self, run, id = row->cycle_id](result<state_reply> r) {
        if (!r)
          return stop(self, run);
        run->shown = id;
        commit_owed(self, run);
      },
      settle_request);
}

void settle_next(self_pointer self, const settlement_ptr& run) {
  auto& s = self->state;
  const bool late = s.parts.context->ports.clock->steady() >= run->until;
  if (s.owed.empty() || s.stopping || late)
    return stop(self, run);
  if (s.owed.front().before)
    return ask_commit(self, run, earlier_subject(s.owed.front().cycle_id),
                      [self] { self->state.owed.front().before = false; });
  render_owed_block(self, run);
}

} // namespace

void settle(self_pointer self, std::function<void()> then) {
  auto& s = self->state;
  if (s.owed.empty() || s.stopping || s.settling)
    return then();
  s.settling = true;
  auto run = std::make_shared<settlement>();
  run->until = s.parts.context->ports.clock->steady() + settle_limit;
  run->then = std::move(then);
  const auto running = s.cycle ? s.cycle->id() : std::string{};
  const auto wanted = s.owed.size() + s.settings->max_cycle_history + 1;
  ask_store(
      self, s.parts.store, store::list_cycles{s.settings->kernel_id, false, wanted},
      [self, run, running](result<std::vector<cycle_record>> rows) {
        auto& st = self->state;
        if (!rows || st.owed.empty())
          return end(self, run);
        run->rows = std::move(*rows);
        std::erase_if(run->rows, [&](const cycle_record& c) { return c.cycle_id == running; });
        // A newer cycle that has its commits stays the one that STATE.md shows.
        run->renders = !run->rows.empty() && run->rows.front().cycle_id == st.owed.back().cycle_id;
        settle_next(self, run);
      });
}

namespace {

void owe(self_pointer self, state::owed_commits cycle) {
  auto& s = self->state;
  if (state::add_owed(s.owed, std::move(cycle)) > 0)
    spdlog::warn("kernel {}: more than {} cycles are owed their commits: the oldest ones stay "
                 "without",
                 s.settings->kernel_id, state::most_owed);
}

/// The cycle of a `cycle <id>: <status>`; nothing for any other commit.
std::optional<state::owed_commits> owed_of(self_pointer self, const commit_info& commit) {
  const auto& latest = self->state.latest;
  const auto status = cycle_status_from(commit.subject.substr(commit.subject.rfind(' ') + 1));
  for (const auto& [name, id] : commit.trailers) {
    if (name != "Boyd-Cycle" || !status || commit.subject != subject_of(id, *status))
      continue;
    const bool known = latest && latest->cycle_id == id && latest->finished_at;
    return state::owed_commits{id, *status, known ? *latest->finished_at : commit.time, true};
  }
  return std::nullopt;
}

} // namespace

void owe_commits(self_pointer self, const cycle_core& cycle) {
  if (!cycle.owes_commit())
    return;
  const auto& record = cycle.record();
  owe(self, {record.cycle_id, record.status, record.finished_at.value_or(record.started_at),
             cycle.owes_pre_commit()});
}

error owe_again(self_pointer self, const std::vector<commit_info>& lost) {
  std::string hashes;
  for (const auto& commit : lost) {
    hashes += (hashes.empty() ? "" : ", ") + commit.hash;
    if (auto cycle = owed_of(self, commit))
      owe(self, std::move(*cycle));
  }
  return {errc::conflict, "commits of earlier cycles are in no branch any more: " + hashes,
          self->state.parts.context->kernel_home(self->state.settings->kernel_id),
          "their cycles, and this one, get new ones before the next cycle; `git show` of the old "
          "ones has what was in them"};
}

} // namespace boyd::kernel_impl
