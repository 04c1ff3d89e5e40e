#include "boyd/queue/approval_rows.hpp"
#include "operations.hpp"

#include <functional>
#include <string>
#include <utility>

namespace boyd::adapters::postgres {

using namespace store;

namespace {

/// In the order in which read_approval takes them; with `shown`, or an empty text in its place.
std::string approval_columns(bool with_shown) {
  return std::string("SELECT a.approval_id, a.kernel_id, a.agent_id, a.dispatch_id, a.tool, "
                     "a.arguments_sha256, a.workspace, a.before_sha256, ") +
         (with_shown ? "a.shown" : "''") +
         ", a.hash, a.reason, a.node_id, a.fence, a.held, a.state, a.created_at, a.expires_at, "
         "a.decided_at, a.decided_by, a.note, a.ended_at, a.decision_id, a.use_id, a.lines FROM "
         "approvals a ";
}

approval read_approval(const answer& a, int r) {
  int c = 0;
  approval row;
  row.approval_id = a.text(r, c++);
  for (auto* text :
       {&row.matter.kernel_id, &row.matter.agent_id, &row.matter.dispatch_id, &row.matter.tool,
        &row.matter.arguments_sha256, &row.matter.workspace, &row.matter.before_sha256,
        &row.matter.shown, &row.hash, &row.reason, &row.node_id})
    *text = a.text(r, c++);
  row.fence = a.integer(r, c++);
  row.held = a.integer(r, c++) != 0;
  row.state = queue::approval_state_from(a.text(r, c++)).value_or(approval_state::voided);
  row.created_at = a.time(r, c++);
  row.expires_at = a.time(r, c++);
  row.decided_at = a.optional_time(r, c++);
  row.decided_by = a.text(r, c++);
  row.note = a.text(r, c++);
  row.ended_at = a.optional_time(r, c++);
  row.decision_id = a.text(r, c++);
  row.use_id = a.text(r, c++);
  row.lines = a.integer(r, c++);
  return row;
}

std::vector<approval> all_of(const answer& a) {
  std::vector<approval> out;
  for (int r = 0; r < a.rows(); ++r)
    out.push_back(read_approval(a, r));
  return out;
}

std::optional<approval> first_of(const answer& a) {
  return a.rows() > 0 ? std::optional(read_approval(a, 0)) : std::nullopt;
}

/// Nothing is 0, which no time of a row is.
std::int64_t or_zero(const std::optional<utc_time>& t) {
  return t ? to_unix_ms(*t) : 0;
}

constexpr const char* is_open = "a.state IN ('pending', 'approved')";

/// Rows that are to be changed are locked in the order of their ids.
class rows final : public queue::approval_rows {
 public:
  rows(session& db, std::function<utc_time()> clock) : db_(db), clock_(std::move(clock)) {}

  utc_time now() override { return clock_(); }

  bool run_lives(const std::string& dispatch_id, std::int64_t fence) override {
    return db_.run("SELECT 1 FROM dispatch_running r WHERE r.members && ARRAY[$1::text COLLATE "
                   "\"C\"] AND r.fence = $2::bigint",
                   parameters{}.add(dispatch_id).add(fence))
               .rows() > 0;
  }

  std::optional<approval> hold(const std::string& approval_id) override {
    static const auto sql = approval_columns(true) + "WHERE a.approval_id = $1 FOR UPDATE";
    return first_of(db_.run(sql, parameters{}.add(approval_id)));
  }

  std::optional<approval> hold_latest(const std::string& dispatch_id,
                                      const std::string& matter) override {
    static const auto sql =
        approval_columns(true) +
        "WHERE a.dispatch_id = $1 AND a.matter = $2 ORDER BY a.created_at DESC, "
        "a.approval_id DESC LIMIT 1 FOR UPDATE";
    return first_of(db_.run(sql, parameters{}.add(dispatch_id).add(matter)));
  }

