#include "boyd/queue/approval_rows.hpp"

#include <utility>

namespace boyd::queue {

namespace {

void write(approval_rows& rows, const approval_step& s) {
  if (s.repeated)
    return;
  rows.update(s.row);
  if (s.line.number <= most_trail_lines)
    rows.add_line(s.row.approval_id, s.line);
}

store::approval_change change_of(approval_rows& rows, approval_step s) {
  write(rows, s);
  return {s.outcome, std::move(s.row)};
}

/// Ends at most `limit` of those that are over; how many it ended.
std::uint64_t end_over(approval_rows& rows, std::size_t limit) {
  std::uint64_t ended = 0;
  const auto now = rows.now();
  for (const auto& row : rows.hold_over(limit))
    if (auto s = end_approval(row, rows.run_lives(row.matter.dispatch_id, row.fence), now)) {
      write(rows, *s);
      ++ended;
    }
  return ended;
}

/// A new request ends so many that are over, so that a run's next request finds the earlier run's
/// ended, and none that is over counts among those that wait.
constexpr std::size_t ended_beside = 16;

} // namespace

result<store::ask_approval::reply> carry_out(approval_rows& rows, const store::ask_approval& op) {
  if (auto row = rows.hold(op.approval_id))
    return store::ask_approval::reply{std::move(*row), true};
  if (!rows.run_lives(op.matter.dispatch_id, op.fence))
    return fail(errc::stale_fence, "the run is not the current run of its dispatch",
                op.matter.dispatch_id);
  end_over(rows, ended_beside);
  const auto matter = matter_hash(op.matter);
  const auto now = rows.now();
  if (auto earlier = rows.hold_latest(op.matter.dispatch_id, matter);
      earlier && answers_again(*earlier, now)) {
    auto s = adopt_approval(std::move(*earlier), op, now);
    write(rows, s);
    return store::ask_approval::reply{std::move(s.row), false};
  }
  if (rows.count(store::approval_state::pending) >= most_open_approvals)
    return fail(errc::limit_exceeded,
                std::to_string(most_open_approvals) + " requests are already pending", "approvals",
                "decide some first: boyd approvals ls");
  auto s = begin_approval(op, now);
  rows.insert(s.row, matter);
  rows.add_line(s.row.approval_id, s.line);
  return store::ask_approval::reply{std::move(s.row), true};
}

store::decide_approval::reply carry_out(approval_rows& rows, const store::decide_approval& op) {
  auto row = rows.hold(op.approval_id);
  if (!row)
    return {};
  const bool lives = rows.run_lives(row->matter.dispatch_id, row->fence);
  return change_of(rows, decide_approval(std::move(*row), lives, op, rows.now()));
}

store::use_approval::reply carry_out(approval_rows& rows, const store::use_approval& op) {
  auto row = rows.hold(op.approval_id);
  if (!row)
    return {};
  const bool lives = rows.run_lives(row->matter.dispatch_id, row->fence);
  return change_of(rows, use_approval(std::move(*row), lives, op, rows.now()));
}

store::withdraw_approvals::reply carry_out(approval_rows& rows,
                                           const store::withdraw_approvals& op) {
  store::withdraw_approvals::reply reply;
  const auto now = rows.now();
  for (auto& row : rows.hold_open(op.dispatch_id, op.fence)) {
    // One that waits for the dispatch's next run stays until that run has it.
    if (row.held || (!op.approval_id.empty() && row.approval_id != op.approval_id))
      continue;
    reply.ended.push_back(row.approval_id);
    write(rows, withdraw_approval(std::move(row), op, now));
  }
  return reply;
}

store::sweep_approvals::reply carry_out(approval_rows& rows, const store::sweep_approvals& op) {
  store::sweep_approvals::reply reply;
  reply.ended = end_over(rows, op.limit);
  reply.pending = rows.count(store::approval_state::pending);
  reply.approved = rows.count(store::approval_state::approved);
  return reply;
}

result<store::find_approval::reply> carry_out(approval_rows& rows, const store::find_approval& op) {
  auto found = rows.beginning_with(op.approval_id);
  if (found.empty())
    return store::find_approval::reply{};
  if (found.size() > 1 && found.front().approval_id != op.approval_id)
    return fail(errc::invalid_argument, "more than one approval begins with " + op.approval_id, {},
                "use more characters of the id");
  auto& row = found.front();
  const bool lives = rows.run_lives(row.matter.dispatch_id, row.fence);
  auto trail = rows.trail(row.approval_id);
  return store::find_approval::reply{
      {seen_at(std::move(row), lives, rows.now()), std::move(trail)}};
}

store::list_approvals::reply carry_out(approval_rows& rows, const store::list_approvals& op) {
  store::list_approvals::reply out;
  const auto now = rows.now();
  for (auto& row : rows.list(op)) {
    if (is_open(row.state)) {
      const bool lives = rows.run_lives(row.matter.dispatch_id, row.fence);
      row = seen_at(std::move(row), lives, now);
    }
    if (!op.open || is_open(row.state))
      out.push_back(std::move(row));
  }
  return out;
}

} // namespace boyd::queue
