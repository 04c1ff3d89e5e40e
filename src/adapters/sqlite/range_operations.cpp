#include "operations.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

namespace boyd::adapters::sqlite {

using namespace store;

// Dispatches that came in together wait in one row, those that were claimed together run in one:
// consecutive numbers of one agent. Whoever goes another way is cut out of the range.

void operations::put_in(const waiting_range& range) {
  auto s = db_.fixed("INSERT INTO dispatch_waiting(agent_no, priority, created_at, "
                     "first_dispatch_id, not_before, attempted, first_id, last_id) "
                     "VALUES(?,?,?,?,?,?,?,?)");
  s.bind(range.agent->no).bind(range.priority).bind(range.created_at).bind(range.first_dispatch_id);
  s.bind(range.not_before).bind(range.attempted ? 1 : 0).bind(range.first_id).bind(range.last_id);
  s.run();
}

void operations::take_out(const waiting_range& from, std::int64_t first, std::int64_t last) {
  constexpr auto shorten = "UPDATE dispatch_waiting SET last_id=? WHERE agent_no=? AND priority=? "
                           "AND created_at=? AND first_dispatch_id=?";
  constexpr auto remove = "DELETE FROM dispatch_waiting WHERE agent_no=? AND priority=? AND "
                          "created_at=? AND first_dispatch_id=?";
  const bool keeps_its_begin = first > from.first_id;
  {
    auto s = db_.fixed(keeps_its_begin ? shorten : remove);
    if (keeps_its_begin)
      s.bind(first - 1);
    s.bind(from.agent->no).bind(from.priority).bind(from.created_at).bind(from.first_dispatch_id);
    s.run();
  }
  if (db_.changes() != 1)
    throw failure(SQLITE_CORRUPT, "the waiting rows have changed");
  if (last == from.last_id)
    return;
  auto rest = from;
  rest.first_id = last + 1;
  {
    auto s = db_.fixed("SELECT dispatch_id FROM dispatch_requests WHERE id=?");
    s.bind(rest.first_id);
    if (!s.step())
      throw failure(SQLITE_CORRUPT, "a waiting dispatch is missing");
    rest.first_dispatch_id = s.text(0);
  }
  put_in(rest);
}

void operations::take_out(std::int64_t id, const dispatch& d, agent_entry& agent) {
  waiting_range range{&agent, d.priority, d.created_at, {}, false, 0, 0, {}};
  {
    auto s = db_.fixed("SELECT not_before, attempted, first_id, last_id, first_dispatch_id FROM "
                       "dispatch_waiting WHERE agent_no=? AND priority=? AND created_at=? AND "
                       "first_dispatch_id<=? AND first_id<=? AND last_id>=? ORDER BY "
                       "first_dispatch_id DESC LIMIT 1");
    s.bind(agent.no).bind(d.priority).bind(d.created_at).bind(d.dispatch_id).bind(id).bind(id);
    if (!s.step())
      throw failure(SQLITE_CORRUPT, "a pending dispatch is not waiting");
    range.not_before = s.time(0);
    range.attempted = s.integer(1) != 0;
    range.first_id = s.integer(2);
    range.last_id = s.integer(3);
    range.first_dispatch_id = s.text(4);
  }
  take_out(range, id, id);
}

std::vector<operations::waiting_range> operations::due_ranges(const claim& op) {
  constexpr auto of_agent =
      "SELECT agent_no, priority, created_at, not_before, attempted, first_id, last_id, "
      "first_dispatch_id FROM dispatch_waiting WHERE agent_no = ? AND " SQL_IS_DUE " ORDER BY "
      "priority DESC, created_at, "
      "first_dispatch_id";
  constexpr auto of_any =
      "SELECT w.agent_no, w.priority, w.created_at, w.not_before, w.attempted, w.first_id, "
      "w.last_id, w.first_dispatch_id FROM agents a CROSS JOIN dispatch_waiting w ON w.agent_no = "
      "a.no WHERE "
      "a.kernel_no = (SELECT no FROM kernels WHERE kernel_id = ?) AND " SQL_IS_DUE " ORDER BY "
      "w.priority DESC, w.created_at, w.first_dispatch_id LIMIT ?";
  std::vector<waiting_range> out;
  const auto* agent = op.agent_id.empty() ? nullptr : names_.find(op.kernel_id, op.agent_id);
  if (agent == nullptr && !op.agent_id.empty())
    return out;
  auto s = db_.fixed(agent != nullptr ? of_agent : of_any);
  if (agent != nullptr)
    s.bind(agent->no).bind(now_);
  else
    s.bind(op.kernel_id).bind(now_).bind(sql_limit(op.limit));
  // Of ranges that are alike, dispatches of a later one may come before some of an earlier one. As
  // many of them as are wanted are enough: each begins with one that comes before all that follow.
  std::int64_t sure = 0;
  std::int64_t rows = 0;
  while (s.step()) {
    waiting_range next{&names_.of(s.integer(0)),
                       static_cast<int>(s.integer(1)),
                       s.time(2),
                       s.time(3),
                       s.integer(4) != 0,
                       s.integer(5),
                       s.integer(6),
                       s.text(7)};
    if (out.empty() || !out.back().is_alike(next))
      sure = rows;
    if (sure >= sql_limit(op.limit))
      break;
    ++sure;
    rows += next.size();
    out.push_back(std::move(next));
  }
  return out;
}

void operations::take_due(std::span<const waiting_range> alike, std::size_t limit,
                          std::vector<read_dispatch>& claimed) {
  static const std::string columns = "SELECT " + request_columns() + ", d.prompt, ";
  static const std::string of_one =
      columns + "0 FROM dispatch_requests d WHERE d.id BETWEEN ? AND ? ORDER BY d.id LIMIT ?";
  static const std::string of_several =
      columns + "g.c2 FROM given_rows g CROSS JOIN dispatch_requests d ON d.id BETWEEN g.c0 AND "
                "g.c1 ORDER BY d.dispatch_id LIMIT ?";
  std::vector<std::int64_t> taken(alike.size());
  {
    auto s = db_.fixed((alike.size() == 1 ? of_one : of_several).c_str());
    if (alike.size() == 1) {
      s.bind(alike.front().first_id).bind(alike.front().last_id);
    } else {
      auto& given = db_.rows().begin(3);
      for (std::size_t i = 0; i < alike.size(); ++i)
        given.bind(alike[i].first_id).bind(alike[i].last_id).bind(static_cast<std::int64_t>(i));
    }
    s.bind(sql_limit(limit));
    while (s.step()) {
      auto& c = claimed.emplace_back(read_request(s, names_));
      c.row.d.prompt = s.text(request_column_count);
      const auto range = static_cast<std::size_t>(s.integer(request_column_count + 1));
      c.attempted = alike[range].attempted;
      ++taken[range];
    }
  }
  // In the order of their dispatch_ids, which is the one within a range, too.
  for (std::size_t i = 0; i < alike.size(); ++i)
    if (taken[i] > 0)
      take_out(alike[i], alike[i].first_id, alike[i].first_id + taken[i] - 1);
}

void operations::lease(const std::vector<read_dispatch>& claimed, std::int64_t owner_no) {
  for (const auto& c : claimed) {
    const auto& d = c.row.d;
    const held_lease held{c.id, c.agent->no, owner_no, d.fence, d.attempt, now_, !c.attempted};
    names_.leased(d.dispatch_id, held);
    new_leases_.push_back({held, c.id, d.lease_expires_at});
  }
}

void operations::write_leases() {
  if (new_leases_.empty())
    return;
  std::ranges::sort(new_leases_, {}, [](const running_range& r) { return r.held.id; });
  std::vector<running_range> ranges;
  for (const auto& next : new_leases_) {
    if (!ranges.empty() && ranges.back().goes_on(next))
      ranges.back().last_id = next.last_id;
    else
      ranges.push_back(next);
  }
  new_leases_.clear();
  add_running(ranges);
}

void operations::add_running(const std::vector<running_range>& ranges) {
  constexpr std::size_t columns = 9;
  auto& rows = db_.rows().begin(columns);
  for (const auto& [held, last_id, expires_at] : ranges) {
    rows.bind(held.id).bind(last_id).bind(held.agent_no).bind(held.fence).bind(held.attempt);
    rows.bind(held.owner_no).bind(expires_at).bind(held.started_at).bind(held.first ? 1 : 0);
  }
  db_.fixed("INSERT INTO dispatch_running(first_id, last_id, agent_no, fence, attempt, owner_no, "
            "lease_expires_at, started_at, first) SELECT c0, c1, c2, c3, c4, c5, c6, c7, c8 FROM "
            "given_rows")
      .run();
}

std::optional<operations::running_range> operations::running_at(std::int64_t id) {
  auto s = db_.fixed("SELECT first_id, agent_no, owner_no, fence, attempt, started_at, first, "
                     "last_id, lease_expires_at FROM dispatch_running WHERE first_id <= ? ORDER BY "
                     "first_id DESC LIMIT 1");
  s.bind(id);
  if (!s.step() || s.integer(7) < id)
    return std::nullopt;
  const held_lease held{
      s.integer(0), s.integer(1),     s.integer(2), s.integer(3), static_cast<int>(s.integer(4)),
      s.time(5),    s.integer(6) != 0};
  return running_range{held, s.integer(7), s.time(8)};
}

void operations::cut(const running_range& from, std::int64_t first, std::int64_t last) {
  if (first > from.held.id)
    db_.fixed("UPDATE dispatch_running SET last_id=? WHERE first_id=?")
        .bind(first - 1)
        .bind(from.held.id)
        .run();
  else
    db_.fixed("DELETE FROM dispatch_running WHERE first_id=?").bind(from.held.id).run();
  if (last == from.last_id)
    return;
  auto rest = from;
  rest.held.id = last + 1;
  add_running({rest});
}

void operations::end_leases(std::int64_t first, std::int64_t last) {
  while (first <= last) {
    const auto range = running_at(first);
    if (!range)
      throw failure(SQLITE_CORRUPT, "cannot end an expired lease");
    const auto end = std::min(last, range->last_id);
    cut(*range, first, end);
    first = end + 1;
  }
}

any_reply operations::run(const renew_leases& op) {
  renew_leases::reply reply;
  const auto owner_no = names_.node_no(op.node_id);
  std::vector<std::int64_t> held;
  for (const auto& item : op.items) {
    const auto id = number_of(item.dispatch_id);
    const auto range = running_at(id);
    if (range && range->held.fence == item.fence && range->held.owner_no == owner_no)
      held.push_back(id);
    else
      reply.lost.push_back(item.dispatch_id);
  }
  std::ranges::sort(held);
  held.erase(std::unique(held.begin(), held.end()), held.end());
  std::vector<running_range> renewed;
  for (auto next = held.begin(); next != held.end();) {
    auto range = running_at(*next).value();
    auto part = range;
    part.held.id = part.last_id = *next;
    part.expires_at = now_ + op.lease;
    while (++next != held.end() && *next == part.last_id + 1 && *next <= range.last_id)
      ++part.last_id;
    cut(range, part.held.id, part.last_id);
    renewed.push_back(part);
  }
  add_running(renewed);
  return reply;
}

} // namespace boyd::adapters::sqlite
