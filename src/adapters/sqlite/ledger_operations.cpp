#include "boyd/queue/cycle_json.hpp"
#include "operations.hpp"

namespace boyd::adapters::sqlite {

using namespace store;

namespace {

bool is_unset(utc_time t) {
  return t == utc_time{};
}

cycle_record read_cycle(const statement& s) {
  cycle_record c;
  c.cycle_id = s.text(0);
  c.kernel_id = s.text(1);
  c.scheduled_at = s.time(2);
  c.status = cycle_status_from(s.view(3)).value_or(cycle_status::error);
  c.dispatched = static_cast<int>(s.integer(4));
  c.succeeded = static_cast<int>(s.integer(5));
  c.failed = static_cast<int>(s.integer(6));
  c.failed_agents = queue::names_from_json(s.view(7));
  c.agents = queue::agents_from_json(s.view(8));
  c.duration_ms = s.integer(9);
  c.error = s.text(10);
  c.started_at = s.time(11);
  c.finished_at = s.optional_time(12);
  c.node_id = s.text(13);
  return c;
}

} // namespace

any_reply operations::run(const open_occurrence& op) {
  const auto& o = op.slot;
  const auto created = is_unset(o.created_at) ? now_ : o.created_at;
  const bool repeatable = !is_unset(o.created_at) && o.state == occurrence_state::open;
  auto finished = o.finished_at;
  if (o.state != occurrence_state::open && !finished)
    finished = now_;
  auto s = db_.prepare("INSERT INTO occurrences(kernel_id, scheduled_at, trigger, state, late, "
                       "reason, cycle_id, node_id, created_at, finished_at) "
                       "SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9,?10 WHERE ?12=0 OR NOT EXISTS (SELECT 1 "
                       "FROM pauses WHERE kernel_id=?1 AND agent_id='') OR EXISTS (SELECT 1 FROM "
                       "occurrences WHERE kernel_id=?1 AND scheduled_at=?2) "
                       "ON CONFLICT(kernel_id, scheduled_at) "
                       "DO UPDATE SET state='open' WHERE ?11=1 AND state='open' AND "
                       "cycle_id=excluded.cycle_id AND "
                       "node_id=excluded.node_id AND trigger=excluded.trigger AND "
                       "created_at=excluded.created_at");
  s.bind(o.kernel_id).bind(o.scheduled_at).bind(o.trigger).bind(name_of(o.state));
  s.bind(o.late ? 1 : 0).bind(o.reason).bind(o.cycle_id).bind(o.node_id).bind(created);
  s.bind(finished).bind(repeatable ? 1 : 0).bind(op.unless_paused ? 1 : 0).run();
  const bool opened = db_.changes() > 0;
  if (opened && op.cycle)
    write_cycle(*op.cycle, false);
  return open_occurrence::reply{opened};
}

any_reply operations::run(const close_occurrence& op) {
  auto s = db_.prepare("UPDATE occurrences SET state=?1, reason=?2, cycle_id = CASE ?3 WHEN '' "
                       "THEN cycle_id ELSE ?3 END, finished_at=?4 WHERE kernel_id=?5 AND "
                       "scheduled_at=?6 AND state='open'");
  s.bind(name_of(op.state)).bind(op.reason).bind(op.cycle_id).bind(now_);
  s.bind(op.kernel_id).bind(op.scheduled_at).run();
  return ok{};
}

any_reply operations::run(const list_occurrences& op) {
  std::string sql = "SELECT kernel_id, scheduled_at, trigger, state, late, reason, cycle_id, "
                    "node_id, created_at, finished_at FROM occurrences WHERE kernel_id=? AND "
                    "scheduled_at <= ?";
  if (!op.node_id.empty())
    sql += " AND node_id=?";
  sql += " ORDER BY scheduled_at DESC LIMIT ?";
  auto s = db_.prepare(sql);
  s.bind(op.kernel_id).bind(op.until.value_or(utc_time::max()));
  if (!op.node_id.empty())
    s.bind(op.node_id);
  s.bind(static_cast<std::int64_t>(op.limit));
  std::vector<occurrence> out;
  while (s.step()) {
    occurrence o;
    o.kernel_id = s.text(0);
    o.scheduled_at = s.time(1);
    o.trigger = s.text(2);
    o.state = occurrence_state_from(s.view(3)).value_or(occurrence_state::open);
    o.late = s.integer(4) != 0;
    o.reason = s.text(5);
    o.cycle_id = s.text(6);
    o.node_id = s.text(7);
    o.created_at = s.time(8);
    o.finished_at = s.optional_time(9);
    out.push_back(std::move(o));
  }
  return out;
}

void operations::write_cycle(const cycle_record& c, bool finish) {
  const auto failed_agents = queue::names_to_json(c.failed_agents);
  const auto agents = queue::agents_to_json(c.agents);
  const auto started = is_unset(c.started_at) ? now_ : c.started_at;
  auto finished = c.finished_at;
  if (finish && !finished)
    finished = now_;
  std::string sql = "INSERT INTO cycles(cycle_id, kernel_id, scheduled_at, status, dispatched, "
                    "succeeded, failed, failed_agents, agents, duration_ms, error, started_at, "
                    "finished_at, node_id, no) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?, (SELECT "
                    "coalesce(max(no), 0) + 1 FROM cycles WHERE kernel_id=?2)) ON "
                    "CONFLICT(cycle_id) DO UPDATE SET dispatched=excluded.dispatched, "
                    "succeeded=excluded.succeeded, failed=excluded.failed, "
                    "failed_agents=excluded.failed_agents, agents=excluded.agents, "
                    "duration_ms=excluded.duration_ms, error=excluded.error";
  sql += finish ? ", status=excluded.status, finished_at=excluded.finished_at, "
                  "node_id=excluded.node_id"
                : " WHERE status='running'";
  auto s = db_.prepare(sql);
  s.bind(c.cycle_id).bind(c.kernel_id).bind(c.scheduled_at).bind(name_of(c.status));
  s.bind(c.dispatched).bind(c.succeeded).bind(c.failed).bind(failed_agents).bind(agents);
  s.bind(c.duration_ms).bind(c.error).bind(started).bind(finished).bind(c.node_id).run();
}

any_reply operations::run(const begin_cycle& op) {
  write_cycle(op.cycle, false);
  auto s = db_.prepare("UPDATE occurrences SET cycle_id=? WHERE kernel_id=? AND scheduled_at=? AND "
                       "cycle_id=''");
  s.bind(op.cycle.cycle_id).bind(op.cycle.kernel_id).bind(op.cycle.scheduled_at).run();
  return ok{};
}

any_reply operations::run(const finish_cycle& op) {
  write_cycle(op.cycle, true);
  return ok{};
}

any_reply operations::run(const list_cycles& op) {
  std::string sql = "SELECT cycle_id, kernel_id, scheduled_at, status, dispatched, succeeded, "
                    "failed, failed_agents, agents, duration_ms, error, started_at, "
                    "finished_at, node_id FROM cycles WHERE kernel_id=? AND (?=1 OR "
                    "status<>'running')";
  if (!op.cycle_id.empty())
    sql += " AND cycle_id=?";
  if (!op.node_id.empty())
    sql += " AND node_id=?";
  sql += " ORDER BY no DESC LIMIT ?";
  auto s = db_.prepare(sql);
  s.bind(op.kernel_id).bind(op.include_running ? 1 : 0);
  if (!op.cycle_id.empty())
    s.bind(op.cycle_id);
  if (!op.node_id.empty())
    s.bind(op.node_id);
  s.bind(static_cast<std::int64_t>(op.limit));
  std::vector<cycle_record> out;
  while (s.step())
    out.push_back(read_cycle(s));
  return out;
}

any_reply operations::run(const list_decisions& op) {
  std::string sql = "SELECT cycle_id, decided_at, agent_id, dispatched, reason, detail FROM "
                    "decisions WHERE kernel_id=? AND decided_at <= ?";
  if (!op.agent_id.empty())
    sql += " AND agent_id=?";
  if (!op.cycle_id.empty())
    sql += " AND cycle_id=?";
  sql += " ORDER BY decided_at DESC, cycle_id DESC, agent_id LIMIT ?";
  auto s = db_.prepare(sql);
  s.bind(op.kernel_id).bind(op.until.value_or(utc_time::max()));
  if (!op.agent_id.empty())
    s.bind(op.agent_id);
  if (!op.cycle_id.empty())
    s.bind(op.cycle_id);
  s.bind(static_cast<std::int64_t>(op.limit));
  std::vector<list_decisions::row> out;
  while (s.step())
    out.push_back({s.text(0), s.time(1), {s.text(2), s.integer(3) != 0, s.text(4), s.text(5)}});
  return out;
}

any_reply operations::run(const set_pause& op) {
  auto s = db_.prepare("INSERT OR REPLACE INTO pauses(kernel_id, agent_id, reason, since) "
                       "VALUES(?,?,?,?)");
  s.bind(op.pause.kernel_id).bind(op.pause.agent_id).bind(op.pause.reason).bind(now_).run();
  return ok{};
}

any_reply operations::run(const clear_pause& op) {
  auto s = db_.prepare("DELETE FROM pauses WHERE kernel_id=? AND agent_id=?");
  s.bind(op.kernel_id).bind(op.agent_id).run();
  return clear_pause::reply{db_.changes() > 0};
}

any_reply operations::run(const list_pauses& op) {
  auto s = db_.prepare("SELECT kernel_id, agent_id, reason, since FROM pauses WHERE ?1='' OR "
                       "kernel_id=?1 ORDER BY kernel_id, agent_id");
  s.bind(op.kernel_id);
  std::vector<pause_record> out;
  while (s.step())
    out.push_back({s.text(0), s.text(1), s.text(2), s.time(3)});
  return out;
}

any_reply operations::run(const put_fact& op) {
  if (op.value.empty()) {
    db_.prepare("DELETE FROM facts WHERE scope=? AND key=?").bind(op.scope).bind(op.key).run();
    return ok{};
  }
  auto s = db_.prepare("INSERT OR REPLACE INTO facts(scope, key, value) VALUES(?,?,?)");
  s.bind(op.scope).bind(op.key).bind(op.value).run();
  return ok{};
}

any_reply operations::run(const get_facts& op) {
  auto s = db_.prepare("SELECT key, value FROM facts WHERE scope=?");
  s.bind(op.scope);
  get_facts::reply reply;
  while (s.step())
    reply[s.text(0)] = s.text(1);
  return reply;
}

any_reply operations::run(const beat& op) {
  auto s = db_.prepare("INSERT INTO nodes(node_id, host, pid, first_seen, last_seen) "
                       "VALUES(?1,?2,?3,?4,?4) ON CONFLICT(node_id) DO UPDATE SET "
                       "host=excluded.host, pid=excluded.pid, last_seen=excluded.last_seen");
  s.bind(op.node_id).bind(op.host).bind(op.pid).bind(now_).run();
  return ok{};
}

any_reply operations::run(const list_nodes&) {
  auto s = db_.prepare("SELECT node_id, host, pid, first_seen, last_seen FROM nodes ORDER BY "
                       "node_id");
  std::vector<list_nodes::row> out;
  while (s.step())
    out.push_back({s.text(0), s.text(1), s.integer(2), s.time(3), s.time(4)});
  return out;
}

} // namespace boyd::adapters::sqlite
