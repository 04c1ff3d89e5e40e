#include "actors/gateway/survey.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/day.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/money.hpp"
#include "boyd/plan/advice.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/queue/spend.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace boyd::gateway_impl {

namespace {

using store::sum_spend;

constexpr std::size_t most_rows = 1000;
/// Open reservations that are listed.
constexpr std::size_t most_reservations = 200;
/// Rows from which the total is made: more days than anybody keeps.
constexpr std::size_t most_days = 4000;
/// Days that are shown by themselves when nobody says which: this one and those before it.
constexpr std::chrono::days usual_days{29};
constexpr int whole = 100;

constexpr std::array<std::pair<std::string_view, sum_spend::group>, 3> groups{
    {{"agent", sum_spend::group::agent},
     {"model", sum_spend::group::model},
     {"day", sum_spend::group::day}}};

json counts_json(const sum_spend::row& r) {
  return {{"calls", r.calls},
          {"open_calls", r.open_calls},
          {"input_tokens", r.used.input},
          {"cached_tokens", r.used.cached},
          {"output_tokens", r.used.output},
          {"reasoning_tokens", r.used.reasoning},
          {"tokens", r.used.tokens()},
          {"cost", format_dollars(r.used.cost)}};
}

json row_json(const sum_spend::row& r) {
  auto out = counts_json(r);
  out["key"] = r.key;
  return out;
}

sum_spend::row total_of(const std::vector<sum_spend::row>& rows) {
  sum_spend::row all;
  for (const auto& r : rows) {
    all.calls += r.calls;
    all.open_calls += r.open_calls;
    all.used.input += r.used.input;
    all.used.cached += r.used.cached;
    all.used.output += r.used.output;
    all.used.reasoning += r.used.reasoning;
    all.used.cost += r.used.cost;
  }
  return all;
}

constexpr const char* by_call = "call";

/// What `by` says; an error is answered, and nothing returned. Each call by itself is no sum.
std::optional<sum_spend::group> group_of(exchange& x, const std::string& by) {
  if (by == by_call)
    return sum_spend::group::agent;
  const auto* const known = std::ranges::find(groups, by, [](const auto& g) { return g.first; });
  if (known != groups.end())
    return known->second;
  x.fail_with({errc::invalid_argument, "by cannot be " + by, "by", "agent, model, day or call"});
  return std::nullopt;
}

std::string by_of(const exchange& x) {
  return x.query("by").empty() ? std::string("agent") : x.query("by");
}

/// What is asked for; an error is answered, and nothing returned.
std::optional<sum_spend> question_of(exchange& x) {
  const auto group = group_of(x, by_of(x));
  if (!group)
    return std::nullopt;
  sum_spend q;
  q.by = *group;
  q.kernel_id = x.query("kernel");
  q.limit = most_rows;
  const auto now = x.self->state.parts.context->ports.clock->now();
  const auto today = utc_day(now);
  q.to_day = x.query("to").empty() ? today : x.query("to");
  q.from_day = x.query("from");
  if (q.from_day.empty())
    q.from_day = q.by == sum_spend::group::day && x.query("to").empty() ? utc_day(now - usual_days)
                                                                        : q.to_day;
  for (const auto* key : {"from", "to"})
    if (!x.query(key).empty() && !is_day(x.query(key))) {
      x.fail_with({errc::invalid_argument, x.query(key) + " is not a date", key,
                   "use a date (UTC) such as " + today});
      return std::nullopt;
    }
  if (q.from_day > q.to_day) {
    x.fail_with({errc::invalid_argument, q.from_day + " is after " + q.to_day, "from",
                 "use an earlier from, or a later to"});
    return std::nullopt;
  }
  return q;
}

/// `listed`: of what each call is asked for, all calls; else the open ones.
void answer_cost(const exchange_ptr& x, const sum_spend& q, const std::vector<sum_spend::row>& rows,
                 const sum_spend::row& total, store::list_spend::reply listed) {
  const bool each = by_of(*x) == by_call;
  const auto most = each ? most_rows : most_reservations;
  const bool more = listed.size() > most; // one more was asked for
  listed.resize(std::min(listed.size(), most));
  json items = json::array();
  for (const auto& row : rows)
    if (!each)
      items.push_back(row_json(row));
  describe_calls(x, std::move(listed),
                 [x, q, total, each, more, items](result<json> calls) mutable {
                   if (!calls)
                     return x->fail_with(calls.error());
                   json open = json::array();
                   for (const auto& c : *calls)
                     if (c["open_calls"] == 1)
                       open.push_back(c);
                   x->reply("cost", {{"by", by_of(*x)},
                                     {"from", q.from_day},
                                     {"to", q.to_day},
                                     {"kernel_id", q.kernel_id},
                                     {"items", each ? std::move(*calls) : std::move(items)},
                                     {"total", counts_json(total)},
                                     {"reservations", std::move(open)},
                                     {"more", each && more},
                                     {"more_reservations", more}});
                 });
}

json limit_json(std::int64_t used, std::int64_t limit) {
  return {{"used", used}, {"limit", limit}};
}

/// How much of the limit is used, cut to a whole number; 0 without one.
int percent_of(std::int64_t used, std::int64_t limit) {
  if (limit <= 0)
    return 0;
  constexpr double most = 999'999;
  return static_cast<int>(
      std::min(most, static_cast<double>(used) / static_cast<double>(limit) * whole));
}

/// One budget of today: whose it is, and how far it is used up.
struct budget_state {
  std::string name; ///< as a person calls it
  json whose;
  config::budget_limit limit;
  store::usage_counts used;

