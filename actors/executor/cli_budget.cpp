#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/money.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/chat_targets.hpp"
#include "boyd/queue/spend.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <utility>

/// The budgets of agents with a command line of their own: Boyd sees none of their calls, so that a
/// whole run is reserved before it begins and settled by what the program reports.
namespace boyd::executing {

namespace {

const config::agent_cli_executor* cli_of(self_pointer self) {
  const auto* agent = self->state.order.agent;
  return agent == nullptr ? nullptr : std::get_if<config::agent_cli_executor>(&agent->run);
}

std::string call_of(self_pointer self, int number) {
  const auto& row = self->state.order.work->row;
  return row.dispatch_id + "/" + std::to_string(row.fence) + "/" + std::to_string(number);
}

store::reserve_spend reservation(self_pointer self, const std::string& model) {
  const auto& s = self->state;
  const auto& row = s.order.work->row;
  store::reserve_spend r;
  r.call_id = call_of(self, 1);
  r.dispatch_id = row.dispatch_id;
  r.kernel_id = row.kernel_id;
  r.agent_id = row.agent_id;
  r.provider_id = cli_of(self)->adapter.name;
  r.model = model;
  r.limits = exec::day_scopes(*s.order.configuration, s.order.context->node_id, row.kernel_id,
                              row.agent_id, s.order.agent->budget.day);
  return r;
}

/// Why the run does not begin.
error over_day(const config::agent& agent, const store::reserve_spend::reply& r) {
  const auto& run = agent.budget.run;
  std::string what = "the day's budget of " + r.refused_scope +
                     " does not allow this run, which may " + "take " + std::to_string(run.tokens) +
                     " tokens and " + format_dollars(run.cost) + " dollars (budget.run)";
  for (const auto& total : r.totals)
    if (total.scope == r.refused_scope)
      what += ", " + std::to_string(total.tokens) + " tokens and " + format_dollars(total.cost) +
              " dollars of today are used or reserved";
  return {errc::limit_exceeded, std::move(what), "budget",
          "wait until 00:00 UTC, raise budget.day, or lower budget.run"};
}

bool tells_figures(const config::cli_adapter& adapter) {
  return std::ranges::any_of(adapter.events, [](const config::adapter_event& e) {
    return !e.input.empty() || !e.output.empty() || !e.cost.empty();
  });
}

store::usage_counts counted(const exec::cli_report& report) {
  const auto least = [](std::int64_t n) { return std::min(n, queue::most_of_a_call); };
  return {least(report.input), least(report.cached), least(report.output), least(report.reasoning),
          least(report.cost)};
}

/// What is reserved for a run.
store::usage_counts most_of_run(self_pointer self) {
  const auto& run = self->state.order.agent->budget.run;
  store::usage_counts most;
  most.input = std::min(run.tokens, queue::most_of_a_call);
  most.cost = std::min(run.cost, queue::most_of_a_call);
  return most;
}

void send(self_pointer self, store_request request) {
  // Sent, not asked: the attempt ends. What the store does not take stays reserved, which counts
  // the most that the run could have cost.
  caf::anon_send(self->state.order.services.store, std::move(request));
}

/// A run that did not tell what it used: a fiftieth of what was reserved for each event that showed
/// progress after its first one, which tells that it began.
store::usage_counts estimated(self_pointer self, std::uint64_t moves) {
  constexpr std::int64_t parts = 50;
  const auto most = most_of_run(self);
  const auto steps = static_cast<std::int64_t>(std::min<std::uint64_t>(moves, parts + 1)) - 1;
  const auto share = [&](std::int64_t n) { return n / parts * std::max<std::int64_t>(steps, 0); };
  store::usage_counts used;
  used.input = share(most.input);
  used.cost = share(most.cost);
  return used;
}

} // namespace

void reserve_run(self_pointer self, const config::agent_cli_executor& cli) {
  auto& s = self->state;
  auto most = reservation(self, cli.model);
  most.most = most_of_run(self);
  ask_store(self, s.order.services.store, std::move(most),
            [self, &cli](const result<store::reserve_spend::reply>& r) {
              auto& state = self->state;
              if (state.over)
                return;
              if (!r) { // no run without its reservation: the budgets fail closed
                // It may stand all the same, or be made when the store is back.
                store_request unused;
                unused.add(store::settle_spend{call_of(self, 1), {}});
                send(self, std::move(unused));
                return finish_unstarted(self, r.error(), failure_class::transient);
              }
              if (!r->granted)
                return finish_unstarted(self, over_day(*state.order.agent, *r),
                                        failure_class::policy);
              state.reserved = true;
              begin_agent_cli(self, cli);
            });
}

void settle_run(self_pointer self) {
  auto& s = self->state;
  const auto* cli = cli_of(self);
  if (cli == nullptr || !std::exchange(s.reserved, false))
    return;
  store::settle_spend end{call_of(self, 1), {}, {}};
  if (s.attempt) {
    const std::unique_lock lock(s.attempt->mutex);
    const auto* report = s.attempt->core.events();
    if (report != nullptr && report->told_figures)
      end.used = counted(*report); // zero that was told is zero
    else if (report != nullptr && tells_figures(cli->adapter))
      end.used = estimated(self, report->moves);
    if (report != nullptr)
      end.model = std::string(cut_characters(report->model, exec::event_word_characters));
  }
  store_request request;
  request.add(std::move(end));
  send(self, std::move(request));
}

} // namespace boyd::executing
