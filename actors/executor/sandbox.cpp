#include "boyd/exec/sandbox.hpp"

#include "actors/executor/parts.hpp"

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
  auto told = report->json();
  if (told == s.sandbox)
    return {};
  s.sandbox = std::move(told);
  if (report->mode == "limits")
    spdlog::warn("agent {}/{}, dispatch {}: {}", who.kernel_id, who.agent_id, who.dispatch_id,
                 report->lacking.empty() ? std::string() : report->lacking.front());
  note_turn(self, R"({"event":"sandbox","sandbox":)" + s.sandbox + "}");
  return {};
}

void note_program(self_pointer self, const process_exit& end) {
  self->state.any_started = self->state.any_started || end.started;
}

void note_unstarted(self_pointer self, std::string why) {
  self->state.not_started = std::move(why);
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
  if (!s.any_started && s.processes.empty() && !s.command && s.sandbox.ends_with('}'))
    s.sandbox.insert(s.sandbox.size() - 1, R"(,"in_force":false)");
  if (!s.sandbox.empty() && outcome.usage_json.ends_with('}'))
    outcome.usage_json.insert(outcome.usage_json.size() - 1,
                              (outcome.usage_json.size() > 2 ? ",\"sandbox\":" : "\"sandbox\":") +
                                  s.sandbox);
  s.sandbox.clear();
  if (!s.scratch.empty())
    exec::remove_scratch(*s.order.context->ports.processes, std::exchange(s.scratch, {}));
}

} // namespace boyd::executing
