#include "boyd/core/limits.hpp"
#include "operations.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

namespace boyd::adapters::sqlite {

using namespace store;

any_reply operations::run(const claim& op) {
  const auto ranges = due_ranges(op);
  std::vector<read_dispatch> found;
  found.reserve(std::min(op.limit, limits::claim_batch));
  for (auto next = ranges.begin(); next != ranges.end() && found.size() < op.limit;) {
    const auto end = std::find_if_not(next, ranges.end(),
                                      [&](const auto& range) { return range.is_alike(*next); });
    take_due({next, end}, op.limit - found.size(), found);
    next = end;
  }
  for (auto& f : found)
    if (f.attempted)
      read_attempts(f);
  const auto owner_no = found.empty() ? 0 : names_.node_no(op.node_id);
  for (auto& f : found) {
    const auto& d = f.row.d;
    names_.waiting(*f.agent, d.not_before > d.created_at, -1);
    queue::claim_row(f.row, op.node_id, op.lease, now_);
    names_.moved(*f.agent, dispatch_status::pending, dispatch_status::running);
  }
  lease(found, owner_no);
  std::vector<claimed_dispatch> out;
  out.reserve(found.size());
  for (auto& f : found)
    out.push_back({std::move(f.row.d), op.lease});
  return out;
}

/// What the list of a claim leaves out: few rows have been attempted before.
void operations::read_attempts(read_dispatch& claimed) {
  static const std::string sql = "SELECT " + std::string{row_columns()} +
                                 " FROM dispatch_requests d" + std::string{row_joins} +
                                 " WHERE d.id = ?";
  auto s = db_.fixed(sql.c_str());
  s.bind(claimed.id);
  if (!s.step())
    throw failure(SQLITE_CORRUPT, "a claimed dispatch is unreadable");
  auto prompt = std::move(claimed.row.d.prompt);
  claimed = read_row(s, names_);
  claimed.row.d.prompt = std::move(prompt);
}

std::optional<held_lease> operations::find_lease(const std::string& dispatch_id) {
  if (const auto* known = names_.leased(dispatch_id))
    return *known;
  write_gathered();
  const auto id = number_of(dispatch_id);
  auto range = running_at(id);
  if (!range)
    return std::nullopt;
  range->held.id = id;
  return range->held;
}

std::int64_t operations::number_of(const std::string& dispatch_id) {
  if (const auto* known = names_.leased(dispatch_id))
    return known->id;
  auto s = db_.fixed("SELECT id FROM dispatch_requests WHERE dispatch_id=?");
  s.bind(dispatch_id);
  return s.step() ? s.integer(0) : 0;
}

/// Most rows are settled at their first attempt, and finally: then the lease says all that the rule
/// reads, and the result is a row of its own. Nothing: the whole row has to be looked at.
std::optional<settle_result> operations::settle_first_attempt(const std::string& node_id,
                                                              const settlement& item) {
  const auto held = find_lease(item.dispatch_id);
  if (!held || !held->first)
    return std::nullopt;
  auto& made = first_results_.emplace_back();
  auto& d = made.row.d;
  d.fence = held->fence;
  d.attempt = held->attempt;
  d.started_at = held->started_at;
  made.row.last_owner = d.lease_owner = names_.node_id(held->owner_no);
  d.status = dispatch_status::running;
  const auto result = queue::settle_row(made.row, node_id, item, now_);
  if (result != settle_result::accepted || !is_final(d.status)) {
    first_results_.pop_back();
    return result == settle_result::accepted ? std::nullopt : std::optional{result};
  }
  const auto& agent = names_.of(held->agent_no);
  made.id = held->id;
  made.kernel_no = agent.kernel_no;
  names_.released(item.dispatch_id);
  names_.moved(agent, dispatch_status::running, d.status);
  return result;
}

settle_result operations::settle_one(const std::string& node_id, const settlement& item) {
  if (const auto done = settle_first_attempt(node_id, item))
    return *done;
  write_gathered();
  auto held = load(item.dispatch_id);
  if (held.id == 0)
    return settle_result::not_found;
  const auto result = queue::settle_row(held.row, node_id, item, now_);
  if (result == settle_result::accepted)
    save(held);
  return result;
}

any_reply operations::run(const settle& op) {
  std::vector<settle_result> out;
  out.reserve(op.items.size());
  for (const auto& item : op.items)
    out.push_back(settle_one(op.node_id, item));
  return out;
}

take_back::reply operations::give_back(statement ids, int max_rescues) {
  std::vector<std::string> found;
  while (ids.step())
    found.push_back(ids.text(0));
  take_back::reply reply;
  for (auto& id : found) {
    auto held = load(id);
    const bool poisoned = queue::rescue_row(held.row, max_rescues, now_);
    save(held);
    (poisoned ? reply.poisoned : reply.returned).push_back(std::move(id));
  }
  return reply;
}

any_reply operations::run(const take_back& op) {
  auto s = db_.fixed(
      "SELECT d.dispatch_id FROM dispatch_running r CROSS JOIN dispatch_requests d "
      "ON d.id BETWEEN r.first_id AND r.last_id WHERE r.owner_no=? ORDER BY d.dispatch_id LIMIT ?");
  s.bind(names_.node_no(op.node_id)).bind(sql_limit(op.limit));
  return give_back(std::move(s), op.max_rescues);
}

any_reply operations::run(const rescue_expired& op) {
  constexpr std::int64_t nobody = 0;
  const auto own_no = op.node_id.empty() ? nobody : names_.node_no(op.node_id);
  rescue_expired::reply reply;
  {
    auto s = db_.fixed("SELECT d.dispatch_id, r.agent_no, r.fence FROM dispatch_running r CROSS "
                       "JOIN dispatch_requests d ON d.id BETWEEN r.first_id AND r.last_id WHERE "
                       "r.lease_expires_at <= ? AND r.owner_no = ? ORDER BY r.lease_expires_at, "
                       "d.dispatch_id LIMIT ?");
    s.bind(now_).bind(own_no).bind(sql_limit(op.limit));
    while (s.step()) {
      const auto& agent = names_.of(s.integer(1));
      reply.own.push_back({s.text(0), agent.kernel_id, agent.agent_id, s.integer(2)});
    }
  }
  auto s = db_.fixed("SELECT d.dispatch_id FROM dispatch_running r CROSS JOIN dispatch_requests d "
                     "ON d.id BETWEEN r.first_id AND r.last_id WHERE r.lease_expires_at <= ? AND "
                     "r.owner_no <> ? ORDER BY r.lease_expires_at, d.dispatch_id LIMIT ?");
  s.bind(now_).bind(own_no).bind(sql_limit(op.limit));
  static_cast<take_back::reply&>(reply) = give_back(std::move(s), op.max_rescues);
  auto next =
      db_.fixed("SELECT min(CASE WHEN lease_expires_at > ?1 THEN lease_expires_at END), "
                "count(CASE WHEN lease_expires_at <= ?1 THEN 1 END) FROM dispatch_running WHERE "
                "owner_no <> ?2");
  next.bind(now_).bind(own_no);
  if (next.step()) {
    if (!next.null(0))
      reply.next_in = next.time(0) - now_;
    reply.some_left = next.integer(1) > 0;
  }
  return reply;
}

any_reply operations::run(const retry_dispatch& op) {
  auto found = load(op.dispatch_id);
  if (found.id == 0)
    return retry_dispatch::reply{};
  const auto reply = queue::retry_row(found.row, now_);
  if (reply.result == settle_result::accepted)
    save(found);
  return reply;
}

any_reply operations::run(const cancel_dispatch& op) {
  auto found = load(op.dispatch_id);
  if (found.id == 0)
    return cancel_dispatch::reply{};
  const auto reply = queue::cancel_row(found.row, now_, op.cause);
  if (reply.result == settle_result::accepted)
    save(found);
  return reply;
}

std::uint64_t operations::due_count(const agent_entry& agent) {
  if (agent.delayed == 0)
    return std::min(agent.waiting, queue::due_count_cap);
  auto s = db_.fixed("SELECT coalesce(sum(n), 0) FROM (SELECT last_id - first_id + 1 AS n FROM "
                     "dispatch_waiting WHERE agent_no=? AND " SQL_IS_DUE " LIMIT ?)");
  s.bind(agent.no).bind(now_).bind(static_cast<std::int64_t>(queue::due_count_cap));
  s.step();
  return std::min(static_cast<std::uint64_t>(s.integer(0)), queue::due_count_cap);
}

any_reply operations::run(const due_agents&) {
  due_agents::reply reply;
  for (const auto& [name, agent] : names_.counted()) {
    if (agent.waiting == 0)
      continue;
    auto s = db_.fixed("SELECT priority FROM dispatch_waiting WHERE agent_no=? AND " SQL_IS_DUE " "
                       "ORDER BY priority DESC LIMIT 1");
    s.bind(agent.no).bind(now_);
    if (s.step())
      reply.due.push_back(
          {agent.kernel_id, agent.agent_id, static_cast<int>(s.integer(0)), due_count(agent)});
  }
  auto s = db_.fixed("SELECT not_before FROM dispatch_waiting WHERE not_before > created_at AND "
                     "not_before > ? ORDER BY not_before LIMIT 1");
  s.bind(now_);
  if (s.step())
    reply.next_in = s.time(0) - now_;
  return reply;
}

} // namespace boyd::adapters::sqlite
