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
                     "cost=? WHERE call_id=?");
  s.bind(now_).bind(op.used.input).bind(op.used.cached).bind(op.used.output);
  s.bind(op.used.reasoning).bind(op.used.cost).bind(op.call_id).run();
  auto totals = spend_totals(day, scopes);
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    queue::settle_total(totals[i], reserved, queue::counted(op.used));
    // A day that is removed already stays so.
    auto t = db_.fixed("UPDATE spend_totals SET tokens=?, cost=? WHERE day=? AND scope=?");
    t.bind(totals[i].tokens).bind(totals[i].cost).bind(day).bind(scopes[i]).run();
  }
  return ok{};
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
         " AS key, count(*), count(*) - count(settled_at), sum(input), sum(cached), sum(output), "
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
