#include "boyd/queue/spent.hpp"

#include "boyd/core/money.hpp"
#include "boyd/model/chat.hpp"
#include "boyd/queue/spend.hpp"

#include <algorithm>
#include <optional>
#include <variant>

namespace boyd::queue {

namespace {

/// More scopes than agents and nodes in a house; those that used most come first.
constexpr std::size_t scopes_read = 100'000;

/// The least that a call takes from the budgets: the answer's limit, without any question.
spend_total least_call(const config::configuration& c, const config::agent& a,
                       const config::chat_executor& chat) {
  auto output = chat.max_output_tokens > 0 ? chat.max_output_tokens : model::assumed_output_tokens;
  if (a.budget.run.tokens > 0)
    output = std::min(output, a.budget.run.tokens);
  spend_total least{output, 0};
  if (const auto* p = config::find_provider(c, chat.provider_id)) {
    model::usage used;
    used.output = output;
    least.cost = model::cost_of(*p, chat.model.empty() ? p->model : chat.model, used);
  }
  return least;
}

/// The least that the agent's next run takes; nothing for one that calls no models. The run of a
/// program of its own is reserved as a whole.
std::optional<spend_total> least_of(const config::configuration& c, const config::agent& a) {
  if (const auto* chat = std::get_if<config::chat_executor>(&a.run))
    return least_call(c, a, *chat);
  if (std::holds_alternative<config::agent_cli_executor>(a.run))
    return spend_total{a.budget.run.tokens, a.budget.run.cost};
  return std::nullopt;
}

/// Why this limit does not allow it; empty: it does.
std::string held(const std::string& whose, const config::budget_limit& limit,
                 const spend_total& used, const spend_total& least) {
  const auto goes_beyond = [](std::int64_t most, std::int64_t have, std::int64_t more) {
    return most > 0 && (have >= most || more > most - have);
  };
  if (goes_beyond(limit.tokens, used.tokens, least.tokens))
    return whose + ": " + std::to_string(used.tokens) + " of " + std::to_string(limit.tokens) +
           " tokens of today are used or reserved; resets at 00:00 UTC";
  if (goes_beyond(limit.cost, used.cost, least.cost))
    return whose + ": " + format_dollars(used.cost) + " of " + format_dollars(limit.cost) +
           " dollars of today are used or reserved; resets at 00:00 UTC";
  return {};
}

} // namespace

bool has_budgets(const config::kernel& kernel) {
  return std::ranges::any_of(kernel.agents, [](const config::agent& a) {
    return std::holds_alternative<config::chat_executor>(a.run) ||
           std::holds_alternative<config::agent_cli_executor>(a.run);
  });
}

store::sum_spend todays_totals() {
  store::sum_spend op;
  op.by = store::sum_spend::group::scope;
  op.limit = scopes_read;
  return op;
}

std::map<std::string, std::string> spent_agents(const config::configuration& c,
                                                const config::kernel& kernel,
                                                const std::string& node_id,
                                                const store::sum_spend::reply& totals) {
  const auto used_by = [&](const std::string& scope) {
    const auto row = std::ranges::find(totals, scope, &store::sum_spend::row::key);
    return row == totals.end() ? spend_total{} : counted(row->used);
  };
  const auto node = used_by(node_scope(node_id));
  std::map<std::string, std::string> spent;
  for (const auto& a : kernel.agents) {
    const auto least = least_of(c, a);
    if (!least)
      continue;
    auto why = held("the agent's budget", a.budget.day,
                    used_by(agent_scope(kernel.kernel_id, a.agent_id)), *least);
    if (why.empty())
      why = held("the node's budget", c.node_settings.budget_day, node, *least);
    if (!why.empty())
      spent.emplace(a.agent_id, std::move(why));
  }
  return spent;
}

} // namespace boyd::queue