  std::vector<approval> hold_open(const std::string& dispatch_id, std::int64_t fence) override {
    static const auto sql = approval_columns(false) + "WHERE " + is_open +
                            " AND a.dispatch_id = $1 AND a.fence = $2::bigint ORDER BY "
                            "a.approval_id FOR UPDATE";
    return all_of(db_.run(sql, parameters{}.add(dispatch_id).add(fence)));
  }

  std::vector<approval> hold_over(std::size_t limit) override {
    static const auto sql =
        approval_columns(false) + "WHERE " + is_open +
        " AND (a.expires_at <= now_ms() OR (a.held = 0 AND (a.dispatch_id, a.fence) NOT IN (SELECT "
        "m.id, r.fence FROM dispatch_running r, unnest(r.members) AS m(id)))) ORDER BY "
        "a.approval_id LIMIT $1::bigint FOR UPDATE OF a SKIP LOCKED";
    return all_of(db_.run(sql, parameters{}.add(static_cast<std::int64_t>(limit))));
  }

  std::uint64_t count(approval_state state) override {
    const auto a = db_.run("SELECT count(*) FROM approvals WHERE state = $1 AND state IN "
                           "('pending', 'approved')",
                           parameters{}.add(queue::name_of(state)));
    return static_cast<std::uint64_t>(a.integer(0, 0));
  }

  void insert(const approval& row, const std::string& matter) override {
    const auto& m = row.matter;
    db_.later(
        "INSERT INTO approvals(approval_id, kernel_id, agent_id, dispatch_id, tool, "
        "arguments_sha256, workspace, before_sha256, shown, matter, hash, reason, node_id, "
        "fence, held, state, created_at, expires_at, lines) VALUES($1, $2, $3, $4, $5, $6, $7, "
        "$8, $9, $10, $11, $12, $13, $14::bigint, $15::int, $16, $17::bigint, $18::bigint, "
        "$19::bigint)",
        parameters{}
            .add(row.approval_id)
            .add(m.kernel_id)
            .add(m.agent_id)
            .add(m.dispatch_id)
            .add(m.tool)
            .add(m.arguments_sha256)
            .add(m.workspace)
            .add(m.before_sha256)
            .add(m.shown)
            .add(matter)
            .add(row.hash)
            .add(row.reason)
            .add(row.node_id)
            .add(row.fence)
            .add(std::int64_t{row.held ? 1 : 0})
            .add(queue::name_of(row.state))
            .add(to_unix_ms(row.created_at))
            .add(to_unix_ms(row.expires_at))
            .add(row.lines));
  }

  void update(const approval& row) override {
    db_.later("UPDATE approvals SET fence = $2::bigint, node_id = $3, held = $4::int, state = $5, "
              "decided_at = nullif($6::bigint, 0), decided_by = $7, note = $8, ended_at = "
              "nullif($9::bigint, 0), decision_id = $10, use_id = $11, lines = $12::bigint WHERE "
              "approval_id = $1",
              parameters{}
                  .add(row.approval_id)
                  .add(row.fence)
                  .add(row.node_id)
                  .add(std::int64_t{row.held ? 1 : 0})
                  .add(queue::name_of(row.state))
                  .add(or_zero(row.decided_at))
                  .add(row.decided_by)
                  .add(row.note)
                  .add(or_zero(row.ended_at))
                  .add(row.decision_id)
                  .add(row.use_id)
                  .add(row.lines));
  }

  void add_line(const std::string& approval_id, const approval_line& line) override {
    db_.later("INSERT INTO approval_trail(approval_id, number, at, what, outcome, by_whom, detail) "
              "VALUES($1, $2::bigint, $3::bigint, $4, $5, $6, $7)",
              parameters{}
                  .add(approval_id)
                  .add(line.number)
                  .add(to_unix_ms(line.at))
                  .add(line.what)
                  .add(queue::name_of(line.outcome))
                  .add(line.by)
                  .add(line.detail));
  }

