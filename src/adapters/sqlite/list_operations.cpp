#include "boyd/queue/cycle_json.hpp"
#include "boyd/queue/dispatch_ids.hpp"
#include "operations.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace boyd::adapters::sqlite {

using namespace store;

namespace {

dispatch with_bodies(const statement& s, directory& names) {
  auto d = std::move(read_row(s, names).row.d);
  d.prompt = s.text(row_column_count);
  if (d.status != dispatch_status::running)
    d.outcome.output = s.text(row_column_count + 1);
  return d;
}

std::string select_rows(bool bodies) {
  return "SELECT " + std::string{row_columns()} + (bodies ? ", d.prompt, s.output" : "");
}

/// Where list_dispatches finds its rows: each way reads no more than what the filters leave, or
/// walks from the newest on.
enum class list_by : std::uint8_t { cycle, end, lease, wait, agent, age };

/// So many waiting rows are put in order for one list; of more of them the newest are soon met by
/// walking.
constexpr std::uint64_t few_waiting = 10'000;

list_by way_of(const list_dispatches& op, std::uint64_t waiting) {
  if (!op.cycle_id.empty())
    return list_by::cycle;
  if (op.finished_since)
    return list_by::end;
  if (op.status == dispatch_status::running)
    return list_by::lease;
  if (op.status == dispatch_status::pending && waiting <= few_waiting)
    return list_by::wait;
  return op.kernel_id.empty() && op.agent_id.empty() && op.not_agent_ids.empty() ? list_by::age
                                                                                 : list_by::agent;
}

/// How many rows wait for the agents of a list.
std::uint64_t waiting_for(const directory::agents& all, const list_dispatches& op) {
  std::uint64_t n = 0;
  for (const auto& [name, agent] : all)
    if ((op.kernel_id.empty() || op.kernel_id == agent.kernel_id) &&
        (op.agent_id.empty() || op.agent_id == agent.agent_id) &&
        std::ranges::find(op.not_agent_ids, agent.agent_id) == op.not_agent_ids.end())
      n += agent.waiting;
  return n;
}

/// The parameters of a list: ?1 to ?8 in this order, whichever of them the text uses; ?9, the last,
/// only where it does. `not_agents` (a JSON list) is read while the statement runs: the caller
/// keeps it as long.
void bind_filters(statement& s, const list_dispatches& op, std::size_t limit,
                  std::string_view not_agents) {
  s.bind(op.kernel_id).bind(op.agent_id).bind(op.cycle_id).bind(op.not_cycle_id);
  s.bind(op.status ? name_of(*op.status) : std::string_view{}).bind(op.before);
  s.bind(op.finished_since.value_or(utc_time{})).bind(sql_limit(limit));
  if (!op.not_agent_ids.empty())
    s.bind(not_agents);
}

/// Agents by kernel and name, as a condition on agents a.
std::string agent_filter(const list_dispatches& op) {
  std::string sql = "1";
  if (!op.kernel_id.empty())
    sql += " AND a.kernel_no = (SELECT no FROM kernels WHERE kernel_id = ?1)";
  if (!op.agent_id.empty())
    sql += " AND a.agent_id = ?2";
  if (!op.not_agent_ids.empty())
    sql += " AND a.agent_id NOT IN (SELECT value FROM json_each(?9))";
  return sql;
}

/// What is asked of a row d with its joins, but for its agent.
std::string row_filter(const list_dispatches& op, list_by way) {
  std::string sql = "1";
  if (!op.cycle_id.empty())
    sql += " AND d.cycle_id = ?3";
  if (!op.not_cycle_id.empty())
    sql += " AND +d.cycle_id <> ?4";
  if (op.status == dispatch_status::running)
    sql += " AND r.first_id IS NOT NULL";
  else if (op.status && way != list_by::wait)
    sql += " AND r.first_id IS NULL AND coalesce(s.status, 'pending') = ?5";
  if (op.ended_only)
    sql += " AND r.first_id IS NULL AND coalesce(s.status, 'pending') <> 'pending'";
  // The plus keeps the selective index of the other ways from being passed over for this one.
  if (!op.before.empty())
    sql += std::string{way == list_by::agent || way == list_by::age ? " AND " : " AND +"} +
           "d.dispatch_id < ?6";
  if (op.finished_since)
    sql += " AND s.finished_at >= ?7";
  return sql;
}

/// The rows that ended at the time of a range dispatch_ends e and lie in it. The pluses keep SQLite
/// from making an index of all results for one question; the rows of a range are few, and side by
/// side.
constexpr std::string_view in_range =
    "s.id BETWEEN e.first_id AND e.last_id AND +s.finished_at = e.finished_at AND +s.kernel_no = "
    "e.kernel_no";

/// The ids of the rows of one list.
std::string select_ids(const list_dispatches& op, list_by way) {
  const std::string joins{row_joins};
  const auto rows = row_filter(op, way);
  const auto agents = agent_filter(op);
  const std::string of_agents =
      agents == "1" ? "" : " AND +d.agent_no IN (SELECT no FROM agents a WHERE " + agents + ")";
  const std::string newest = " ORDER BY d.dispatch_id DESC LIMIT ?8";
  switch (way) {
  case list_by::end:
    // Ranges may overlap: IN takes each row once.
    return "SELECT d.id FROM dispatch_requests d CROSS JOIN dispatch_results s ON s.id = d.id" +
           std::string{running_join} +
           " WHERE d.id IN (SELECT s.id FROM kernels k CROSS "
           "JOIN dispatch_ends e ON e.kernel_no = k.no AND e.finished_at >= ?7 CROSS JOIN "
           "dispatch_results s ON " +
           std::string{in_range} +
           std::string{op.kernel_id.empty() ? "" : " WHERE k.kernel_id = ?1"} + ") AND " + rows +
           of_agents + newest;
  case list_by::lease:
    return "SELECT d.id FROM dispatch_running r CROSS JOIN dispatch_requests d ON d.id BETWEEN "
           "r.first_id AND r.last_id WHERE " +
           rows + of_agents + newest;
  case list_by::wait:
    return "SELECT d.id FROM dispatch_waiting w CROSS JOIN dispatch_requests d ON d.id BETWEEN "
           "w.first_id AND w.last_id WHERE " +
           rows +
           (agents == "1" ? ""
                          : " AND w.agent_no IN (SELECT no FROM agents a WHERE " + agents + ")") +
           newest;
  case list_by::agent:
    return "SELECT d.id FROM agents a CROSS JOIN dispatch_requests d ON d.id IN (SELECT d.id FROM "
           "dispatch_requests d" +
           joins + " WHERE d.agent_no = a.no AND " + rows + newest + ") WHERE " + agents + newest;
  case list_by::cycle:
  case list_by::age:
    break;
  }
  return "SELECT d.id FROM dispatch_requests d" + joins + " WHERE " + rows + of_agents + newest;
}

} // namespace

