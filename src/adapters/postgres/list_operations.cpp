#include "operations.hpp"

#include <utility>

namespace boyd::adapters::postgres {

using namespace store;

namespace {

std::string select_rows(bool bodies) {
  std::string sql = "SELECT " + std::string{row_columns()};
  if (bodies)
    sql += ", p.prompt, o.output";
  sql += " FROM dispatches d";
  if (bodies)
    sql += " LEFT JOIN dispatch_prompts p ON p.dispatch_id = d.dispatch_id LEFT JOIN "
           "dispatch_outputs o ON o.dispatch_id = d.dispatch_id AND o.fence = d.fence";
  return sql;
}

dispatch shown(const answer& a, int r, bool bodies) {
  auto row = read_row(a, r);
  if (bodies) {
    row.d.prompt = std::string{a.text(r, row_column_count)};
    row.d.outcome.output = std::string{a.text(r, row_column_count + 1)};
  }
  return std::move(row.d);
}

std::int64_t sql_limit(std::size_t limit) {
  return static_cast<std::int64_t>(limit);
}

} // namespace

any_reply operations::run(const find_dispatch& op) {
  const auto a = db_.run(select_rows(true) +
                             " WHERE d.dispatch_id >= $1 AND d.dispatch_id < $1 || '~' ORDER BY "
                             "d.dispatch_id LIMIT 2",
                         parameters{}.add(op.dispatch_id));
  std::optional<dispatch> found;
  if (a.rows() > 0)
    found = shown(a, 0, true);
  if (a.rows() > 1 && found->dispatch_id != op.dispatch_id)
    return error{errc::invalid_argument, "several dispatches begin with " + op.dispatch_id, "store",
                 "give more characters of the id"};
  return found;
}

any_reply operations::run(const list_dispatches& op) {
  auto sql = select_rows(op.with_bodies);
  parameters p;
  const auto filter = [&](const char* condition, auto value) {
    sql += p.values().empty() ? " WHERE " : " AND ";
    p.add(value);
    sql += condition + std::string{"$"} + std::to_string(p.values().size());
  };
  // A range of one kernel keeps the order by kernel, which dispatches_newest alone gives; with an
  // equality the planner walks the primary key through every other kernel's newer rows.
  const bool newest =
      !op.kernel_id.empty() && op.cycle_id.empty() && op.agent_id.empty() && !op.finished_since;
  if (!op.kernel_id.empty())
    filter(newest ? "d.kernel_id BETWEEN $1 AND " : "d.kernel_id = ",
           std::string_view{op.kernel_id});
  if (!op.cycle_id.empty())
    filter("d.cycle_id = ", std::string_view{op.cycle_id});
  if (!op.not_cycle_id.empty())
    filter("d.cycle_id <> ", std::string_view{op.not_cycle_id});
  if (!op.agent_id.empty())
    filter("d.agent_id = ", std::string_view{op.agent_id});
  if (op.status)
    filter("d.status = ", name_of(*op.status));
  if (!op.before.empty())
    filter("d.dispatch_id < ", std::string_view{op.before});
  if (op.finished_since)
    filter("d.finished_at >= ", to_unix_ms(*op.finished_since));
  p.add(sql_limit(op.limit));
  sql += newest ? " ORDER BY d.kernel_id DESC, " : " ORDER BY ";
  sql += "d.dispatch_id DESC LIMIT $" + std::to_string(p.values().size()) + "::bigint";
  const auto a = db_.run(sql, p);
  std::vector<dispatch> out;
  for (int r = 0; r < a.rows(); ++r)
    out.push_back(shown(a, r, op.with_bodies));
  return out;
}

any_reply operations::run(const latest_per_agent& op) {
  // Steps along dispatches_agent: one probe per agent, whatever the table's size.
  const auto a = db_.run(
      "WITH RECURSIVE a(g) AS ((SELECT agent_id FROM dispatches WHERE kernel_id = $1 ORDER BY "
      "agent_id LIMIT 1) UNION ALL SELECT n.agent_id FROM a, LATERAL (SELECT agent_id FROM "
      "dispatches WHERE kernel_id = $1 AND agent_id > a.g ORDER BY agent_id LIMIT 1) n) SELECT " +
          std::string{row_columns()} +
          " FROM a, LATERAL (SELECT * FROM dispatches WHERE kernel_id = $1 AND agent_id = a.g "
          "ORDER BY dispatch_id DESC LIMIT 1) d ORDER BY d.agent_id",
      parameters{}.add(op.kernel_id));
  std::vector<dispatch> out;
  for (int r = 0; r < a.rows(); ++r)
    out.push_back(shown(a, r, false));
  return out;
}

any_reply operations::run(const count_by_status& op) {
  // Three parts, each from its own partial index.
  const auto a = db_.run(
      "SELECT status, count(*) FROM dispatches WHERE finished_at IS NOT NULL AND ($1 = '' OR "
      "kernel_id = $1) GROUP BY status UNION ALL SELECT 'pending', count(*) FROM dispatches WHERE "
      "status = 'pending' AND ($1 = '' OR kernel_id = $1) UNION ALL SELECT 'running', count(*) "
      "FROM dispatches WHERE status = 'running' AND ($1 = '' OR kernel_id = $1)",
      parameters{}.add(op.kernel_id));
  count_by_status::reply reply;
  for (int r = 0; r < a.rows(); ++r)
    if (const auto status = dispatch_status_from(a.text(r, 0)); status && a.integer(r, 1) > 0)
      reply[*status] = static_cast<std::uint64_t>(a.integer(r, 1));
  return reply;
}

any_reply operations::run(const remove_finished& op) {
  remove_finished::reply reply;
  const auto remove = [&](const char* sql, bool keep = false) {
    if (reply.removed >= op.limit)
      return;
    parameters p;
    p.add(op.age.count()).add(sql_limit(op.limit - reply.removed));
    if (keep)
      p.add(sql_limit(op.keep_cycles));
    reply.removed += static_cast<std::uint64_t>(db_.run(sql, p).affected());
  };
  // Steps along dispatches_ended from kernel to kernel.
  remove("WITH RECURSIVE k(id) AS ((SELECT kernel_id FROM dispatches WHERE finished_at IS NOT NULL "
         "ORDER BY kernel_id LIMIT 1) UNION ALL SELECT n.kernel_id FROM k, LATERAL (SELECT "
         "kernel_id FROM dispatches WHERE finished_at IS NOT NULL AND kernel_id > k.id ORDER BY "
         "kernel_id LIMIT 1) n) DELETE FROM dispatches WHERE dispatch_id IN (SELECT d.dispatch_id "
         "FROM k, LATERAL (SELECT dispatch_id FROM dispatches WHERE kernel_id = k.id AND "
         "finished_at < now_ms() - $1::bigint ORDER BY finished_at LIMIT $2::bigint FOR UPDATE "
         "SKIP LOCKED) d LIMIT $2::bigint)");
  remove("DELETE FROM decisions WHERE (kernel_id, cycle_id, agent_id) IN (SELECT kernel_id, "
         "cycle_id, agent_id FROM decisions WHERE decided_at < now_ms() - $1::bigint ORDER BY "
         "decided_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED)");
  remove("DELETE FROM occurrences WHERE (kernel_id, scheduled_at) IN (SELECT kernel_id, "
         "scheduled_at FROM occurrences WHERE finished_at < now_ms() - $1::bigint ORDER BY "
         "finished_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED)");
  remove("DELETE FROM cycles WHERE cycle_id IN (SELECT cycle_id FROM (SELECT cycle_id, "
         "finished_at, row_number() OVER (PARTITION BY kernel_id ORDER BY started_at DESC, "
         "cycle_id DESC) AS place FROM cycles) c WHERE place > $3::bigint AND finished_at < "
         "now_ms() - $1::bigint LIMIT $2::bigint)",
         true);
  return reply;
}

} // namespace boyd::adapters::postgres
