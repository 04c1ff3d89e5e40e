#include "operations.hpp"

#include <algorithm>
#include <utility>

namespace boyd::adapters::sqlite {

using namespace store;

namespace {

std::int64_t sql_limit(std::size_t limit) {
  return static_cast<std::int64_t>(limit);
}

} // namespace

std::optional<std::string> operations::enqueued_id(const dispatch_spec& spec) {
  auto s = db_.prepare(
      "SELECT dispatch_id FROM dispatches WHERE kernel_id=? AND cycle_id=? AND agent_id=?");
  s.bind(spec.kernel_id).bind(spec.cycle_id).bind(spec.agent_id);
  if (!s.step())
    return std::nullopt;
  return s.text(0);
}

any_reply operations::run(const enqueue_cycle& op) {
  enqueue_cycle::reply reply;
  reply.dispatch_ids.reserve(op.specs.size());
  for (const auto& spec : op.specs) {
    if (insert_dispatch(queue::new_row(spec, now_))) {
      ++reply.inserted;
      reply.dispatch_ids.push_back(spec.dispatch_id);
      continue;
    }
    auto standing = enqueued_id(spec);
    if (!standing)
      return error{
          errc::already_exists, "dispatch id " + spec.dispatch_id + " is taken", "store", {}};
    reply.dispatch_ids.push_back(std::move(*standing));
  }
  for (const auto& d : op.decisions) {
    auto s =
        db_.prepare("INSERT INTO decisions(kernel_id, cycle_id, agent_id, decided_at, "
                    "dispatched, reason, detail) VALUES(?,?,?,?,?,?,?) ON CONFLICT DO NOTHING");
    s.bind(op.kernel_id).bind(op.cycle_id).bind(d.agent_id).bind(now_);
    s.bind(d.dispatched ? 1 : 0).bind(d.reason).bind(d.detail).run();
  }
  return reply;
}

any_reply operations::run(const claim& op) {
  // The inner query reads dispatches_claim alone; rows and prompts are read for the winners only.
  static const std::string head = "SELECT " + std::string{row_columns()} +
                                  ", d.id, p.prompt FROM (SELECT id FROM dispatches WHERE status = "
                                  "'pending' AND kernel_id = ? ";
  static const std::string tail =
      "AND not_before <= ? ORDER BY priority DESC, created_at, dispatch_id LIMIT ?) c JOIN "
      "dispatches d ON d.id = c.id JOIN dispatch_prompts p ON p.id = c.id ORDER BY d.priority "
      "DESC, "
      "d.created_at, d.dispatch_id";
  static const std::string of_agent = head + "AND agent_id = ? " + tail;
  static const std::string of_any = head + tail;
  std::vector<claimed_dispatch> out;
  std::vector<std::int64_t> ids;
  {
    auto s = db_.prepare(op.agent_id.empty() ? of_any : of_agent);
    s.bind(op.kernel_id);
    if (!op.agent_id.empty())
      s.bind(op.agent_id);
    s.bind(now_).bind(sql_limit(op.limit));
    while (s.step()) {
      auto row = read_row(s);
      row.d.prompt = s.text(row_column_count + 1);
      ids.push_back(s.integer(row_column_count));
      queue::claim_row(row, op.node_id, op.lease, now_);
      out.push_back({std::move(row.d), op.lease});
    }
  }
  auto s = db_.prepare("UPDATE dispatches SET status='running', attempt=?, fence=?, "
                       "lease_owner=?, last_owner=?, lease_expires_at=?, started_at=?, "
                       "execution='none', claim='none', verification='none', "
                       "failure_class='none', exit_code=-1, output_cut=0, session_id='', "
                       "summary='', error='', usage='' WHERE id=?");
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto& d = out[i].row;
    s.rewind();
    s.bind(d.attempt).bind(d.fence).bind(d.lease_owner).bind(d.lease_owner);
    s.bind(d.lease_expires_at).bind(d.started_at).bind(ids[i]).run();
  }
  return out;
}

