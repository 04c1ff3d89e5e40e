#include "boyd/queue/dispatch_ids.hpp"
#include "operations.hpp"

#include <algorithm>
#include <utility>

namespace boyd::adapters::postgres {

using namespace store;

namespace {

/// Whole rows of the dispatches that `ids` selects as column `id`. One statement, so that a
/// dispatch that moves meanwhile is seen where it was, once.
std::string select_rows(const std::string& ids, bool bodies) {
  return "WITH page AS MATERIALIZED (" + ids +
         "), run AS MATERIALIZED (SELECT m.id, c.owner, c.lease_expires_at, c.started_at, c.fence, "
         "c.attempt FROM dispatch_running c, unnest(c.members) AS m(id) JOIN page ON page.id = "
         "m.id) SELECT " +
         std::string{row_columns()} + (bodies ? ", d.prompt, s.output" : "") +
         " FROM page JOIN dispatch_requests d ON d.dispatch_id = page.id LEFT JOIN "
         "dispatch_results s ON s.dispatch_id = page.id LEFT JOIN run r ON r.id = page.id ORDER BY "
         "page.id DESC";
}

dispatch shown(const answer& a, int r, bool bodies, directory& names) {
  auto s = read_row(a, r, names);
  if (bodies) {
    s.row.d.prompt = std::string{a.text(r, row_column_count)};
    if (s.row.d.status != dispatch_status::running)
      s.row.d.outcome.output = std::string{a.text(r, row_column_count + 1)};
  }
  return std::move(s.row.d);
}

std::vector<dispatch> all_shown(const answer& a, bool bodies, directory& names) {
  std::vector<dispatch> out;
  for (int r = 0; r < a.rows(); ++r)
    out.push_back(shown(a, r, bodies, names));
  return out;
}

/// The numbers of a kernel's agents; without one, of all.
std::string agents_of(const std::string& kernel_id) {
  return "SELECT a.no FROM agents a" +
         (kernel_id.empty()
              ? " WHERE true"
              : " JOIN kernels k ON k.no = a.kernel_no WHERE k.kernel_id = " + kernel_id);
}

/// The ids of one list. Each way reads no more than what the filters leave, or walks from the
/// newest on.
class id_query {
 public:
  explicit id_query(const list_dispatches& op) : op_(op) {}

  std::string sql() {
    if (op_.status == dispatch_status::pending)
      return members("dispatch_waiting");
    if (op_.status == dispatch_status::running)
      return members("dispatch_running");
    if (op_.cycle_id.empty() && !op_.finished_since && by_agent())
      return of_each_agent();
    // The empty text keeps the primary key from being walked where another index is selective.
    const char* id =
        op_.cycle_id.empty() && !op_.finished_since ? "d.dispatch_id" : "d.dispatch_id || ''";
    return "SELECT d.dispatch_id AS id FROM dispatch_requests d" + rest() +
           (by_agent() ? " AND d.agent_no = ANY(" + agents() + ")" : "") + newest(id);
  }
  const parameters& values() const { return values_; }

 private:
  template <class T>
  std::string bind(const T& value, const char* type) {
    values_.add(value);
    return "$" + std::to_string(values_.values().size()) + "::" + type;
  }
  std::string text(const std::string& value) { return bind(std::string_view{value}, "text"); }
  /// Asked for with the rest: agents of other nodes may have come.
  std::string agents() {
    std::string sql = agents_of(op_.kernel_id.empty() ? "" : text(op_.kernel_id));
    if (!op_.agent_id.empty())
      sql += " AND a.agent_id = " + text(op_.agent_id);
    if (!op_.not_agent_ids.empty()) {
      array left_out;
      for (const auto& id : op_.not_agent_ids)
        left_out.add(id);
      sql += " AND a.agent_id <> ALL(" + bind(left_out, "text[]") + ")";
    }
    return "ARRAY(" + sql + ")";
  }
  bool by_agent() const {
    return !op_.kernel_id.empty() || !op_.agent_id.empty() || !op_.not_agent_ids.empty();
  }
  std::string newest(const char* id) {
    return std::string{" ORDER BY "} + id + " DESC LIMIT " + bind(sql_limit(op_.limit), "bigint");
  }