any_reply operations::run(const find_dispatch& op) {
  static const std::string begin = select_rows(true) + " FROM dispatch_requests d" +
                                   std::string{row_joins} +
                                   " WHERE d.dispatch_id >= ?1 AND d.dispatch_id < ?1 || '~' ";
  static const std::string end = "ORDER BY d.dispatch_id LIMIT 2";
  // Only for what a person types: it looks at all ids.
  static const std::string by_random_part = "OR substr(d.dispatch_id, -12, length(?1)) = ?1 ";
  auto s = db_.prepare(
      begin + (queue::may_be_random_part(op.dispatch_id) ? by_random_part : std::string{}) + end);
  s.bind(op.dispatch_id);
  std::optional<dispatch> found;
  if (s.step())
    found = with_bodies(s, names_);
  if (found && found->dispatch_id != op.dispatch_id && s.step())
    return error{errc::invalid_argument,
                 "more than one run has an id with " + op.dispatch_id,
                 {},
                 "use more characters of the id"};
  return found;
}

any_reply operations::run(const list_dispatches& op) {
  std::vector<dispatch> out;
  if (op.ended_only && op.status && !is_final(*op.status))
    return out;
  auto limit = op.limit;
  // A walk ends when it has met all that the counts know of: of a rare status there are few.
  if (op.status && op.status != dispatch_status::running) {
    const auto counts = std::get<count_by_status::reply>(run(count_by_status{op.kernel_id}));
    const auto counted = counts.find(*op.status);
    limit = std::min<std::size_t>(limit, counted == counts.end() ? 0 : counted->second);
    if (limit == 0)
      return out;
  }
  const auto not_agents = queue::names_to_json(op.not_agent_ids);
  const bool pending = op.status == dispatch_status::pending;
  const auto way = way_of(op, pending ? waiting_for(names_.counted(), op) : 0);
  auto s = db_.prepare(select_rows(op.with_bodies) + " FROM (" + select_ids(op, way) +
                       ") c CROSS JOIN dispatch_requests d ON d.id = c.id" +
                       std::string{row_joins} + " ORDER BY d.dispatch_id DESC");
  bind_filters(s, op, limit, not_agents);
  while (s.step())
    out.push_back(op.with_bodies ? with_bodies(s, names_) : read_row(s, names_).row.d);
  return out;
}