  std::vector<approval> beginning_with(const std::string& prefix) override {
    static const auto sql = approval_columns(true) +
                            "WHERE a.approval_id >= $1 AND a.approval_id < $1 || '~' ORDER BY "
                            "a.approval_id LIMIT 2";
    return all_of(db_.run(sql, parameters{}.add(prefix)));
  }

  std::vector<approval_line> trail(const std::string& approval_id) override {
    const auto a = db_.run("SELECT number, at, what, outcome, by_whom, detail FROM approval_trail "
                           "WHERE approval_id = $1 ORDER BY number",
                           parameters{}.add(approval_id));
    std::vector<approval_line> out;
    for (int r = 0; r < a.rows(); ++r)
      out.push_back({a.integer(r, 0), a.time(r, 1), std::string{a.text(r, 2)},
                     queue::approval_outcome_from(a.text(r, 3)).value_or(approval_outcome::voided),
                     std::string{a.text(r, 4)}, std::string{a.text(r, 5)}});
    return out;
  }

  std::vector<approval> list(const list_approvals& op) override {
    array ids;
    for (const auto& id : op.ids)
      ids.add(id);
    const auto sql = approval_columns(false) + "WHERE ($1 = '' OR a.kernel_id = $1)" +
                     (op.ids.empty() ? " AND cardinality($2::text[]) = 0"
                                     : " AND a.approval_id = ANY($2::text[])") +
                     (op.open ? std::string(" AND ") + is_open : std::string()) +
                     " ORDER BY a.created_at DESC, a.approval_id DESC LIMIT $3::bigint";
    return all_of(db_.run(
        sql, parameters{}.add(op.kernel_id).add(ids).add(static_cast<std::int64_t>(op.limit))));
  }

 private:
  session& db_;
  std::function<utc_time()> clock_;
};

template <class Operation>
any_reply tried(queue::approval_rows& r, const Operation& op) {
  auto reply = queue::carry_out(r, op);
  return reply ? any_reply(std::move(*reply)) : any_reply(std::move(reply.error()));
}

} // namespace

any_reply operations::run(const ask_approval& op) {
  rows r(db_, [this] { return now(); });
  return tried(r, op);
}

/// Whoever waits for it may be another node's: it is told as of new work.
any_reply operations::run(const decide_approval& op) {
  rows r(db_, [this] { return now(); });
  auto reply = queue::carry_out(r, op);
  if (reply.outcome == approval_outcome::accepted && reply.row)
    woken_.insert(reply.row->matter.kernel_id);
  return reply;
}

any_reply operations::run(const use_approval& op) {
  rows r(db_, [this] { return now(); });
  return queue::carry_out(r, op);
}

any_reply operations::run(const withdraw_approvals& op) {
  rows r(db_, [this] { return now(); });
  return queue::carry_out(r, op);
}

any_reply operations::run(const sweep_approvals& op) {
  rows r(db_, [this] { return now(); });
  return queue::carry_out(r, op);
}

any_reply operations::run(const find_approval& op) {
  rows r(db_, [this] { return now(); });
  return tried(r, op);
}

any_reply operations::run(const list_approvals& op) {
  rows r(db_, [this] { return now(); });
  return queue::carry_out(r, op);
}

/// Closed since before, with their trails. What is still open is not removed.
std::uint64_t operations::remove_approvals(milliseconds age, std::uint64_t limit) {
  const auto a = db_.run(
      "WITH gone AS (DELETE FROM approvals WHERE approval_id IN (SELECT approval_id FROM approvals "
      "WHERE ended_at < now_ms() - $1::bigint ORDER BY ended_at LIMIT $2::bigint FOR UPDATE SKIP "
      "LOCKED) RETURNING approval_id), lines AS (DELETE FROM approval_trail WHERE approval_id IN "
      "(SELECT approval_id FROM gone)) SELECT count(*) FROM gone",
      parameters{}.add(age.count()).add(static_cast<std::int64_t>(limit)));
  return static_cast<std::uint64_t>(a.integer(0, 0));
}

} // namespace boyd::adapters::postgres
