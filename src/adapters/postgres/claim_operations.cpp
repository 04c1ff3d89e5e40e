#include "operations.hpp"

#include <algorithm>
#include <tuple>

namespace boyd::adapters::postgres {

using namespace store;

namespace {

/// Takes $2 rows out of dispatch_waiting, of an agent ($1: one, or several). Their first $3 members
/// run from now on; the others wait as before. A first attempt runs beside others of its claim; any
/// later one has a claim of its own, with its own fence.
std::string claim_statement(const char* agent) {
  return std::string{
             "WITH taken AS MATERIALIZED (DELETE FROM dispatch_waiting WHERE ctid = ANY(ARRAY("
             "SELECT ctid FROM dispatch_waiting WHERE agent_no = "} +
         agent +
         " AND not_before <= now_ms() ORDER BY priority DESC, created_at, first_id LIMIT "
         "$2::bigint FOR UPDATE SKIP LOCKED)) RETURNING *), placed AS MATERIALIZED (SELECT *, "
         "greatest(0, $3::int - coalesce(sum(size) OVER (ORDER BY priority DESC, created_at, "
         "first_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))::int AS room FROM "
         "taken), rest AS (INSERT INTO dispatch_waiting(agent_no, priority, created_at, first_id, "
         "not_before, size, attempted, members) SELECT agent_no, priority, created_at, "
         "members[room + 1], not_before, size - room, attempted, members[room + 1:] FROM placed "
         "WHERE size > room), run AS (INSERT INTO dispatch_running(agent_no, owner, "
         "lease_expires_at, started_at, fence, attempt, attempted, members) SELECT p.agent_no, $4, "
         "now_ms() + $5::bigint, now_ms(), coalesce(s.fence, 0) + 1, coalesce(s.attempt, 0) + 1, "
         "p.attempted, p.members[:p.room] FROM placed p LEFT JOIN dispatch_results s ON "
         "p.attempted AND s.dispatch_id = p.first_id WHERE p.room > 0 RETURNING claim_no, "
         "attempted, members) SELECT (SELECT count(*) FROM taken), run.claim_no, run.attempted, "
         "d.dispatch_id, d.agent_no, d.cycle_id, d.priority, d.metadata, d.max_attempts, "
         "d.created_at, d.not_before, d.prompt FROM run, unnest(run.members) AS m(id) JOIN "
         "dispatch_requests d ON d.dispatch_id = m.id";
}

stored waiting_row(const answer& a, int r, directory& names) {
  stored s;
  auto& d = s.row.d;
  s.attempted = a.text(r, 2) == "t";
  d.dispatch_id = std::string{a.text(r, 3)};
  s.agent = &names.of(a.integer(r, 4));
  d.kernel_id = s.agent->kernel_id;
  d.agent_id = s.agent->agent_id;
  d.cycle_id = std::string{a.text(r, 5)};
  d.priority = static_cast<int>(a.integer(r, 6));
  if (!a.is_null(r, 7))
    d.metadata_json = std::string{a.text(r, 7)};
  d.max_attempts = static_cast<int>(a.integer(r, 8));
  d.created_at = a.time(r, 9);
  d.not_before = a.time(r, 10);
  d.prompt = std::string{a.text(r, 11)};
  return s;
}

bool comes_first(const claimed_dispatch& a, const claimed_dispatch& b) {
  return std::tuple{-a.row.priority, a.row.created_at, std::string_view{a.row.dispatch_id}} <
         std::tuple{-b.row.priority, b.row.created_at, std::string_view{b.row.dispatch_id}};
}

} // namespace

std::size_t operations::take(const claim& op, const array& agents, bool one, std::size_t rows,
                             std::vector<claimed_dispatch>& out) {
  static const auto of_one = claim_statement("($1::int[])[1]");
  static const auto of_several = claim_statement("ANY($1::int[])");
  const auto a =
      db_.run(one ? of_one : of_several, parameters{}
                                             .add(agents)
                                             .add(static_cast<std::int64_t>(rows))
                                             .add(static_cast<std::int64_t>(op.limit - out.size()))
                                             .add(op.node_id)
                                             .add(op.lease.count()));
  std::vector<stored> found;
  std::vector<stored*> attempted;
  found.reserve(static_cast<std::size_t>(a.rows()));
  for (int r = 0; r < a.rows(); ++r) {
    auto& s = found.emplace_back(waiting_row(a, r, names_));
    names_.claimed(s.row.d.dispatch_id, a.integer(r, 1));
    if (s.attempted)
      attempted.push_back(&s);
  }
  load_results(attempted);
  for (auto& s : found) {
    queue::claim_row(s.row, op.node_id, op.lease, now());
    out.push_back({std::move(s.row.d), op.lease});
  }
  return found.empty() ? 0 : static_cast<std::size_t>(a.integer(0, 0));
}

any_reply operations::run(const claim& op) {
  array agents;
  if (op.agent_id.empty()) {
    for (const auto* agent : names_.named(op.kernel_id, {}))
      agents.add(agent->no);
  } else if (const auto* agent = names_.find(op.kernel_id, op.agent_id)) {
    agents.add(agent->no);
  }
  std::vector<claimed_dispatch> out;
  if (agents.empty())
    return out;
  // How many dispatches a row stands for is not known: full rows first, then as many as the rows
  // so far let expect.
  auto rows = op.limit / most_members + 1;
  while (out.size() < op.limit) {
    const auto before = out.size();
    const auto taken = take(op, agents, !op.agent_id.empty(), rows, out);
    if (taken < rows)
      break;
    rows = (op.limit - out.size()) * taken / (out.size() - before) + 1;
  }
  std::sort(out.begin(), out.end(), comes_first);
  return out;
}

any_reply operations::run(const due_agents&) {
  // Steps from one agent to the next along dispatch_waiting_order, and reads no more of each than
  // the count needs: a few rows when they stand for many dispatches.
  const auto a = db_.run(
      "WITH RECURSIVE a(no) AS ((SELECT agent_no FROM dispatch_waiting ORDER BY agent_no LIMIT 1) "
      "UNION ALL SELECT n.agent_no FROM a, LATERAL (SELECT agent_no FROM dispatch_waiting WHERE "
      "agent_no > a.no ORDER BY agent_no LIMIT 1) n) SELECT a.no, c.best, least($1::bigint, CASE "
      "WHEN c.n >= $1::bigint OR c.rows < $2::bigint THEN c.n ELSE (SELECT sum(size) FROM (SELECT "
      "size FROM dispatch_waiting WHERE agent_no = a.no AND not_before <= now_ms() LIMIT "
      "$1::bigint) w) END) FROM a, LATERAL (SELECT sum(size) AS n, max(priority) AS best, count(*) "
      "AS rows FROM (SELECT size, priority FROM dispatch_waiting WHERE agent_no = a.no AND "
      "not_before <= now_ms() ORDER BY priority DESC LIMIT $2::bigint) due) c WHERE c.rows > 0",
      parameters{}
          .add(static_cast<std::int64_t>(queue::due_count_cap))
          .add(static_cast<std::int64_t>(queue::due_count_cap / most_members + 1)));
  due_agents::reply reply;
  for (int r = 0; r < a.rows(); ++r) {
    const auto& agent = names_.of(a.integer(r, 0));
    reply.due.push_back({agent.kernel_id, agent.agent_id, static_cast<int>(a.integer(r, 1)),
                         static_cast<std::uint64_t>(a.integer(r, 2))});
  }
  std::sort(reply.due.begin(), reply.due.end(), [](const auto& x, const auto& y) {
    return std::tie(x.kernel_id, x.agent_id) < std::tie(y.kernel_id, y.agent_id);
  });
  const auto next = db_.run("SELECT not_before - now_ms() FROM dispatch_waiting WHERE "
                            "not_before > created_at AND not_before > now_ms() ORDER BY "
                            "not_before LIMIT 1");
  if (next.rows() > 0)
    reply.next_in = milliseconds{next.integer(0, 0)};
  return reply;
}

} // namespace boyd::adapters::postgres