  /// What is asked of a request d and its result s, but for its agent.
  std::string rest() {
    const bool final_only = op_.status || op_.finished_since || op_.ended_only;
    std::string sql =
        final_only ? " JOIN dispatch_results s USING (dispatch_id) WHERE true" : " WHERE true";
    if (!op_.cycle_id.empty())
      sql += " AND d.cycle_id = " + text(op_.cycle_id);
    if (!op_.not_cycle_id.empty())
      sql += " AND d.cycle_id <> " + text(op_.not_cycle_id);
    if (op_.ended_only)
      sql += " AND s.status <> 'pending'"; // as it is while an attempt after the first one runs
    if (op_.status)
      sql += " AND s.status = " + bind(name_of(*op_.status), "text");
    if (!op_.before.empty())
      sql += " AND d.dispatch_id < " + text(op_.before);
    if (op_.finished_since)
      sql += " AND s.finished_at >= " + bind(to_unix_ms(*op_.finished_since), "bigint");
    if (op_.finished_since)
      sql += " AND s.kernel_no IN (SELECT no FROM kernels" +
             (op_.kernel_id.empty() ? "" : " WHERE kernel_id = " + text(op_.kernel_id)) + ")";
    return sql;
  }

  /// Each agent's newest, of which the newest are taken.
  std::string of_each_agent() {
    const auto list = agents();
    const auto condition = rest();
    return "SELECT n.id FROM unnest(" + list +
           ") AS a(no), LATERAL (SELECT d.dispatch_id AS id FROM dispatch_requests d" + condition +
           " AND d.agent_no = a.no" +
           (op_.before.empty()
                ? ""
                : " AND left(d.dispatch_id, 12) <= left(" + text(op_.before) + ", 12)") +
           newest("left(d.dispatch_id, 12) DESC, d.dispatch_id") + ") n" + newest("n.id");
  }

  /// The members of rows in dispatch_waiting or dispatch_running.
  std::string members(const std::string& table) {
    std::string sql = "SELECT m.id FROM " + table + " w, unnest(w.members) AS m(id)";
    const bool by_cycle = !op_.cycle_id.empty() || !op_.not_cycle_id.empty();
    if (by_cycle)
      sql += " JOIN dispatch_requests d ON d.dispatch_id = m.id";
    sql += op_.finished_since || op_.ended_only ? " WHERE false" : " WHERE true";
    if (!op_.cycle_id.empty())
      sql += " AND d.cycle_id = " + text(op_.cycle_id);
    if (!op_.not_cycle_id.empty())
      sql += " AND d.cycle_id <> " + text(op_.not_cycle_id);
    if (by_agent())
      sql += " AND w.agent_no = ANY(" + agents() + ")";
    if (!op_.before.empty())
      sql += " AND m.id < " + text(op_.before);
    return sql + newest("m.id");
  }

