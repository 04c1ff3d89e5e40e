#include "boyd/queue/cycle_json.hpp"
#include "operations.hpp"

namespace boyd::adapters::postgres {

using namespace store;

namespace {

/// A time that its caller may leave to the store: 0 stands for now.
std::int64_t or_now(utc_time t) {
  return to_unix_ms(t);
}

std::int64_t or_now(const std::optional<utc_time>& t) {
  return t ? to_unix_ms(*t) : 0;
}

/// $1 to $10: the slot; $11: whether a pause keeps it from being written, unless it stands already.
constexpr std::string_view open_slot =
    "INSERT INTO occurrences(kernel_id, scheduled_at, trigger, state, late, reason, cycle_id, "
    "node_id, created_at, finished_at) SELECT $1::text, $2::bigint, $3::text, $4::text, "
    "$5::boolean, $6::text, $7::text, $8::text, coalesce(nullif($9::bigint, 0), now_ms()), "
    "coalesce(nullif($10::bigint, 0), CASE $4 WHEN 'open' THEN NULL ELSE now_ms() END) WHERE NOT "
    "$11::boolean OR NOT EXISTS (SELECT 1 FROM pauses WHERE kernel_id=$1 AND agent_id='') OR "
    "EXISTS (SELECT 1 FROM occurrences WHERE kernel_id=$1 AND scheduled_at=$2::bigint) "
    "ON CONFLICT (kernel_id, scheduled_at) DO UPDATE SET "
    "state='open' WHERE $4='open' AND $9::bigint<>0 AND occurrences.state='open' AND "
    "occurrences.cycle_id=excluded.cycle_id AND occurrences.node_id=excluded.node_id AND "
    "occurrences.trigger=excluded.trigger AND occurrences.created_at=excluded.created_at";

/// The row of a cycle, whose values are the parameters from `first` on; only where `condition` (a
/// query; empty: none) has a row.
std::string write_cycle_sql(bool finish, int first, const std::string& condition) {
  const auto at = [first](int i) { return "$" + std::to_string(first + i); };
  std::string sql =
      "INSERT INTO cycles AS t(cycle_id, kernel_id, scheduled_at, status, dispatched, succeeded, "
      "failed, failed_agents, agents, duration_ms, error, started_at, finished_at, node_id) "
      "SELECT " +
      at(0) + "::text, " + at(1) + "::text, " + at(2) + "::bigint, " + at(3) + "::text, " + at(4) +
      "::int, " + at(5) + "::int, " + at(6) + "::int, " + at(7) + "::jsonb, " + at(8) +
      "::jsonb, " + at(9) + "::bigint, " + at(10) + "::text, coalesce(nullif(" + at(11) +
      "::bigint, 0), now_ms()), ";
  sql += finish ? "coalesce(nullif(" + at(12) + "::bigint, 0), now_ms())"
                : "nullif(" + at(12) + "::bigint, 0)";
  sql += ", " + at(13) + "::text";
  if (!condition.empty())
    sql += " WHERE EXISTS (" + condition + ")";
  sql += " ON CONFLICT(cycle_id) DO UPDATE SET dispatched=excluded.dispatched, "
         "succeeded=excluded.succeeded, failed=excluded.failed, "
         "failed_agents=excluded.failed_agents, agents=excluded.agents, "
         "duration_ms=excluded.duration_ms, error=excluded.error";
  return sql + (finish ? ", status=excluded.status, finished_at=excluded.finished_at, "
                         "node_id=excluded.node_id"
                       : " WHERE t.status='running'");
}

void add_cycle(parameters& to, const cycle_record& c) {
  to.add(c.cycle_id)
      .add(c.kernel_id)
      .add(to_unix_ms(c.scheduled_at))
      .add(name_of(c.status))
      .add(c.dispatched)
      .add(c.succeeded)
      .add(c.failed)
      .add(queue::names_to_json(c.failed_agents))
      .add(queue::agents_to_json(c.agents))
      .add(c.duration_ms)
      .add(c.error)
      .add(or_now(c.started_at))
      .add(or_now(c.finished_at))
      .add(c.node_id);
}

cycle_record read_cycle(const answer& a, int r) {
  cycle_record c;
  c.cycle_id = text_of(a, r, 0);
  c.kernel_id = text_of(a, r, 1);
  c.scheduled_at = a.time(r, 2);
  c.status = cycle_status_from(a.text(r, 3)).value_or(cycle_status::error);
  c.dispatched = static_cast<int>(a.integer(r, 4));
  c.succeeded = static_cast<int>(a.integer(r, 5));
  c.failed = static_cast<int>(a.integer(r, 6));
  c.failed_agents = queue::names_from_json(a.text(r, 7));
  c.agents = queue::agents_from_json(a.text(r, 8));
  c.duration_ms = a.integer(r, 9);
  c.error = text_of(a, r, 10);
  c.started_at = a.time(r, 11);
  c.finished_at = a.optional_time(r, 12);
  c.node_id = text_of(a, r, 13);
  return c;
}

} // namespace

any_reply operations::run(const open_occurrence& op) {
  return answer_to(ask(op));
}

question operations::ask(const open_occurrence& op) {
  const auto& o = op.slot;
  parameters p;
  p.add(o.kernel_id)
      .add(to_unix_ms(o.scheduled_at))
      .add(o.trigger)
      .add(name_of(o.state))
      .add(o.late ? "t" : "f")
      .add(o.reason)
      .add(o.cycle_id)
      .add(o.node_id)
      .add(or_now(o.created_at))
      .add(or_now(o.finished_at))
      .add(op.unless_paused ? "t" : "f");
  if (!op.cycle)
    return {{std::string{open_slot}, p},
            [](const answer& a) { return open_occurrence::reply{a.affected() > 0}; }};
  // In one statement: one way to the server.
  static const std::string sql =
      "WITH slot AS (" + std::string{open_slot} + " RETURNING 1), row AS (" +
      write_cycle_sql(false, static_cast<int>(p.values().size()) + 1, "SELECT 1 FROM slot") +
      ") SELECT count(*) FROM slot";
  add_cycle(p, *op.cycle);
  return {{sql, std::move(p)},
          [](const answer& a) { return open_occurrence::reply{a.integer(0, 0) > 0}; }};
}

any_reply operations::run(const close_occurrence& op) {
  db_.later("UPDATE occurrences SET state=$1, reason=$2, cycle_id = CASE $3 WHEN '' THEN cycle_id "
            "ELSE $3 END, finished_at=now_ms() WHERE kernel_id=$4 AND scheduled_at=$5::bigint AND "
            "state='open'",
            parameters{}
                .add(name_of(op.state))
                .add(op.reason)
                .add(op.cycle_id)
                .add(op.kernel_id)
                .add(to_unix_ms(op.scheduled_at)));
  return ok{};
}

namespace {

any_reply read_occurrences(const answer& a) {
  std::vector<occurrence> out;
  for (int r = 0; r < a.rows(); ++r) {
    occurrence o;
    o.kernel_id = text_of(a, r, 0);
    o.scheduled_at = a.time(r, 1);
    o.trigger = text_of(a, r, 2);
    o.state = occurrence_state_from(a.text(r, 3)).value_or(occurrence_state::open);
    o.late = a.text(r, 4) == "t";
    o.reason = text_of(a, r, 5);
    o.cycle_id = text_of(a, r, 6);
    o.node_id = text_of(a, r, 7);
    o.created_at = a.time(r, 8);
    o.finished_at = a.optional_time(r, 9);
    out.push_back(std::move(o));
  }
  return out;
}

} // namespace

question operations::ask(const list_occurrences& op) {
  return {{"SELECT kernel_id, scheduled_at, trigger, state, late, reason, cycle_id, "
           "node_id, created_at, finished_at FROM occurrences WHERE kernel_id=$1 AND "
           "scheduled_at <= $2::bigint AND ($4='' OR node_id=$4) ORDER BY scheduled_at DESC LIMIT "
           "$3::bigint",
           parameters{}
               .add(op.kernel_id)
               .add(to_unix_ms(op.until.value_or(utc_time::max())))
               .add(sql_limit(op.limit))
               .add(op.node_id)},
          read_occurrences};
}

void operations::write_cycle(const cycle_record& c, bool finish) {
  parameters p;
  add_cycle(p, c);
  db_.later(write_cycle_sql(finish, 1, ""), p);
}

any_reply operations::run(const begin_cycle& op) {
  write_cycle(op.cycle, false);
  db_.later("UPDATE occurrences SET cycle_id=$1 WHERE kernel_id=$2 AND scheduled_at=$3::bigint AND "
            "cycle_id=''",
            parameters{}
                .add(op.cycle.cycle_id)
                .add(op.cycle.kernel_id)
                .add(to_unix_ms(op.cycle.scheduled_at)));
  return ok{};
}

any_reply operations::run(const finish_cycle& op) {
  write_cycle(op.cycle, true);
  return ok{};
}

namespace {

any_reply read_cycles(const answer& a) {
  std::vector<cycle_record> out;
  for (int r = 0; r < a.rows(); ++r)
    out.push_back(read_cycle(a, r));
  return out;
}

} // namespace

question operations::ask(const list_cycles& op) {
  return {{"SELECT cycle_id, kernel_id, scheduled_at, status, dispatched, succeeded, "
           "failed, failed_agents, agents, duration_ms, error, started_at, "
           "finished_at, node_id FROM cycles WHERE kernel_id=$1 AND ($2::boolean OR "
           "status<>'running') AND ($4='' OR cycle_id=$4) AND ($5='' OR node_id=$5) ORDER BY "
           "no DESC LIMIT $3::bigint",
           parameters{}
               .add(op.kernel_id)
               .add(op.include_running ? "t" : "f")
               .add(sql_limit(op.limit))
               .add(op.cycle_id)
               .add(op.node_id)},
          read_cycles};
}

namespace {

any_reply read_decisions(const answer& a) {
  std::vector<list_decisions::row> out;
  for (int r = 0; r < a.rows(); ++r)
    out.push_back({text_of(a, r, 0),
                   a.time(r, 1),
                   {text_of(a, r, 2), a.text(r, 3) == "t", text_of(a, r, 4), text_of(a, r, 5)}});
  return out;
}

} // namespace

question operations::ask(const list_decisions& op) {
  return {{"SELECT cycle_id, decided_at, agent_id, dispatched, reason, detail FROM decisions "
           "WHERE kernel_id=$1 AND decided_at <= $2::bigint AND ($3='' OR agent_id=$3) AND "
           "($4='' OR cycle_id=$4) ORDER BY decided_at DESC, cycle_id DESC, agent_id LIMIT "
           "$5::bigint",
           parameters{}
               .add(op.kernel_id)
               .add(to_unix_ms(op.until.value_or(utc_time::max())))
               .add(op.agent_id)
               .add(op.cycle_id)
               .add(sql_limit(op.limit))},
          read_decisions};
}

any_reply operations::run(const set_pause& op) {
  db_.later(
      "INSERT INTO pauses(kernel_id, agent_id, reason, since) VALUES($1, $2, $3, now_ms()) ON "
      "CONFLICT (kernel_id, agent_id) DO UPDATE SET reason=excluded.reason, "
      "since=excluded.since",
      parameters{}.add(op.pause.kernel_id).add(op.pause.agent_id).add(op.pause.reason));
  return ok{};
}

any_reply operations::run(const clear_pause& op) {
  const auto a = db_.run("DELETE FROM pauses WHERE kernel_id=$1 AND agent_id=$2",
                         parameters{}.add(op.kernel_id).add(op.agent_id));
  return clear_pause::reply{a.affected() > 0};
}

namespace {

any_reply read_pauses(const answer& a) {
  std::vector<pause_record> out;
  for (int r = 0; r < a.rows(); ++r)
    out.push_back({text_of(a, r, 0), text_of(a, r, 1), text_of(a, r, 2), a.time(r, 3)});
  return out;
}

} // namespace

question operations::ask(const list_pauses& op) {
  return {{"SELECT kernel_id, agent_id, reason, since FROM pauses WHERE $1='' OR "
           "kernel_id=$1 ORDER BY kernel_id, agent_id",
           parameters{}.add(op.kernel_id)},
          read_pauses};
}

any_reply operations::run(const put_fact& op) {
  if (op.value.empty())
    db_.later("DELETE FROM facts WHERE scope=$1 AND key=$2",
              parameters{}.add(op.scope).add(op.key));
  else
    db_.later("INSERT INTO facts(scope, key, value) VALUES($1, $2, $3) ON CONFLICT (scope, key) DO "
              "UPDATE SET value=excluded.value",
              parameters{}.add(op.scope).add(op.key).add(op.value));
  return ok{};
}

namespace {

any_reply read_facts(const answer& a) {
  get_facts::reply reply;
  for (int r = 0; r < a.rows(); ++r)
    reply[text_of(a, r, 0)] = text_of(a, r, 1);
  return reply;
}

} // namespace

question operations::ask(const get_facts& op) {
  return {{"SELECT key, value FROM facts WHERE scope=$1", parameters{}.add(op.scope)}, read_facts};
}

any_reply operations::run(const beat& op) {
  db_.later(
      "INSERT INTO nodes(node_id, host, pid, first_seen, last_seen) VALUES($1, $2, $3::bigint, "
      "now_ms(), now_ms()) ON CONFLICT (node_id) DO UPDATE SET host=excluded.host, "
      "pid=excluded.pid, last_seen=excluded.last_seen",
      parameters{}.add(op.node_id).add(op.host).add(op.pid));
  return ok{};
}

namespace {

any_reply read_nodes(const answer& a) {
  std::vector<list_nodes::row> out;
  for (int r = 0; r < a.rows(); ++r)
    out.push_back(
        {text_of(a, r, 0), text_of(a, r, 1), a.integer(r, 2), a.time(r, 3), a.time(r, 4)});
  return out;
}

} // namespace

question operations::ask(const list_nodes&) {
  return {{"SELECT node_id, host, pid, first_seen, last_seen FROM nodes ORDER BY "
           "node_id",
           {}},
          read_nodes};
}

} // namespace boyd::adapters::postgres
