#include "actors/executor/options.hpp"
#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/exec/command_line.hpp"
#include "boyd/exec/redact_outcome.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/definitions.hpp"
#include "boyd/tools/perform.hpp"
#include "boyd/tools/policy.hpp"

#include <caf/send.hpp>

#include <memory>
#include <utility>

namespace boyd::executing {

namespace {

/// Output of a command of a tool that is kept before the result is made of it.
constexpr std::size_t command_output_bytes = 1u << 20;
/// A file tool that has not answered for so long is given up: its disk hangs.
constexpr milliseconds tool_patience = 2min;

/// Results are redacted before the model sees them: what it is sent has left the machine.
void answer(self_pointer self, std::uint64_t number, const tools::tool_outcome& outcome) {
  const auto text = config::redact_text(outcome.text, self->state.secrets);
  step(self, [&](exec::attempt_core& core, steady_time now) {
    return core.on_talk(
        [&](exec::chat_loop& loop) { return loop.on_tool_result(number, text, outcome.is_error); },
        now);
  });
}

tools::permission permission_of(self_pointer self, const tools::tool_call& call) {
  const auto agent = agent_now(self->state.order);
  tools::permission p{agent->policy, agent->tools, 0};
  if (const auto action = tools::action_of(call, workspace_of(self->state.order)))
    p.rule = tools::decide(*action, agent->policy, agent->tools).rule;
  return p;
}

tools::result_place place_of(self_pointer self, std::uint64_t step) {
  const auto& s = self->state;
  const auto& row = s.order.work->row;
  return {s.order.context->layout().execution(row.dispatch_id) + "/results",
          std::to_string(row.fence) + "-" + std::to_string(step), s.secrets};
}

void ask_workspace(self_pointer self, std::uint64_t step, workspace_request request) {
  ask<workspace_reply>(
      self, self->state.order.services.workspace, std::move(request),
      [self, step](result<workspace_reply> r) {
        if (!r)
          return answer(self, step, tools::failed_outcome(r.error()));
        answer(self, step, r->outcome);
      },
      tool_patience);
}

void run_file_tool(self_pointer self, std::uint64_t step, const tools::tool_call& call) {
  auto permission = permission_of(self, call);
  auto& replaces = self->state.replaces;
  if (replaces && replaces->first == step)
    permission.before = std::move(replaces->second);
  ask_workspace(
      self, step,
      workspace_request{{},
                        boyd::run_tool{std::get<tools::file_call>(call),
                                       workspace_of(self->state.order), std::move(permission),
                                       place_of(self, step), self->state.no_more_tools}});
}

void run_command(self_pointer self, std::uint64_t step, const tools::run_command_call& call) {
  auto& s = self->state;
  const auto who = identity_of(s.order, s.session_id);
  auto environment = exec::build_environment({}, who, s.order.context->environment);
  if (!environment)
    return answer(self, step, tools::failed_outcome(environment.error()));
  const auto workspace = workspace_of(s.order);
  auto command =
      tools::command_of(call, workspace, std::move(*environment), s.order.agent->timeout);
  if (!command)
    return answer(self, step, tools::failed_outcome(command.error()));
  if (auto confined = put_into_sandbox(self, command->process, {workspace}); !confined) {
    s.not_started = to_string(confined.error());
    return answer(self, step, tools::failed_outcome(confined.error()));
  }
  program_order order{std::move(command->process), command->timeout, command_output_bytes};
  order.merges = true;
  order.grace = 0ms;
  order.points = run_points;
  s.command = tool_command{step, std::make_unique<program>(s.order.context->ports.processes,
                                                           std::move(order), now_of(self),
                                                           program::tells(self->address(), step))};
  on_command_look(self, {{}, step});
}

void run_tool(self_pointer self, const exec::effect::run_tool& e) {
  if (is_server_tool(e.call.name))
    return call_server_tool(self, e, [self, step = e.step](std::string text, bool is_error) {
      ask_workspace(
          self, step,
          workspace_request{{}, keep_result{std::move(text), is_error, place_of(self, step)}});
    });
  const auto call = tools::read_call(e.call.name, e.call.arguments);
  if (!call)
    return answer(self, e.step, tools::failed_outcome(call.error()));
  const auto tell = [self, step = e.step](std::string text, bool is_error) {
    answer(self, step, tools::tool_outcome{std::move(text), is_error, {}, 0});
  };
  if (const auto* entry = std::get_if<tools::remember_call>(&*call))
    return remember(self, *entry, tell);
  if (const auto* question = std::get_if<tools::recall_call>(&*call))
    return recall(self, *question, tell);
  if (const auto* skill = std::get_if<tools::read_skill_call>(&*call))
    return read_skill(self, *skill, tell);
  if (const auto* command = std::get_if<tools::run_command_call>(&*call);
      command != nullptr && self->state.bound && self->state.bound->step == e.step)
    return check_bound(self, e.step, e.call,
                       [self, step = e.step, what = *command] { run_command(self, step, what); });
  if (const auto* command = std::get_if<tools::run_command_call>(&*call))
    return run_command(self, e.step, *command);
  run_file_tool(self, e.step, *call);
}

/// An action of which there would be no record does not happen, and its run ends.
void end_unrecorded(self_pointer self, const error& why) {
  step(self, [&](exec::attempt_core& core, steady_time now) {
    return core.fail_run(
        "cannot record the decision about an action, so nothing was done: " + to_string(why),
        conversing::is_silence(why) ? failure_class::transient : failure_class::environment, now);
  });
}

/// Output may have been cut in the middle of a secret.
std::string told(self_pointer self, const std::string& output) {
  run_outcome said;
  said.output = output;
  said.output_cut = 1;
  return exec::without_secrets(std::move(said), self->state.secrets).output;
}

std::string kernel_home_of(self_pointer self) {
  const auto& order = self->state.order;
  return order.context->kernel_home(order.work->row.kernel_id);
}

std::vector<std::string> protected_files_of(self_pointer self) {
  const auto& order = self->state.order;
  const auto* kernel = order.configuration->find_kernel(order.work->row.kernel_id);
  return kernel != nullptr ? kernel->protected_files : std::vector<std::string>{};
}

} // namespace

std::string workspace_of(const run_order& order) {
  const auto& chat = std::get<config::chat_executor>(order.agent->run);
  return chat.workspace.empty() ? order.context->kernel_home(order.work->row.kernel_id)
                                : chat.workspace;
}

void give_tools(self_pointer self, exec::conversation& c) {
  auto offered = tools::offered(self->state.order.agent->tools);
  offer_server_tools(self, offered);
  c.tools_json = tools::to_tools_json(offered);
  auto alone = std::make_shared<action_rate>();
  // What a person has forbidden since the run began is forbidden now.
  c.judge = [present = self->state.order.present, own = agent_now(self->state.order), alone,
             clock = self->state.order.context->ports.clock, hosts = server_hosts(self),
             workspace = workspace_of(self->state.order), kernel_home = kernel_home_of(self),
             closed = protected_files_of(self)](const model::tool_call& t) {
    const auto agent = present ? present->get() : own;
    auto& rate = present ? present->actions() : *alone;
    if (!rate.admits(agent->policy.actions_per_minute, clock->steady()))
      return exec::judgement{config::policy_decision::deny,
                             "more than " + std::to_string(agent->policy.actions_per_minute) +
                                 " actions in a minute (policy.actions_per_minute)"};
    if (is_server_tool(t.name))
      return judge_server_tool(t.name, hosts, *agent);
    const auto call = tools::read_call(t.name, t.arguments);
    if (!call) // nothing will happen: the model is told what is wrong with its words
      return exec::judgement{config::policy_decision::allow, "not a valid tool call"};
    const auto action = tools::action_of(*call, workspace);
    if (!action)
      return exec::judgement{config::policy_decision::deny, to_string(action.error())};
    auto decision = tools::decide(*action, agent->policy, agent->tools);
    if (auto shut = tools::decide_protected(*action, workspace, kernel_home, closed))
      decision = std::move(*shut);
    return exec::judgement{decision.what, std::move(decision.reason)};
  };
}

void perform_action(self_pointer self, exec::chat_effect& any) {
  auto& s = self->state;
  if (const auto* tool = std::get_if<exec::effect::run_tool>(&any)) {
    when_recorded(self, tool->step, [self, e = *tool](const std::optional<error>& why) {
      if (why)
        end_unrecorded(self, *why);
      else
        run_tool(self, e);
    });
  } else if (const auto* stopped = std::get_if<exec::effect::stop_step>(&any)) {
    if (s.command && s.command->step == stopped->step)
      s.command->running->kill();
    if (s.held_step && s.held_step->step == stopped->step)
      s.held_step.reset();
    stop_server_tool(self, stopped->step);
    forget_question(self, stopped->step);
  } else if (const auto* question = std::get_if<exec::effect::ask_person>(&any)) {
    ask_person(self, *question);
  }
}

void on_command_ended(self_pointer self, const program_ended& m) {
  auto& s = self->state;
  if (!s.command || s.command->step != m.number)
    return;
  const auto end = s.command->running->outcome(m.exit);
  s.command.reset();
  if (end.exit.started)
    s.command_started = s.any_started = true;
  else
    s.not_started = end.exit.start_error;
  auto place = place_of(self, m.number);
  place.missing = end.cut;
  ask_workspace(
      self, m.number,
      workspace_request{
          {},
          keep_result{tools::command_text(end.exit, told(self, end.output), end.timed_out),
                      end.timed_out || !end.exit.started || end.exit.exit_code != 0,
                      std::move(place)}});
}

void on_command_look(self_pointer self, const program_look& m) {
  auto& s = self->state;
  if (!s.command || s.command->step != m.number)
    return;
  const auto next = s.command->running->look(now_of(self));
  if (next)
    return self->delayed_send(self, *next, program_look{{}, m.number});
  s.command.reset();
  answer(self, m.number, tools::failed_outcome(next.error()));
}

} // namespace boyd::executing