  int percent() const {
    return std::max(percent_of(used.tokens(), limit.tokens), percent_of(used.cost, limit.cost));
  }
};

std::vector<budget_state> budgets_of(const gateway_parts& p, const survey& all) {
  std::vector<budget_state> out;
  const auto add = [&](std::string name, json whose, const std::string& scope,
                       const config::budget_limit& limit) {
    if (limit.tokens == 0 && limit.cost == 0)
      return;
    const auto found = all.spent.find(scope);
    out.push_back({std::move(name), std::move(whose), limit,
                   found == all.spent.end() ? store::usage_counts{} : found->second});
  };
  const auto& node = p.context->node_id;
  add("this node", {{"scope", "node"}, {"node_id", node}}, queue::node_scope(node),
      p.configuration->node_settings.budget_day);
  const auto add_agent = [&](const char* who, const config::kernel& k, const std::string& id,
                             const config::budget_limit& day) {
    add(who + k.kernel_id + "/" + id,
        {{"scope", "agent"}, {"kernel_id", k.kernel_id}, {"agent_id", id}},
        queue::agent_scope(k.kernel_id, id), day);
  };
  for (const auto& k : p.configuration->kernels) {
    if (k.plan.type == config::planner::type_t::llm)
      add_agent("", k, std::string(plan::planner_voice), k.plan.ask.budget.day);
    if (k.reduce.type == config::reducer::type_t::llm)
      add_agent("", k, std::string(plan::reducer_voice), k.reduce.ask.budget.day);
    for (const auto& a : k.agents)
      if (std::holds_alternative<config::chat_executor>(a.run) ||
          std::holds_alternative<config::agent_cli_executor>(a.run))
        add_agent("agent ", k, a.agent_id, a.budget.day);
  }
  return out;
}

} // namespace

void get_cost(exchange_ptr x) {
  const auto q = question_of(*x);
  if (!q)
    return;
  auto days = *q;
  days.by = sum_spend::group::day;
  days.limit = most_days;
  store::list_spend calls;
  calls.from_day = q->from_day;
  calls.to_day = q->to_day;
  calls.kernel_id = q->kernel_id;
  calls.open_only = by_of(*x) != by_call;
  calls.limit = (calls.open_only ? most_reservations : most_rows) + 1;
  store_request request;
  const auto groups = request.add(*q);
  const auto totals = request.add(days);
  const auto list = request.add(calls);
  ask<store_reply>(
      x->self, x->self->state.parts.store, std::move(request),
      [x, q, groups, totals, list](result<store_reply> r) {
        if (!r)
          return x->fail_with(r.error());
        const auto rows = groups.of(*r);
        const auto all = totals.of(*r);
        auto listed = list.of(*r);
        if (!rows || !all || !listed)
          return x->fail_with(!rows ? rows.error() : !all ? all.error() : listed.error());
        answer_cost(x, *q, *rows, total_of(*all), std::move(*listed));
      });
}

json budgets_json(const gateway_parts& p, const survey& all) {
  json rows = json::array();
  for (auto& b : budgets_of(p, all)) {
    auto row = std::move(b.whose);
    row["tokens"] = limit_json(b.used.tokens(), b.limit.tokens);
    row["cost"] = {{"used", format_dollars(b.used.cost)}, {"limit", format_dollars(b.limit.cost)}};
    row["percent"] = b.percent();
    rows.push_back(std::move(row));
  }
  return rows;
}

json reservations_json(const survey& all) {
  store::usage_counts held;
  std::optional<utc_time> oldest;
  for (const auto& c : all.reservations) {
    held.input += c.counts.tokens();
    held.cost += c.counts.cost;
    oldest = std::min(oldest.value_or(c.created_at), c.created_at);
  }
  return {{"open", all.reservations.size()},
          {"tokens", held.tokens()},
          {"cost", format_dollars(held.cost)},
          {"since", to_json(oldest)}};
}

std::vector<std::string> budget_problems(const gateway_parts& p, const survey& all) {
  std::vector<std::string> lines;
  for (const auto& b : budgets_of(p, all)) {
    if (b.percent() < limits::budget_warning)
      continue;
    const bool tokens =
        percent_of(b.used.tokens(), b.limit.tokens) >= percent_of(b.used.cost, b.limit.cost);
    lines.push_back(
        b.name + " has used " + std::to_string(b.percent()) + " % of today's budget: " +
        (tokens
             ? std::to_string(b.used.tokens()) + " of " + std::to_string(b.limit.tokens) + " tokens"
             : format_dollars(b.used.cost) + " of " + format_dollars(b.limit.cost) + " dollars") +
        (b.percent() < whole ? "" : "; no more model calls today"));
  }
  return lines;
}

} // namespace boyd::gateway_impl
