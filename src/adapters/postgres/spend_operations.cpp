#include "boyd/core/day.hpp"
#include "boyd/queue/spend.hpp"
#include "boyd/queue/transitions.hpp"
#include "operations.hpp"

namespace boyd::adapters::postgres {

using namespace store;

namespace {

/// Two arrays of the same length: the days and the scopes.
parameters days_and_scopes(const std::set<day_scope>& keys) {
  array days;
  array scopes;
  for (const auto& [day, scope] : keys) {
    days.add(day);
    scopes.add(scope);
  }
  return parameters{}.add(days).add(scopes);
}

} // namespace

/// Locks the totals, in one order for all transactions: none waits for another in a circle.
void operations::lock_totals(const std::set<day_scope>& keys) {
  if (keys.empty())
    return;
  const auto a =
      db_.run("SELECT t.day, t.scope, t.tokens, t.cost FROM spend_totals t JOIN unnest($1::text[], "
              "$2::text[]) AS k(day, scope) ON t.day = k.day AND t.scope = k.scope ORDER BY t.day, "
              "t.scope FOR UPDATE OF t",
              days_and_scopes(keys));
  for (int r = 0; r < a.rows(); ++r)
    totals_.try_emplace({std::string{a.text(r, 0)}, std::string{a.text(r, 1)}},
                        held_total{{a.integer(r, 2), a.integer(r, 3)}, false});
}

/// Before anything else of the batch is locked: all totals that it will change.
void operations::hold_spend(const std::vector<store::operation>& batch) {
  array changed;
  std::set<day_scope> keys;
  for (const auto& any : batch) {
    const auto* reserve = std::get_if<reserve_spend>(&any);
    const auto* settle = std::get_if<settle_spend>(&any);
    const auto* release = std::get_if<release_spend>(&any);
    if ((reserve == nullptr && settle == nullptr && release == nullptr) ||
        queue::check_operation(any))
      continue;
    if (settle != nullptr)
      changed.add(settle->call_id);
    else if (release != nullptr)
      changed.add(release->call_id);
    else
      for (const auto& l : reserve->limits)
        keys.emplace(utc_day(now()), l.scope);
  }
  if (!keys.empty())
    db_.later(
        "INSERT INTO spend_totals(day, scope, tokens, cost) SELECT k.day, k.scope, 0, 0 FROM "
        "unnest($1::text[], $2::text[]) AS k(day, scope) ORDER BY k.day COLLATE \"C\", k.scope "
        "COLLATE \"C\" ON CONFLICT DO NOTHING",
        days_and_scopes(keys));
  if (!changed.empty()) {
    const auto a = db_.run("SELECT DISTINCT s.day, k.scope FROM spend s, unnest(s.scopes) AS "
                           "k(scope) WHERE s.call_id = ANY($1::text[])",
                           parameters{}.add(changed));
    for (int r = 0; r < a.rows(); ++r)
      keys.emplace(a.text(r, 0), a.text(r, 1));
  }
  lock_totals(keys);
}

any_reply operations::run(const reserve_spend& op) {
  const auto day = utc_day(now());
  std::vector<queue::spend_total> totals;
  for (const auto& l : op.limits)
    totals.push_back(totals_[{day, l.scope}].value);
  auto after = totals;
  auto reply = queue::decide_spend(op, false, after);
  if (!reply.granted) {
    const auto a = db_.run("SELECT 1 FROM spend WHERE call_id = $1", parameters{}.add(op.call_id));
    return a.rows() > 0 ? queue::decide_spend(op, true, totals) : reply;
  }
  array scopes;
  for (const auto& l : op.limits)
    scopes.add(l.scope);
  const auto a = db_.run(
      "INSERT INTO spend(call_id, day, created_at, dispatch_id, kernel_id, agent_id, provider_id, "
      "model, input, cached, output, reasoning, cost, scopes) VALUES($1, $2, now_ms(), $3, $4, $5, "
      "$6, $7, $8::bigint, $9::bigint, $10::bigint, $11::bigint, $12::bigint, $13::text[]) ON "
      "CONFLICT DO NOTHING",
      parameters{}
          .add(op.call_id)
          .add(day)
          .add(op.dispatch_id)
          .add(op.kernel_id)
          .add(op.agent_id)
          .add(op.provider_id)
          .add(op.model)
          .add(op.most.input)
          .add(op.most.cached)
          .add(op.most.output)
          .add(op.most.reasoning)
          .add(op.most.cost)
          .add(scopes));
  if (a.affected() == 0)
    return queue::decide_spend(op, true, totals);
  for (std::size_t i = 0; i < op.limits.size(); ++i)
    totals_[{day, op.limits[i].scope}] = {after[i], true};
  return reply;
}

any_reply operations::run(const settle_spend& op) {
  const auto a = db_.run(
      "UPDATE spend s SET settled_at = now_ms(), input = $2::bigint, cached = $3::bigint, output = "
      "$4::bigint, reasoning = $5::bigint, cost = $6::bigint, model = CASE WHEN $7::text = '' THEN "
      "s.model ELSE $7::text END FROM (SELECT call_id, input + output "
      "AS tokens, cost FROM spend WHERE call_id = $1 AND settled_at IS NULL FOR UPDATE) o WHERE "
      "s.call_id = o.call_id RETURNING s.day, s.scopes, o.tokens, o.cost",
      parameters{}
          .add(op.call_id)
          .add(op.used.input)
          .add(op.used.cached)
          .add(op.used.output)
          .add(op.used.reasoning)
          .add(op.used.cost)
          .add(op.model));
  if (a.rows() == 0)
    return ok{};
  const std::string day{a.text(0, 0)};
  const queue::spend_total reserved{a.integer(0, 2), a.integer(0, 3)};
  change_totals(day, members_of(a.text(0, 1)), reserved, queue::counted(op.used));
  return ok{};
}

void operations::change_totals(const std::string& day, const std::vector<std::string>& scopes,
                               const queue::spend_total& before, const queue::spend_total& used) {
  std::set<day_scope> missing;
  for (const auto& scope : scopes)
    if (!totals_.contains({day, scope}))
      missing.emplace(day, scope);
  // It was reserved after hold_spend looked.
  lock_totals(missing);
  for (const auto& scope : scopes) {
    const auto held = totals_.find({day, scope});
    if (held == totals_.end())
      continue; // A day that is removed already stays so.
    queue::settle_total(held->second.value, before, used);
    held->second.changed = true;
  }
}

namespace {

/// As read_call takes them.
constexpr const char* call_columns =
    "SELECT call_id, day, created_at, dispatch_id, kernel_id, agent_id, provider_id, model, input, "
    "cached, output, reasoning, cost, (settled_at IS NOT NULL)::int, released_at, released_by, "
    "release_reason, released_tokens, released_cost, scopes FROM spend ";
constexpr int scopes_column = 19;

spend_call read_call(const answer& a, int row) {
  spend_call c;
  int at = 0;
  c.call_id = a.text(row, at++);
  c.day = a.text(row, at++);
  c.created_at = a.time(row, at++);
  for (auto* text : {&c.dispatch_id, &c.kernel_id, &c.agent_id, &c.provider_id, &c.model})
    *text = a.text(row, at++);
  auto& n = c.counts;
  for (auto* count : {&n.input, &n.cached, &n.output, &n.reasoning, &n.cost})
    *count = a.integer(row, at++);
  c.settled = a.integer(row, at++) != 0;
  if (const auto released = a.optional_time(row, at++))
    c.release = {*released, std::string{a.text(row, at)}, std::string{a.text(row, at + 1)},
                 a.integer(row, at + 2), a.integer(row, at + 3)};
  return c;
}

any_reply read_calls(const answer& a) {
  list_spend::reply out;
  for (int r = 0; r < a.rows(); ++r)
    out.push_back(read_call(a, r));
  return out;
}

} // namespace

bool operations::is_under_way(const queue::call_holder& who) {
  if (!who.cycle_id.empty())
    return db_.run("SELECT 1 FROM cycles WHERE cycle_id = $1 AND status = 'running'",
                   parameters{}.add(who.cycle_id))
               .rows() > 0;
  return db_.run("SELECT 1 FROM dispatch_running r WHERE r.members && ARRAY[$1::text COLLATE "
                 "\"C\"] AND r.fence = $2::bigint",
                 parameters{}.add(who.dispatch_id).add(who.fence))
             .rows() > 0;
}

any_reply operations::run(const release_spend& op) {
  const auto a = db_.run(std::string(call_columns) + "WHERE call_id = $1 FOR UPDATE",
                         parameters{}.add(op.call_id));
  if (a.rows() == 0)
    return release_spend::reply{};
  const auto call = read_call(a, 0);
  auto reply = queue::decide_release(op, call, is_under_way(queue::holder_of(call)), now());
  if (*reply.call == call)
    return reply;
  const auto& changed = *reply.call;
  db_.run(
      "UPDATE spend SET input = $2::bigint, cached = $3::bigint, output = $4::bigint, reasoning "
      "= $5::bigint, cost = $6::bigint, released_at = $7::bigint, released_by = $8, "
      "release_reason = $9, released_tokens = $10::bigint, released_cost = $11::bigint WHERE "
      "call_id = $1",
      parameters{}
          .add(changed.call_id)
          .add(changed.counts.input)
          .add(changed.counts.cached)
          .add(changed.counts.output)
          .add(changed.counts.reasoning)
          .add(changed.counts.cost)
          .add(to_unix_ms(changed.release->at))
          .add(changed.release->by)
          .add(changed.release->reason)
          .add(changed.release->tokens)
          .add(changed.release->cost));
  change_totals(call.day, members_of(a.text(0, scopes_column)), queue::counted(call.counts),
                queue::counted(changed.counts));
  return reply;
}

void operations::write_totals() {
  array days;
  array scopes;
  array tokens;
  array costs;
  for (auto& [key, held] : totals_) {
    if (!held.changed)
      continue;
    days.add(key.first);
    scopes.add(key.second);
    tokens.add(held.value.tokens);
    costs.add(held.value.cost);
    held.changed = false;
  }
  if (!days.empty())
    db_.later(
        "UPDATE spend_totals t SET tokens = k.tokens, cost = k.cost FROM unnest($1::text[], "
        "$2::text[], $3::bigint[], $4::bigint[]) AS k(day, scope, tokens, cost) WHERE t.day = "
        "k.day AND t.scope = k.scope",
        parameters{}.add(days).add(scopes).add(tokens).add(costs));
}

namespace {

/// The days that are asked for; the database's today where $1 or $2 is empty.
constexpr const char* asked_days =
    "day >= coalesce(nullif($1, ''), to_char(to_timestamp(now_ms() / 1000.0) AT TIME ZONE 'UTC', "
    "'YYYY-MM-DD')) AND day <= coalesce(nullif($2, ''), to_char(to_timestamp(now_ms() / 1000.0) AT "
    "TIME ZONE 'UTC', 'YYYY-MM-DD'))";

/// Of spend_totals, as rows of the same shape.
std::string scope_sums() {
  return std::string{"SELECT scope AS key, 0, 0, least(sum(tokens), 9223372036854775807)::bigint, "
                     "0, 0, 0, least(sum(cost), 9223372036854775807)::bigint FROM spend_totals "
                     "WHERE "} +
         asked_days +
         " AND $3::text = $3 GROUP BY scope ORDER BY sum(cost) DESC, sum(tokens) DESC, scope LIMIT "
         "$4::bigint";
}

/// Of the calls by `key`.
std::string call_sums(const std::string& key) {
  return "SELECT " + key +
         " AS key, count(*), count(*) - count(coalesce(settled_at, released_at)), "
         "sum(input)::bigint, "
         "sum(cached)::bigint, sum(output)::bigint, sum(reasoning)::bigint, sum(cost)::bigint FROM "
         "spend WHERE " +
         asked_days +
         " AND ($3 = '' OR kernel_id = $3) GROUP BY key ORDER BY "
         "sum(cost) DESC, sum(input) + sum(output) DESC, key LIMIT $4::bigint";
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
  return scope_sums();
}

} // namespace

namespace {

any_reply read_sums(const answer& a) {
  std::vector<sum_spend::row> out;
  for (int r = 0; r < a.rows(); ++r)
    out.push_back(
        {std::string{a.text(r, 0)},
         static_cast<std::uint64_t>(a.integer(r, 1)),
         static_cast<std::uint64_t>(a.integer(r, 2)),
         {a.integer(r, 3), a.integer(r, 4), a.integer(r, 5), a.integer(r, 6), a.integer(r, 7)}});
  return out;
}

} // namespace

question operations::ask(const sum_spend& op) {
  return {{sums_by(op.by), parameters{}
                               .add(op.from_day)
                               .add(op.to_day)
                               .add(op.kernel_id)
                               .add(static_cast<std::int64_t>(op.limit))},
          read_sums};
}

question operations::ask(const list_spend& op) {
  auto sql =
      std::string(call_columns) + "WHERE " +
      (op.call_id.empty()
           ? asked_days + std::string(" AND $4::text = $4")
           : std::string(
                 "$1::text = $1 AND $2::text = $2 AND call_id >= $4 AND call_id < $4 || '~'")) +
      " AND ($3 = '' OR kernel_id = $3)";
  if (op.open_only)
    sql += " AND settled_at IS NULL AND released_at IS NULL";
  return {
      {sql + " ORDER BY created_at DESC, call_id LIMIT $5::bigint", parameters{}
                                                                        .add(op.from_day)
                                                                        .add(op.to_day)
                                                                        .add(op.kernel_id)
                                                                        .add(op.call_id)
                                                                        .add(sql_limit(op.limit))},
      read_calls};
}

/// Whole days of calls that are older, and their totals; at most `limit` rows in all.
std::uint64_t operations::remove_spend(milliseconds age, std::uint64_t limit) {
  const auto day = utc_day(now() - age);
  std::uint64_t removed = 0;
  for (const auto* sql :
       {"DELETE FROM spend WHERE call_id IN (SELECT call_id FROM spend WHERE day < $1 LIMIT "
        "$2::bigint FOR UPDATE SKIP LOCKED)",
        "DELETE FROM spend_totals WHERE (day, scope) IN (SELECT day, scope FROM spend_totals WHERE "
        "day < $1 LIMIT $2::bigint FOR UPDATE SKIP LOCKED)"})
    removed += static_cast<std::uint64_t>(
        db_.run(sql, parameters{}.add(day).add(static_cast<std::int64_t>(limit - removed)))
            .affected());
  return removed;
}

} // namespace boyd::adapters::postgres
