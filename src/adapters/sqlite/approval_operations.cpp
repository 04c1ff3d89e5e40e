#include "boyd/queue/approval_rows.hpp"
#include "boyd/queue/cycle_json.hpp"
#include "operations.hpp"

#include <string>
#include <utility>

namespace boyd::adapters::sqlite {

using namespace store;

namespace {

/// In the order in which read_approval takes them; with `shown`, or an empty text in its place.
std::string approval_columns(bool with_shown) {
  return std::string("a.approval_id, a.kernel_id, a.agent_id, a.dispatch_id, a.tool, "
                     "a.arguments_sha256, a.workspace, a.before_sha256, ") +
         (with_shown ? "a.shown" : "''") +
         ", a.hash, a.reason, a.node_id, a.fence, a.held, a.state, a.created_at, a.expires_at, "
         "a.decided_at, a.decided_by, a.note, a.ended_at, a.decision_id, a.use_id, a.lines FROM "
         "approvals a ";
}

approval read_approval(const statement& s) {
  int c = 0;
  approval row;
  row.approval_id = s.text(c++);
  for (auto* text :
       {&row.matter.kernel_id, &row.matter.agent_id, &row.matter.dispatch_id, &row.matter.tool,
        &row.matter.arguments_sha256, &row.matter.workspace, &row.matter.before_sha256,
        &row.matter.shown, &row.hash, &row.reason, &row.node_id})
    *text = s.text(c++);
  row.fence = s.integer(c++);
  row.held = s.integer(c++) != 0;
  row.state = queue::approval_state_from(s.view(c++)).value_or(approval_state::voided);
  row.created_at = s.time(c++);
  row.expires_at = s.time(c++);
  row.decided_at = s.optional_time(c++);
  row.decided_by = s.text(c++);
  row.note = s.text(c++);
  row.ended_at = s.optional_time(c++);
  row.decision_id = s.text(c++);
  row.use_id = s.text(c++);
  row.lines = s.integer(c++);
  return row;
}

std::vector<approval> all_of(statement s) {
  std::vector<approval> out;
  while (s.step())
    out.push_back(read_approval(s));
  return out;
}

constexpr const char* is_open = "a.state IN ('pending', 'approved')";

class rows final : public queue::approval_rows {
 public:
  rows(connection& db, utc_time now) : db_(db), now_(now) {}

  utc_time now() override { return now_; }

  bool run_lives(const std::string& dispatch_id, std::int64_t fence) override {
    static const auto sql = "SELECT 1 FROM dispatch_requests d" + std::string{running_join} +
                            " WHERE d.dispatch_id = ? AND r.fence = ?";
    auto s = db_.fixed(sql.c_str());
    return s.bind(dispatch_id).bind(fence).step();
  }

  std::optional<approval> hold(const std::string& approval_id) override {
    static const auto sql = "SELECT " + approval_columns(true) + "WHERE a.approval_id = ?";
    auto s = db_.prepare(sql);
    return s.bind(approval_id).step() ? std::optional(read_approval(s)) : std::nullopt;
  }

  std::optional<approval> hold_latest(const std::string& dispatch_id,
                                      const std::string& matter) override {
    static const auto sql = "SELECT " + approval_columns(true) +
                            "WHERE a.dispatch_id = ? AND a.matter = ? ORDER BY a.created_at DESC, "
                            "a.approval_id DESC LIMIT 1";
    auto s = db_.prepare(sql);
    s.bind(dispatch_id).bind(matter);
    return s.step() ? std::optional(read_approval(s)) : std::nullopt;
  }

  std::vector<approval> hold_open(const std::string& dispatch_id, std::int64_t fence) override {
    static const auto sql = "SELECT " + approval_columns(false) + "WHERE " + is_open +
                            " AND a.dispatch_id = ? AND a.fence = ? ORDER BY a.approval_id";
    auto s = db_.prepare(sql);
    s.bind(dispatch_id).bind(fence);
    return all_of(std::move(s));
  }

  std::vector<approval> hold_over(std::size_t limit) override {
    static const auto sql =
        "SELECT " + approval_columns(false) + "WHERE " + is_open +
        " AND (a.expires_at <= ? OR (a.held = 0 AND NOT EXISTS (SELECT 1 FROM dispatch_requests "
        "d" +
        std::string{running_join} +
        " WHERE d.dispatch_id = a.dispatch_id AND r.fence = a.fence))) ORDER BY a.approval_id "
        "LIMIT ?";
    auto s = db_.prepare(sql);
    s.bind(now_).bind(static_cast<std::int64_t>(limit));
    return all_of(std::move(s));
  }

  std::uint64_t count(approval_state state) override {
    auto s = db_.fixed("SELECT count(*) FROM approvals WHERE state = ? AND state IN ('pending', "
                       "'approved')");
    s.bind(queue::name_of(state)).step();
    return static_cast<std::uint64_t>(s.integer(0));
  }

