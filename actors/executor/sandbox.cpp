#include "boyd/exec/sandbox.hpp"

#include "actors/executor/parts.hpp"
#include "boyd/queue/usage_json.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::executing {

std::shared_ptr<const config::agent> agent_now(const run_order& order) {
  return order.present ? order.present->get()
                       : std::shared_ptr<const config::agent>(order.configuration, order.agent);
}

result<void> put_into_sandbox(self_pointer self, process_spec& process,
                              std::vector<std::string> writable, std::vector<std::string> readable,
                              std::vector<std::string> closed) {
  auto& s = self->state;
  const auto agent = agent_now(s.order);
  const auto who = identity_of(s.order, s.session_id);
  exec::sandbox_places places{std::move(writable), std::move(readable),
                              exec::hidden_from_agents(*s.order.configuration, who.home),
                              exec::read_only_for_agents(*s.order.configuration, who.home),
                              std::move(closed)};
  const auto& ports = s.order.context->ports;
  const auto report =
      exec::confine(process, agent->sandbox, ports.processes->sandbox(), places, who);
  if (!report)
    return fail(report.error());
  if (process.sandbox && !process.sandbox->scratch.empty())
    s.scratch = process.sandbox->scratch;
  if (s.sandbox == *report)
    return {};
  s.sandbox = *report;
  if (report->mode == "limits")
    spdlog::warn("agent {}/{}, dispatch {}: {}", who.kernel_id, who.agent_id, who.dispatch_id,
                 report->lacking.empty() ? std::string() : report->lacking.front());
  note_turn(self, R"({"event":"sandbox","sandbox":)" + queue::to_json(*report) + "}");
  return {};
}

void judge_commands(self_pointer self, run_outcome& outcome) {
  const auto& s = self->state;
  if (s.not_started.empty() || s.command_started || !is_success(outcome))
    return;
  outcome.execution = execution_verdict::failed;
  outcome.failure = failure_class::environment;
  outcome.error = "none of its commands could be started: " + s.not_started;
}

void tell_sandbox(self_pointer self, run_outcome& outcome) {
  auto& s = self->state;
  // The child makes the sandbox or does not become the program: one that began was in it.
  if (s.sandbox && !s.any_started && s.processes.empty() && !s.command)
    s.sandbox->in_force = false;
  outcome.usage.sandbox = std::exchange(s.sandbox, std::nullopt);
  if (!s.scratch.empty())
    exec::remove_scratch(*s.order.context->ports.processes, std::exchange(s.scratch, {}));
}

} // namespace boyd::executing