any_reply operations::run(const latest_per_agent& op) {
  // One probe of dispatch_requests_agent per agent, whatever the table's size.
  static const std::string sql =
      select_rows(false) +
      " FROM kernels k CROSS JOIN agents a ON a.kernel_no = k.no CROSS JOIN dispatch_requests d ON "
      "d.id = (SELECT id FROM dispatch_requests WHERE agent_no = a.no ORDER BY dispatch_id DESC "
      "LIMIT 1)" +
      std::string{row_joins} + " WHERE k.kernel_id = ? ORDER BY a.agent_id";
  auto s = db_.prepare(sql);
  s.bind(op.kernel_id);
  std::vector<dispatch> out;
  while (s.step())
    out.push_back(read_row(s, names_).row.d);
  return out;
}

any_reply operations::run(const count_by_status& op) {
  names_.write_counts();
  auto s = db_.prepare("SELECT status, sum(n) FROM dispatch_counts WHERE ?1 = '' OR "
                       "kernel_id = ?1 GROUP BY status");
  s.bind(op.kernel_id);
  count_by_status::reply reply;
  while (s.step())
    if (const auto status = dispatch_status_from(s.view(0)); status && s.integer(1) > 0)
      reply[*status] = static_cast<std::uint64_t>(s.integer(1));
  return reply;
}

std::uint64_t operations::remove_dispatches(std::int64_t before, std::uint64_t limit) {
  struct finished {
    std::int64_t id;
    std::int64_t agent_no;
    std::optional<dispatch_status> status;
  };
  std::vector<finished> found;
  {
    static const std::string sql =
        "SELECT DISTINCT s.id, d.agent_no, s.status FROM kernels k CROSS JOIN dispatch_ends e ON "
        "e.kernel_no = k.no AND e.finished_at < ? CROSS JOIN dispatch_results s ON " +
        std::string{in_range} + " CROSS JOIN dispatch_requests d ON d.id = s.id LIMIT ?";
    auto s = db_.prepare(sql);
    s.bind(before).bind(static_cast<std::int64_t>(limit));
    while (s.step())
      found.push_back({s.integer(0), s.integer(1), dispatch_status_from(s.view(2))});
  }
  for (const auto& f : found) {
    db_.prepare("DELETE FROM dispatch_requests WHERE id=?").bind(f.id).run();
    db_.prepare("DELETE FROM dispatch_results WHERE id=?").bind(f.id).run();
    names_.moved(names_.of(f.agent_no), f.status, std::nullopt);
  }
  remove_empty_ranges(before, limit);
  return found.size();
}

void operations::remove_empty_ranges(std::int64_t before, std::uint64_t limit) {
  static const std::string sql =
      "DELETE FROM dispatch_ends WHERE (kernel_no, finished_at, first_id) IN (SELECT e.kernel_no, "
      "e.finished_at, e.first_id FROM kernels k CROSS JOIN dispatch_ends e ON e.kernel_no = k.no "
      "AND e.finished_at < ? WHERE NOT EXISTS (SELECT 1 FROM dispatch_results s WHERE " +
      std::string{in_range} + ") LIMIT ?)";
  auto s = db_.prepare(sql);
  s.bind(before).bind(static_cast<std::int64_t>(limit)).run();
}

