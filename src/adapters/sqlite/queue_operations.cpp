#include "boyd/core/limits.hpp"
#include "operations.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

namespace boyd::adapters::sqlite {

using namespace store;

namespace {

std::int64_t sql_limit(std::size_t limit) {
  return static_cast<std::int64_t>(limit);
}

} // namespace

any_reply operations::run(const claim& op) {
  // Both walk dispatch_waiting in the order of claiming; only the winners' rows are read.
  static const std::string head =
      "SELECT " + std::string{request_columns()} + ", d.prompt, s.id FROM ";
  static const std::string tail =
      "CROSS JOIN dispatch_requests d ON d.id = w.id LEFT JOIN dispatch_results s ON s.id = w.id "
      "WHERE w.agent_no = ? AND w.not_before <= ? ORDER BY w.priority DESC, w.created_at, "
      "w.dispatch_id LIMIT ?";
  static const std::string of_agent = head + "dispatch_waiting w " + tail;
  static const std::string of_any =
      head +
      "(SELECT w.* FROM agents a CROSS JOIN dispatch_waiting w ON w.agent_no = a.no WHERE "
      "a.kernel_no = (SELECT no FROM kernels WHERE kernel_id = ?) AND w.not_before <= ? ORDER BY "
      "w.priority DESC, w.created_at, w.dispatch_id LIMIT ?) w CROSS JOIN dispatch_requests d ON "
      "d.id = w.id LEFT JOIN dispatch_results s ON s.id = w.id ORDER BY w.priority DESC, "
      "w.created_at, w.dispatch_id";
  std::vector<claimed_dispatch> out;
  std::vector<read_dispatch> found;
  {
    const auto* agent = op.agent_id.empty() ? nullptr : names_.find(op.kernel_id, op.agent_id);
    if (agent == nullptr && !op.agent_id.empty())
      return out;
    auto s = db_.fixed((agent != nullptr ? of_agent : of_any).c_str());
    if (agent != nullptr)
      s.bind(agent->no);
    else
      s.bind(op.kernel_id);
    s.bind(now_).bind(sql_limit(op.limit));
    found.reserve(std::min(op.limit, limits::claim_batch));
    while (s.step()) {
      auto& f = found.emplace_back(read_request(s, names_));
      f.row.d.prompt = s.text(request_column_count);
      f.attempted = !s.null(request_column_count + 1);
    }
  }
  for (auto& f : found)
    if (f.attempted)
      read_attempts(f);
  const auto owner_no = found.empty() ? 0 : names_.node_no(op.node_id);
  if (!op.agent_id.empty())
    take_out_due(found);
  else
    for (const auto& f : found)
      take_out(f.row.d, *f.agent);
  for (auto& f : found) {
    auto& d = f.row.d;
    names_.waiting(*f.agent, d.not_before > d.created_at, false);
    queue::claim_row(f.row, op.node_id, op.lease, now_);
    names_.moved(*f.agent, dispatch_status::pending, dispatch_status::running);
  }
  lease(found, owner_no);
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
    throw failure(SQLITE_CORRUPT, "a dispatch that is claimed cannot be read");
  auto prompt = std::move(claimed.row.d.prompt);
  claimed = read_row(s, names_);
  claimed.row.d.prompt = std::move(prompt);
}

std::optional<held_lease> operations::find_lease(const std::string& dispatch_id) {
  if (const auto* known = names_.leased(dispatch_id))
    return *known;
  write_gathered();
  auto s = db_.fixed("SELECT id, agent_no, owner_no, fence, attempt, started_at, first FROM "
                     "dispatch_running WHERE id=(SELECT id FROM dispatch_requests WHERE "
                     "dispatch_id=?)");
  s.bind(dispatch_id);
  if (!s.step())
    return std::nullopt;
  return held_lease{
      s.integer(0), s.integer(1),     s.integer(2), s.integer(3), static_cast<int>(s.integer(4)),
      s.time(5),    s.integer(6) != 0};
}

/// Most rows are settled at their first attempt, and finally: then the lease says all that the rule
/// reads, and the result is a row of its own. Nothing: the whole row has to be looked at.
std::optional<settle_result> operations::settle_first_attempt(const settlement& item) {
  const auto held = find_lease(item.dispatch_id);
  if (!held || !held->first)
    return std::nullopt;
  auto& made = first_results_.emplace_back();
  auto& d = made.row.d;
  d.fence = held->fence;
  d.attempt = held->attempt;
  d.started_at = held->started_at;
  made.row.last_owner = names_.node_id(held->owner_no);
  d.status = dispatch_status::running;
  const auto result = queue::settle_row(made.row, item, now_);
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

settle_result operations::settle_one(const settlement& item) {
  if (const auto done = settle_first_attempt(item))
    return *done;
  write_gathered();
  auto held = load(item.dispatch_id);
  if (held.id == 0)
    return settle_result::not_found;
  const auto result = queue::settle_row(held.row, item, now_);
  if (result == settle_result::accepted)
    save(held);
  return result;
}

any_reply operations::run(const settle& op) {
  std::vector<settle_result> out;
  out.reserve(op.items.size());
  for (const auto& item : op.items)
    out.push_back(settle_one(item));
  return out;
}

any_reply operations::run(const renew_leases& op) {
  renew_leases::reply reply;
  const auto owner_no = names_.node_no(op.node_id);
  for (const auto& item : op.items) {
    auto s = db_.fixed("UPDATE dispatch_running SET lease_expires_at=? WHERE id=(SELECT id FROM "
                       "dispatch_requests WHERE dispatch_id=?) AND fence=? AND owner_no=?");
    s.bind(now_ + op.lease).bind(item.dispatch_id).bind(item.fence).bind(owner_no).run();
    if (db_.changes() == 0)
      reply.lost.push_back(item.dispatch_id);
  }
  return reply;
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
  auto s = db_.fixed("SELECT d.dispatch_id FROM dispatch_running r CROSS JOIN dispatch_requests d "
                     "ON d.id=r.id WHERE r.owner_no=? ORDER BY d.dispatch_id LIMIT ?");
  s.bind(names_.node_no(op.node_id)).bind(sql_limit(op.limit));
  return give_back(std::move(s), op.max_rescues);
}

any_reply operations::run(const rescue_expired& op) {
  auto s = db_.fixed("SELECT d.dispatch_id FROM dispatch_running r CROSS JOIN dispatch_requests d "
                     "ON d.id=r.id WHERE r.lease_expires_at <= ? ORDER BY r.lease_expires_at, "
                     "d.dispatch_id LIMIT ?");
  s.bind(now_).bind(sql_limit(op.limit));
  return give_back(std::move(s), op.max_rescues);
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
  const auto reply = queue::cancel_row(found.row, now_);
  if (reply.result == settle_result::accepted)
    save(found);
  return reply;
}

std::uint64_t operations::due_count(const agent_entry& agent) {
  if (agent.delayed == 0)
    return std::min(agent.waiting, queue::due_count_cap);
  auto s = db_.fixed("SELECT count(*) FROM (SELECT 1 FROM dispatch_waiting WHERE agent_no=? AND "
                     "not_before<=? LIMIT ?)");
  s.bind(agent.no).bind(now_).bind(static_cast<std::int64_t>(queue::due_count_cap));
  return s.step() ? static_cast<std::uint64_t>(s.integer(0)) : 0;
}

any_reply operations::run(const due_agents&) {
  due_agents::reply reply;
  for (const auto& [name, agent] : names_.counted()) {
    if (agent.waiting == 0)
      continue;
    auto s = db_.fixed("SELECT priority FROM dispatch_waiting WHERE agent_no=? AND not_before<=? "
                       "ORDER BY priority DESC, created_at, dispatch_id LIMIT 1");
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
