#include "boyd/core/day.hpp"
#include "boyd/queue/cycle_json.hpp"
#include "boyd/queue/spend.hpp"
#include "operations.hpp"

namespace boyd::adapters::sqlite {

using namespace store;

std::vector<queue::spend_total> operations::spend_totals(const std::string& day,
                                                         const std::vector<std::string>& scopes) {
  std::vector<queue::spend_total> out;
  for (const auto& scope : scopes) {
    auto s = db_.fixed("SELECT tokens, cost FROM spend_totals WHERE day=? AND scope=?");
    s.bind(day).bind(scope);
    out.push_back(s.step() ? queue::spend_total{s.integer(0), s.integer(1)} : queue::spend_total{});
  }
  return out;
}

any_reply operations::run(const reserve_spend& op) {
  const auto day = utc_day(now_);
  const auto scopes = queue::scopes_of(op);
  auto totals = spend_totals(day, scopes);
  bool stands = false;
  {
    auto s = db_.fixed("SELECT 1 FROM spend WHERE call_id=?");
    stands = s.bind(op.call_id).step();
  }
  auto reply = queue::decide_spend(op, stands, totals);
  if (stands || !reply.granted)
    return reply;
  const auto names = queue::names_to_json(scopes);
  auto s =
      db_.fixed("INSERT INTO spend(call_id, day, created_at, dispatch_id, kernel_id, "
                "agent_id, provider_id, model, input, cached, output, reasoning, cost, scopes) "
                "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  s.bind(op.call_id).bind(day).bind(now_).bind(op.dispatch_id).bind(op.kernel_id);
  s.bind(op.agent_id).bind(op.provider_id).bind(op.model).bind(op.most.input);
  s.bind(op.most.cached).bind(op.most.output).bind(op.most.reasoning).bind(op.most.cost);
  s.bind(names).run();
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    auto t = db_.fixed("INSERT INTO spend_totals(day, scope, tokens, cost) VALUES(?,?,?,?) ON "
                       "CONFLICT(day, scope) DO UPDATE SET tokens=excluded.tokens, "
                       "cost=excluded.cost");
    t.bind(day).bind(scopes[i]).bind(totals[i].tokens).bind(totals[i].cost).run();
  }
  return reply;
}

any_reply operations::run(const settle_spend& op) {
  std::string day;
  std::vector<std::string> scopes;
  queue::spend_total reserved;
  {
    auto s = db_.fixed("SELECT day, scopes, input + output, cost FROM spend WHERE call_id=? AND "
                       "settled_at IS NULL");
    if (!s.bind(op.call_id).step())
      return ok{};
    day = s.text(0);
    scopes = queue::names_from_json(s.view(1));
    reserved = {s.integer(2), s.integer(3)};
  }
  auto s = db_.fixed("UPDATE spend SET settled_at=?, input=?, cached=?, output=?, reasoning=?, "
                     "cost=?, model=CASE WHEN ?='' THEN model ELSE ? END WHERE call_id=?");
  s.bind(now_).bind(op.used.input).bind(op.used.cached).bind(op.used.output);
  s.bind(op.used.reasoning).bind(op.used.cost).bind(op.model).bind(op.model);
  s.bind(op.call_id).run();
  change_totals(day, scopes, reserved, queue::counted(op.used));
  return ok{};
}

void operations::change_totals(const std::string& day, const std::vector<std::string>& scopes,
                               const queue::spend_total& before, const queue::spend_total& used) {
  auto totals = spend_totals(day, scopes);
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    queue::settle_total(totals[i], before, used);
    // A day that is removed already stays so.
    auto t = db_.fixed("UPDATE spend_totals SET tokens=?, cost=? WHERE day=? AND scope=?");
    t.bind(totals[i].tokens).bind(totals[i].cost).bind(day).bind(scopes[i]).run();
  }
}

namespace {

/// Of spend_totals, as rows of the same shape.
constexpr const char* scope_sums =
    "SELECT scope AS key, 0, 0, sum(tokens), 0, 0, 0, sum(cost) FROM spend_totals WHERE day >= ?1 "
    "AND day <= ?2 AND ?3 = ?3 GROUP BY key ORDER BY sum(cost) DESC, sum(tokens) DESC, key LIMIT "
    "?4";

/// Of the calls by `key`.
std::string call_sums(const std::string& key) {
  return "SELECT " + key +
         " AS key, count(*), count(*) - count(coalesce(settled_at, released_at)), sum(input), "
         "sum(cached), sum(output), "
         "sum(reasoning), sum(cost) FROM spend WHERE day >= ?1 AND day <= ?2 AND (?3 = '' OR "
         "kernel_id = ?3) GROUP BY key ORDER BY sum(cost) DESC, sum(input) + sum(output) DESC, key "
         "LIMIT ?4";
}

std::string sums_by(sum_spend::group by) {
  switch (by) {
  case sum_spend::group::agent:
    return call_sums("kernel_id || '/' || agent_id");
  case sum_spend::group::model:
    return call_sums("provider_id || '/' || model");
  case sum_spend::group::day:
    return call_sums("day");
  case sum_spend::group::scope:
    break;
  }
  return scope_sums;
}

} // namespace