std::uint64_t operations::remove_cycles(std::int64_t before, std::size_t keep,
                                        std::uint64_t limit) {
  auto s = db_.prepare("DELETE FROM cycles WHERE cycle_id IN (SELECT cycle_id FROM (SELECT "
                       "cycle_id, finished_at, row_number() OVER (PARTITION BY kernel_id ORDER BY "
                       "no DESC) AS place FROM cycles) WHERE place > ? AND "
                       "finished_at < ? LIMIT ?)");
  s.bind(static_cast<std::int64_t>(keep)).bind(before).bind(static_cast<std::int64_t>(limit)).run();
  return static_cast<std::uint64_t>(db_.changes());
}

std::uint64_t operations::end_left(const remove_finished& op) {
  if (op.node_id.empty())
    return 0;
  const auto end = [&](const char* sql) {
    auto s = db_.prepare(sql);
    s.bind(to_unix_ms(now_ - op.node_age))
        .bind(static_cast<std::int64_t>(op.limit))
        .bind(op.node_id)
        .bind(to_unix_ms(now_))
        .run();
    return static_cast<std::uint64_t>(db_.changes());
  };
  const auto cycles =
      end("UPDATE cycles SET status='error', error='its node ' || cycles.node_id || ' did not "
          "return', finished_at=min(lost.seen, ?4), duration_ms=lost.seen - started_at FROM "
          "(SELECT cycle_id, max(coalesce(n.last_seen, c.started_at), c.started_at) AS seen FROM "
          "cycles c LEFT JOIN nodes n USING (node_id) WHERE c.status='running' AND c.node_id <> ?3 "
          "AND coalesce(n.last_seen, c.started_at) < ?1 LIMIT ?2) lost WHERE "
          "cycles.cycle_id=lost.cycle_id");
  return cycles +
         end("UPDATE occurrences SET state = CASE WHEN EXISTS (SELECT 1 FROM cycles c WHERE "
             "c.cycle_id = occurrences.cycle_id) THEN 'ran' ELSE 'missed' END, reason='its node ' "
             "|| occurrences.node_id || ' did not return', finished_at=?4 FROM (SELECT kernel_id, "
             "scheduled_at FROM occurrences s LEFT JOIN nodes n USING (node_id) WHERE "
             "s.state='open' AND s.node_id <> ?3 AND coalesce(n.last_seen, s.created_at) < ?1 "
             "LIMIT ?2) lost WHERE occurrences.kernel_id=lost.kernel_id AND "
             "occurrences.scheduled_at=lost.scheduled_at");
}

any_reply operations::run(const remove_finished& op) {
  remove_finished::reply reply;
  reply.ended = end_left(op);
  const auto before = to_unix_ms(now_ - op.age);
  const auto left = [&] { return op.limit - reply.removed; };
  const auto remove = [&](const char* sql, std::int64_t until) {
    if (left() == 0)
      return;
    auto s = db_.prepare(sql);
    s.bind(until).bind(static_cast<std::int64_t>(left())).run();
    reply.removed += static_cast<std::uint64_t>(db_.changes());
  };
  reply.removed += remove_dispatches(before, left());
  remove("DELETE FROM decisions WHERE (kernel_id, cycle_id, agent_id) IN (SELECT kernel_id, "
         "cycle_id, agent_id FROM decisions WHERE decided_at < ? ORDER BY decided_at LIMIT ?)",
         before);
  remove("DELETE FROM occurrences WHERE (kernel_id, scheduled_at) IN (SELECT kernel_id, "
         "scheduled_at FROM occurrences WHERE finished_at < ? ORDER BY finished_at LIMIT ?)",
         before);
  remove("DELETE FROM nodes WHERE node_id IN (SELECT node_id FROM nodes WHERE last_seen < ? ORDER "
         "BY last_seen LIMIT ?)",
         to_unix_ms(now_ - op.node_age));
  if (left() > 0)
    reply.removed += remove_cycles(before, op.keep_cycles, left());
  if (left() > 0)
    reply.removed += remove_spend(op.age, left());
  if (left() > 0)
    reply.removed += remove_approvals(op.age, left());
  return reply;
}

} // namespace boyd::adapters::sqlite