  const list_dispatches& op_;
  parameters values_;
};

} // namespace

question operations::ask(const find_dispatch& op) {
  const auto select = [](const std::string& more) {
    return select_rows("SELECT dispatch_id AS id FROM dispatch_requests WHERE dispatch_id >= $1 "
                       "AND dispatch_id < $1 || '~' " +
                           more + "ORDER BY dispatch_id LIMIT 2",
                       true);
  };
  static const auto by_beginning = select({});
  // Only for what a person types: it looks at all ids.
  static const auto by_random_part = select("OR left(right(dispatch_id, 12), length($1)) = $1 ");
  const auto& sql = queue::may_be_random_part(op.dispatch_id) ? by_random_part : by_beginning;
  return {{sql, parameters{}.add(op.dispatch_id)}, [this, &op](const answer& a) -> any_reply {
            std::optional<dispatch> found;
            if (a.rows() > 0) // the newest is the first: the exact one is the last
              found = shown(a, a.rows() - 1, true, names_);
            if (a.rows() > 1 && found->dispatch_id != op.dispatch_id)
              return error{errc::invalid_argument,
                           "more than one run has an id with " + op.dispatch_id,
                           {},
                           "use more characters of the id"};
            return found;
          }};
}

question operations::ask(const list_dispatches& op) {
  id_query ids(op);
  auto sql = select_rows(ids.sql(), op.with_bodies);
  return {{std::move(sql), ids.values()},
          [this, &op](const answer& a) { return all_shown(a, op.with_bodies, names_); }};
}

question operations::ask(const latest_per_agent& op) {
  // One probe of dispatch_requests_newest per agent, whatever the table's size.
  static const auto sql =
      select_rows("SELECT n.id FROM (" + agents_of("$1") +
                      ") AS a(no), LATERAL (SELECT dispatch_id AS id "
                      "FROM dispatch_requests WHERE agent_no = a.no ORDER BY left(dispatch_id, 12) "
                      "DESC, dispatch_id "
                      "DESC LIMIT 1) n",
                  false);
  return {{sql, parameters{}.add(op.kernel_id)}, [this](const answer& a) {
            auto out = all_shown(a, false, names_);
            std::ranges::sort(out, {}, &dispatch::agent_id);
            return out;
          }};
}

namespace {

any_reply read_counts(const answer& a) {
  count_by_status::reply reply;
  for (int r = 0; r < a.rows(); ++r)
    if (const auto status = dispatch_status_from(a.text(r, 0)); status && a.integer(r, 1) > 0)
      reply[*status] = static_cast<std::uint64_t>(a.integer(r, 1));
  return reply;
}

} // namespace

question operations::ask(const count_by_status& op) {
  write_counts();
  static const std::string sql =
      "SELECT c.status, sum(c.n)::bigint FROM (SELECT kernel_no, status, n FROM dispatch_counts "
      "UNION ALL SELECT a.kernel_no, 'pending', w.size FROM dispatch_waiting w JOIN agents a ON "
      "a.no = w.agent_no UNION ALL SELECT a.kernel_no, 'running', cardinality(r.members) FROM "
      "dispatch_running r JOIN agents a ON a.no = r.agent_no) c WHERE $1 = '' OR c.kernel_no = "
      "(SELECT no FROM kernels WHERE kernel_id = $1) GROUP BY c.status";
  return {{sql, parameters{}.add(op.kernel_id)}, read_counts};
}

std::uint64_t operations::remove_dispatches(milliseconds age, std::uint64_t limit) {
  const auto a = db_.run(
      "WITH gone AS (DELETE FROM dispatch_results WHERE dispatch_id IN (SELECT s.dispatch_id FROM "
      "kernels k, LATERAL (SELECT dispatch_id FROM dispatch_results WHERE kernel_no = k.no AND "
      "finished_at < now_ms() - $1::bigint ORDER BY finished_at LIMIT $2::bigint FOR UPDATE SKIP "
      "LOCKED) s LIMIT $2::bigint) RETURNING dispatch_id, kernel_no, status), requests AS (DELETE "
      "FROM dispatch_requests WHERE dispatch_id IN (SELECT dispatch_id FROM gone)) SELECT "
      "kernel_no, status, count(*) FROM gone GROUP BY 1, 2",
      parameters{}.add(age.count()).add(static_cast<std::int64_t>(limit)));
  std::uint64_t removed = 0;
  for (int r = 0; r < a.rows(); ++r) {
    counts_[{a.integer(r, 0), std::string{a.text(r, 1)}}] -= a.integer(r, 2);
    removed += static_cast<std::uint64_t>(a.integer(r, 2));
  }
  return removed;
}

std::uint64_t operations::end_left(const remove_finished& op) {
  if (op.node_id.empty())
    return 0;
  const auto end = [&](const char* sql) {
    parameters p;
    p.add(op.node_age.count()).add(sql_limit(op.limit)).add(op.node_id);
    return static_cast<std::uint64_t>(db_.run(sql, p).affected());
  };
  return end("UPDATE cycles SET status='error', error='its node ' || cycles.node_id || ' did not "
             "return', finished_at=lost.seen, duration_ms=lost.seen - started_at FROM (SELECT "
             "cycle_id, greatest(n.last_seen, c.started_at) AS seen FROM cycles c LEFT JOIN nodes "
             "n USING (node_id) WHERE c.status='running' AND node_id <> $3 AND "
             "coalesce(n.last_seen, c.started_at) < now_ms() - $1::bigint ORDER BY cycle_id LIMIT "
             "$2::bigint FOR UPDATE OF c SKIP LOCKED) lost WHERE cycles.cycle_id=lost.cycle_id") +
         end("UPDATE occurrences o SET state = CASE WHEN EXISTS (SELECT 1 FROM cycles c WHERE "
             "c.cycle_id = o.cycle_id) THEN 'ran' ELSE 'missed' END, reason='its node ' || "
             "o.node_id || ' did not return', finished_at=now_ms() FROM (SELECT kernel_id, "
             "scheduled_at FROM occurrences s LEFT JOIN nodes n USING (node_id) WHERE "
             "s.state='open' AND node_id <> $3 AND coalesce(n.last_seen, s.created_at) < now_ms() "
             "- $1::bigint ORDER BY kernel_id, scheduled_at LIMIT $2::bigint FOR UPDATE OF s SKIP "
             "LOCKED) lost WHERE o.kernel_id=lost.kernel_id AND o.scheduled_at=lost.scheduled_at");
}

any_reply operations::run(const remove_finished& op) {
  remove_finished::reply reply;
  reply.ended = end_left(op);
  const auto remove = [&](const char* sql, milliseconds age, bool keep = false) {
    if (reply.removed >= op.limit)
      return;
    parameters p;
    p.add(age.count()).add(sql_limit(op.limit - reply.removed));
    if (keep)
      p.add(sql_limit(op.keep_cycles));
    reply.removed += static_cast<std::uint64_t>(db_.run(sql, p).affected());
  };
  reply.removed += remove_dispatches(op.age, op.limit);
  remove("DELETE FROM decisions WHERE (kernel_id, cycle_id, agent_id) IN (SELECT kernel_id, "
         "cycle_id, agent_id FROM decisions WHERE decided_at < now_ms() - $1::bigint ORDER BY "
         "decided_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED)",
         op.age);
  remove("DELETE FROM occurrences WHERE (kernel_id, scheduled_at) IN (SELECT kernel_id, "
         "scheduled_at FROM occurrences WHERE finished_at < now_ms() - $1::bigint ORDER BY "
         "finished_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED)",
         op.age);
  remove(
      "DELETE FROM nodes WHERE node_id IN (SELECT node_id FROM nodes WHERE last_seen < now_ms() - "
      "$1::bigint ORDER BY last_seen LIMIT $2::bigint FOR UPDATE SKIP LOCKED)",
      op.node_age);
  remove("DELETE FROM cycles WHERE cycle_id IN (SELECT cycle_id FROM (SELECT cycle_id, "
         "finished_at, row_number() OVER (PARTITION BY kernel_id ORDER BY no DESC) AS "
         "place FROM cycles) c WHERE place > $3::bigint AND finished_at < "
         "now_ms() - $1::bigint LIMIT $2::bigint)",
         op.age, true);
  if (reply.removed < op.limit)
    reply.removed += remove_spend(op.age, op.limit - reply.removed);
  if (reply.removed < op.limit)
    reply.removed += remove_approvals(op.age, op.limit - reply.removed);
  return reply;
}

} // namespace boyd::adapters::postgres