  void insert(const approval& row, const std::string& matter) override {
    const auto& m = row.matter;
    auto s = db_.fixed(
        "INSERT INTO approvals(approval_id, kernel_id, agent_id, dispatch_id, tool, "
        "arguments_sha256, workspace, before_sha256, shown, matter, hash, reason, node_id, fence, "
        "held, state, created_at, expires_at, decided_by, note, decision_id, use_id, lines) "
        "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,'','','','',?)");
    s.bind(row.approval_id).bind(m.kernel_id).bind(m.agent_id).bind(m.dispatch_id).bind(m.tool);
    s.bind(m.arguments_sha256).bind(m.workspace).bind(m.before_sha256).bind(m.shown).bind(matter);
    s.bind(row.hash).bind(row.reason).bind(row.node_id).bind(row.fence).bind(row.held ? 1 : 0);
    s.bind(queue::name_of(row.state)).bind(row.created_at).bind(row.expires_at).bind(row.lines);
    s.run();
  }

  void update(const approval& row) override {
    auto s = db_.fixed("UPDATE approvals SET fence=?, node_id=?, held=?, state=?, decided_at=?, "
                       "decided_by=?, note=?, ended_at=?, decision_id=?, use_id=?, lines=? WHERE "
                       "approval_id=?");
    s.bind(row.fence).bind(row.node_id).bind(row.held ? 1 : 0).bind(queue::name_of(row.state));
    s.bind(row.decided_at).bind(row.decided_by).bind(row.note).bind(row.ended_at);
    s.bind(row.decision_id).bind(row.use_id).bind(row.lines).bind(row.approval_id).run();
  }

  void add_line(const std::string& approval_id, const approval_line& line) override {
    auto s =
        db_.fixed("INSERT INTO approval_trail(approval_id, number, at, what, outcome, by_whom, "
                  "detail) VALUES(?,?,?,?,?,?,?)");
    s.bind(approval_id).bind(line.number).bind(line.at).bind(line.what);
    s.bind(queue::name_of(line.outcome)).bind(line.by).bind(line.detail).run();
  }

  std::vector<approval> beginning_with(const std::string& prefix) override {
    static const auto sql = "SELECT " + approval_columns(true) +
                            "WHERE a.approval_id >= ?1 AND a.approval_id < ?1 || '~' ORDER BY "
                            "a.approval_id LIMIT 2";
    auto s = db_.prepare(sql);
    s.bind(prefix);
    return all_of(std::move(s));
  }

  std::vector<approval_line> trail(const std::string& approval_id) override {
    auto s =
        db_.fixed("SELECT number, at, what, outcome, by_whom, detail FROM approval_trail WHERE "
                  "approval_id = ? ORDER BY number");
    s.bind(approval_id);
    std::vector<approval_line> out;
    while (s.step())
      out.push_back({s.integer(0), s.time(1), s.text(2),
                     queue::approval_outcome_from(s.view(3)).value_or(approval_outcome::voided),
                     s.text(4), s.text(5)});
    return out;
  }

  std::vector<approval> list(const list_approvals& op) override {
    static const auto head = "SELECT " + approval_columns(false) +
                             "WHERE (?1 = '' OR a.kernel_id = ?1) AND (?2 = '[]' OR a.approval_id "
                             "IN (SELECT value FROM json_each(?2)))";
    static const std::string tail = " ORDER BY a.created_at DESC, a.approval_id DESC LIMIT ?3";
    static const auto open = head + " AND " + is_open + tail;
    static const auto any = head + tail;
    const auto ids = queue::names_to_json(op.ids);
    auto s = db_.prepare(op.open ? open : any);
    s.bind(op.kernel_id).bind(ids).bind(static_cast<std::int64_t>(op.limit));
    return all_of(std::move(s));
  }

 private:
  connection& db_;
  utc_time now_;
};

template <class Operation>
any_reply carried_out(connection& db, utc_time now, const Operation& op) {
  rows r(db, now);
  return queue::carry_out(r, op);
}

template <class Operation>
any_reply tried(connection& db, utc_time now, const Operation& op) {
  rows r(db, now);
  auto reply = queue::carry_out(r, op);
  return reply ? any_reply(std::move(*reply)) : any_reply(std::move(reply.error()));
}

} // namespace

any_reply operations::run(const ask_approval& op) {
  return tried(db_, now_, op);
}

any_reply operations::run(const decide_approval& op) {
  return carried_out(db_, now_, op);
}

any_reply operations::run(const use_approval& op) {
  return carried_out(db_, now_, op);
}

any_reply operations::run(const withdraw_approvals& op) {
  return carried_out(db_, now_, op);
}

any_reply operations::run(const sweep_approvals& op) {
  return carried_out(db_, now_, op);
}

any_reply operations::run(const find_approval& op) {
  return tried(db_, now_, op);
}

any_reply operations::run(const list_approvals& op) {
  return carried_out(db_, now_, op);
}

/// Closed since before, with their trails. What is still open is not removed.
std::uint64_t operations::remove_approvals(milliseconds age, std::uint64_t limit) {
  const auto before = now_ - age;
  db_.fixed("DELETE FROM approval_trail WHERE approval_id IN (SELECT approval_id FROM approvals "
            "WHERE ended_at < ? ORDER BY ended_at, approval_id LIMIT ?)")
      .bind(before)
      .bind(static_cast<std::int64_t>(limit))
      .run();
  db_.fixed("DELETE FROM approvals WHERE approval_id IN (SELECT approval_id FROM approvals WHERE "
            "ended_at < ? ORDER BY ended_at, approval_id LIMIT ?)")
      .bind(before)
      .bind(static_cast<std::int64_t>(limit))
      .run();
  return static_cast<std::uint64_t>(db_.changes());
}

} // namespace boyd::adapters::sqlite