any_reply operations::run(const sum_spend& op) {
  const auto today = utc_day(now_);
  auto s = db_.prepare(sums_by(op.by));
  s.bind(op.from_day.empty() ? today : op.from_day);
  s.bind(op.to_day.empty() ? today : op.to_day).bind(op.kernel_id);
  s.bind(static_cast<std::int64_t>(op.limit));
  std::vector<sum_spend::row> out;
  while (s.step())
    out.push_back({s.text(0),
                   static_cast<std::uint64_t>(s.integer(1)),
                   static_cast<std::uint64_t>(s.integer(2)),
                   {s.integer(3), s.integer(4), s.integer(5), s.integer(6), s.integer(7)}});
  return out;
}

namespace {

/// As read_call takes them.
constexpr const char* call_columns =
    "SELECT call_id, day, created_at, dispatch_id, kernel_id, agent_id, provider_id, model, input, "
    "cached, output, reasoning, cost, settled_at IS NOT NULL, released_at, released_by, "
    "release_reason, released_tokens, released_cost, scopes FROM spend ";
constexpr int scopes_column = 19;

spend_call read_call(const statement& s) {
  spend_call c;
  int at = 0;
  c.call_id = s.text(at++);
  c.day = s.text(at++);
  c.created_at = s.time(at++);
  for (auto* text : {&c.dispatch_id, &c.kernel_id, &c.agent_id, &c.provider_id, &c.model})
    *text = s.text(at++);
  auto& n = c.counts;
  for (auto* count : {&n.input, &n.cached, &n.output, &n.reasoning, &n.cost})
    *count = s.integer(at++);
  c.settled = s.integer(at++) != 0;
  if (const auto released = s.optional_time(at++))
    c.release = {*released, s.text(at), s.text(at + 1), s.integer(at + 2), s.integer(at + 3)};
  return c;
}

} // namespace

any_reply operations::run(const list_spend& op) {
  const auto today = utc_day(now_);
  std::string sql = call_columns;
  sql += op.call_id.empty() ? "WHERE day >= ?1 AND day <= ?2 AND ?4 = ''"
                            : "WHERE ?1 = ?1 AND ?2 = ?2 AND call_id >= ?4 AND call_id < ?4 || "
                              "'~'";
  sql += " AND (?3 = '' OR kernel_id = ?3)";
  if (op.open_only)
    sql += " AND settled_at IS NULL AND released_at IS NULL";
  auto s = db_.prepare(sql + " ORDER BY created_at DESC, call_id LIMIT ?5");
  s.bind(op.from_day.empty() ? today : op.from_day);
  s.bind(op.to_day.empty() ? today : op.to_day).bind(op.kernel_id).bind(op.call_id);
  s.bind(sql_limit(op.limit));
  list_spend::reply out;
  while (s.step())
    out.push_back(read_call(s));
  return out;
}

bool operations::is_under_way(const queue::call_holder& who) {
  if (!who.cycle_id.empty()) {
    auto s = db_.fixed("SELECT 1 FROM cycles WHERE cycle_id = ? AND status = 'running'");
    return s.bind(who.cycle_id).step();
  }
  static const auto sql = "SELECT 1 FROM dispatch_requests d" + std::string{running_join} +
                          " WHERE d.dispatch_id = ? AND r.fence = ?";
  auto s = db_.fixed(sql.c_str());
  return s.bind(who.dispatch_id).bind(who.fence).step();
}

any_reply operations::run(const release_spend& op) {
  std::optional<spend_call> call;
  std::vector<std::string> scopes;
  {
    auto s = db_.prepare(std::string(call_columns) + "WHERE call_id = ?1");
    if (!s.bind(op.call_id).step())
      return release_spend::reply{};
    call = read_call(s);
    scopes = queue::names_from_json(s.view(scopes_column));
  }
  auto reply = queue::decide_release(op, *call, is_under_way(queue::holder_of(*call)), now_);
  if (*reply.call == *call)
    return reply;
  const auto& now = *reply.call;
  auto s = db_.fixed("UPDATE spend SET input=?, cached=?, output=?, reasoning=?, cost=?, "
                     "released_at=?, released_by=?, release_reason=?, released_tokens=?, "
                     "released_cost=? WHERE call_id=?");
  s.bind(now.counts.input).bind(now.counts.cached).bind(now.counts.output);
  s.bind(now.counts.reasoning).bind(now.counts.cost).bind(now.release->at).bind(now.release->by);
  s.bind(now.release->reason).bind(now.release->tokens).bind(now.release->cost);
  s.bind(now.call_id).run();
  change_totals(call->day, scopes, queue::counted(call->counts), queue::counted(now.counts));
  return reply;
}

/// Whole days of calls that are older, and their totals; at most `limit` rows in all.
std::uint64_t operations::remove_spend(milliseconds age, std::uint64_t limit) {
  const auto day = utc_day(now_ - age);
  std::uint64_t removed = 0;
  for (const auto* sql :
       {"DELETE FROM spend WHERE call_id IN (SELECT call_id FROM spend WHERE day < ? LIMIT ?)",
        "DELETE FROM spend_totals WHERE (day, scope) IN (SELECT day, scope FROM spend_totals WHERE "
        "day < ? LIMIT ?)"}) {
    auto s = db_.fixed(sql);
    s.bind(day).bind(static_cast<std::int64_t>(limit - removed)).run();
    removed += static_cast<std::uint64_t>(db_.changes());
  }
  return removed;
}

} // namespace boyd::adapters::sqlite