any_reply operations::run(const settle& op) {
  std::vector<settle_result> out;
  out.reserve(op.items.size());
  for (const auto& item : op.items) {
    auto found = load(item.dispatch_id);
    if (found.id == 0) {
      out.push_back(settle_result::not_found);
      continue;
    }
    const auto result = queue::settle_row(found.row, item, now_);
    if (result == settle_result::accepted) {
      save(found.id, found.row);
      save_output(found.id, found.row);
    }
    out.push_back(result);
  }
  return out;
}

any_reply operations::run(const renew_leases& op) {
  renew_leases::reply reply;
  for (const auto& item : op.items) {
    auto s = db_.prepare("UPDATE dispatches SET lease_expires_at=? WHERE dispatch_id=? AND "
                         "status='running' AND fence=? AND lease_owner=?");
    s.bind(now_ + op.lease).bind(item.dispatch_id).bind(item.fence).bind(op.node_id).run();
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
    save(held.id, held.row);
    (poisoned ? reply.poisoned : reply.returned).push_back(std::move(id));
  }
  return reply;
}

any_reply operations::run(const take_back& op) {
  auto s = db_.prepare("SELECT dispatch_id FROM dispatches WHERE status='running' AND "
                       "lease_owner=? ORDER BY dispatch_id LIMIT ?");
  s.bind(op.node_id).bind(sql_limit(op.limit));
  return give_back(std::move(s), op.max_rescues);
}

any_reply operations::run(const rescue_expired& op) {
  auto s = db_.prepare("SELECT dispatch_id FROM dispatches WHERE status='running' AND "
                       "lease_expires_at <= ? ORDER BY lease_expires_at, dispatch_id LIMIT ?");
  s.bind(now_).bind(sql_limit(op.limit));
  return give_back(std::move(s), op.max_rescues);
}

any_reply operations::run(const retry_dispatch& op) {
  auto found = load(op.dispatch_id);
  if (found.id == 0)
    return retry_dispatch::reply{};
  const auto reply = queue::retry_row(found.row, now_);
  if (reply.result == settle_result::accepted)
    save(found.id, found.row);
  return reply;
}

any_reply operations::run(const cancel_dispatch& op) {
  auto found = load(op.dispatch_id);
  if (found.id == 0)
    return cancel_dispatch::reply{};
  const auto reply = queue::cancel_row(found.row, now_);
  if (reply.result == settle_result::accepted)
    save(found.id, found.row);
  return reply;
}

any_reply operations::run(const due_agents&) {
  due_agents::reply reply;
  std::vector<std::pair<std::string, std::string>> agents;
  {
    // Steps from one agent to the next along dispatches_claim instead of reading every row.
    auto s = db_.prepare(
        "WITH RECURSIVE a(k, g) AS ("
        "SELECT * FROM (SELECT kernel_id, agent_id FROM dispatches WHERE status='pending' "
        "ORDER BY kernel_id, agent_id LIMIT 1) UNION ALL "
        "SELECT n.kernel_id, n.agent_id FROM a JOIN dispatches n ON n.id = ("
        "SELECT id FROM dispatches WHERE status='pending' AND (kernel_id, agent_id) > (a.k, a.g) "
        "ORDER BY kernel_id, agent_id LIMIT 1)) SELECT k, g FROM a");
    while (s.step())
      agents.emplace_back(s.text(0), s.text(1));
  }
  for (auto& [kernel, agent] : agents) {
    auto s = db_.prepare("SELECT count(*), max(priority) FROM (SELECT priority FROM dispatches "
                         "WHERE status='pending' AND kernel_id=? AND agent_id=? AND not_before<=? "
                         "ORDER BY priority DESC, created_at LIMIT ?)");
    s.bind(kernel).bind(agent).bind(now_).bind(static_cast<std::int64_t>(queue::due_count_cap));
    if (s.step() && s.integer(0) > 0)
      reply.due.push_back({kernel, agent, static_cast<int>(s.integer(1)),
                           static_cast<std::uint64_t>(s.integer(0))});
  }
  auto s = db_.prepare("SELECT not_before FROM dispatches WHERE status='pending' AND "
                       "not_before > created_at AND not_before > ? ORDER BY not_before LIMIT 1");
  s.bind(now_);
  if (s.step())
    reply.next_in = s.time(0) - now_;
  return reply;
}

} // namespace boyd::adapters::sqlite
