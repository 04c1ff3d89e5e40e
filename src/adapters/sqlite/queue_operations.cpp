#include "operations.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace boyd::adapters::sqlite {

using namespace store;

namespace {

std::int64_t sql_limit(std::size_t limit) {
  return static_cast<std::int64_t>(limit);
}

} // namespace

std::optional<std::string> operations::enqueued_id(const dispatch_spec& spec,
                                                   std::int64_t agent_no) {
  auto s = db_.fixed("SELECT dispatch_id FROM dispatch_requests WHERE cycle_id=? AND agent_no=?");
  s.bind(spec.cycle_id).bind(agent_no);
  if (!s.step())
    return std::nullopt;
  return s.text(0);
}

any_reply operations::run(const enqueue_cycle& op) {
  enqueue_cycle::reply reply;
  reply.dispatch_ids.reserve(op.specs.size());
  for (const auto& spec : op.specs) {
    auto& agent = names_.ensure(spec.kernel_id, spec.agent_id);
    if (insert_dispatch(spec, agent)) {
      ++reply.inserted;
      reply.dispatch_ids.push_back(spec.dispatch_id);
      continue;
    }
    auto standing = enqueued_id(spec, agent.no);
    if (!standing)
      return error{
          errc::already_exists, "dispatch id " + spec.dispatch_id + " is taken", "store", {}};
    reply.dispatch_ids.push_back(std::move(*standing));
  }
  for (const auto& d : op.decisions) {
    auto s = db_.fixed("INSERT INTO decisions(kernel_id, cycle_id, agent_id, decided_at, "
                       "dispatched, reason, detail) VALUES(?,?,?,?,?,?,?) ON CONFLICT DO NOTHING");
    s.bind(op.kernel_id).bind(op.cycle_id).bind(d.agent_id).bind(now_);
    s.bind(d.dispatched ? 1 : 0).bind(d.reason).bind(d.detail).run();
  }
  return reply;
}

any_reply operations::run(const claim& op) {
  // Both walk dispatch_waiting in the order of claiming; only the winners' rows are read.
  static const std::string head =
      "SELECT " + std::string{resting_row_columns()} + ", d.prompt FROM ";
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
    while (s.step()) {
      found.push_back(read_row(s, names_));
      found.back().row.d.prompt = s.text(row_column_count);
    }
  }
  const auto owner_no = found.empty() ? 0 : names_.node_no(op.node_id);
  if (!op.agent_id.empty())
    take_out_due(found);
  else
    for (const auto& f : found)
      take_out(f.row.d, *f.agent);
  out.reserve(found.size());
  for (auto& f : found) {
    auto& d = f.row.d;
    names_.waiting(*f.agent, d.not_before > d.created_at, false);
    queue::claim_row(f.row, op.node_id, op.lease, now_);
    lease(f, owner_no);
    names_.moved(*f.agent, dispatch_status::pending, dispatch_status::running);
    out.push_back({std::move(d), op.lease});
  }
  return out;
}

std::optional<held_lease> operations::find_lease(const std::string& dispatch_id) {
  if (const auto* known = names_.leased(dispatch_id))
    return *known;
  auto s = db_.fixed("SELECT id, agent_no, owner_no, fence, attempt, started_at, first FROM "
                     "dispatch_running WHERE dispatch_id=?");
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
  queue::queue_row row;
  auto& d = row.d;
  d.fence = held->fence;
  d.attempt = held->attempt;
  d.started_at = held->started_at;
  row.last_owner = names_.node_id(held->owner_no);
  d.status = dispatch_status::running;
  const auto result = queue::settle_row(row, item, now_);
  if (result != settle_result::accepted)
    return result;
  if (!is_final(d.status))
    return std::nullopt;
  auto& agent = names_.of(held->agent_no);
  end_lease(item.dispatch_id);
  write_result(held->id, agent.kernel_no, row, true);
  names_.moved(agent, dispatch_status::running, d.status);
  return result;
}

settle_result operations::settle_one(const settlement& item) {
  if (const auto done = settle_first_attempt(item))
    return *done;
  auto held = load(item.dispatch_id);
  if (held.id == 0)
    return settle_result::not_found;
  const auto result = queue::settle_row(held.row, item, now_);
  if (result == settle_result::accepted)
    save(held);
  return result;
}

any_reply operations::run(const settle& op) {
  // Results are kept in the order of their requests: written in it, the next one is the table's
  // last. Several items of one row stay in their order; what is not remembered comes last.
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  order.reserve(op.items.size());
  for (const auto& item : op.items) {
    const auto* lease = names_.leased(item.dispatch_id);
    order.emplace_back(lease != nullptr ? lease->id : std::numeric_limits<std::int64_t>::max(),
                       order.size());
  }
  std::sort(order.begin(), order.end());
  std::vector<settle_result> out(op.items.size(), settle_result::not_found);
  for (const auto& [id, i] : order)
    out[i] = settle_one(op.items[i]);
  return out;
}

any_reply operations::run(const renew_leases& op) {
  renew_leases::reply reply;
  const auto owner_no = names_.node_no(op.node_id);
  for (const auto& item : op.items) {
    auto s = db_.fixed("UPDATE dispatch_running SET lease_expires_at=? WHERE dispatch_id=? "
                       "AND fence=? AND owner_no=?");
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
  auto s = db_.fixed("SELECT dispatch_id FROM dispatch_running WHERE owner_no=? ORDER BY "
                     "dispatch_id LIMIT ?");
  s.bind(names_.node_no(op.node_id)).bind(sql_limit(op.limit));
  return give_back(std::move(s), op.max_rescues);
}

any_reply operations::run(const rescue_expired& op) {
  auto s = db_.fixed("SELECT dispatch_id FROM dispatch_running WHERE lease_expires_at <= ? "
                     "ORDER BY lease_expires_at, dispatch_id LIMIT ?");
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
