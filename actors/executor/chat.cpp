#include "actors/executor/options.hpp"
#include "actors/executor/parts.hpp"
#include "actors/librarian/core.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/exec/chat_targets.hpp"
#include "boyd/exec/context_level.hpp"
#include "boyd/plan/system_prompt.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/definitions.hpp"

#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

namespace boyd::executing {

namespace {

/// SOUL.md and GOAL.md.
constexpr std::size_t part_bytes = 1u << 20;

/// A part with too much to do is asked again after this long, and up to as long again: of thousands
/// of runs that begin at once none fails for that.
constexpr milliseconds ask_again = 200ms;

/// What is gathered before a conversation begins.
struct preparation {
  const config::chat_executor* chat = nullptr;
  conversing::targets_ptr targets;
  std::string soul;
  std::string goal;
  exec::conversation talk; ///< as it begins
};

using preparation_ptr = std::shared_ptr<preparation>;

void begin_prepared(self_pointer self, const preparation_ptr& p);

/// Why a preparation cannot go on now: everything from the beginning in a moment, or, where the
/// part did not answer, with the next attempt.
void put_off(self_pointer self, const error& why) {
  if (why.code != errc::overloaded)
    return finish_unstarted(self, why, failure_class::transient);
  const auto more = self->state.order.context->ports.random->unit();
  self->delayed_send(self, ask_again + std::chrono::duration_cast<milliseconds>(ask_again * more),
                     begin_run{});
}

/// Why the first target cannot do what the agent needs; empty: it can. The configuration's own word
/// was checked when it was loaded.
std::optional<error> unfit(const config::agent& agent, const exec::chat_target& first) {
  if (agent.tools.empty() || first.provider.capabilities.tools)
    return std::nullopt;
  const auto& id = first.provider.provider_id;
  return error{errc::refused, first.model + " does not support tools (according to boyd doctor)",
               "provider " + id,
               "use another model, or set `capabilities: {tools: true}` of the provider; check "
               "again: boyd doctor --provider " +
                   id};
}

void look_at_targets(self_pointer self, const preparation_ptr& p) {
  const auto& services = self->state.order.services;
  conversing::prepare(self, services.workspace, services.store, p->targets,
                      [self, p](const result<void>& ready) {
                        if (!ready && ready.error().code == errc::not_found)
                          return finish_unstarted(self, ready.error(), failure_class::environment);
                        if (!ready)
                          return put_off(self, ready.error());
                        gather_server_tools(self, [self, p] { begin_prepared(self, p); });
                      });
}

/// A file that agents write, and that may be missing.
void read_part(self_pointer self, const std::string& name, std::string& into,
               const std::function<void()>& then) {
  const auto home = self->state.order.context->kernel_home(self->state.order.work->row.kernel_id);
  ask<workspace_reply>(self, self->state.order.services.workspace,
                       workspace_request{{}, read_text_file{home + "/" + name, part_bytes, home}},
                       [self, name, &into, then](result<workspace_reply> r) {
                         if (!r && conversing::is_silence(r.error()))
                           return put_off(self, r.error());
                         if (r)
                           into = std::move(r->text);
                         else if (r.error().code != errc::not_found)
                           into = unreadable_text(name, r.error());
                         then();
                       });
}

void read_parts(self_pointer self, const preparation_ptr& p) {
  read_part(self, "SOUL.md", p->soul, [self, p] {
    read_part(self, "GOAL.md", p->goal, [self, p] { look_at_targets(self, p); });
  });
}

/// Without it each tool would fail on its own, and the model would have to guess why. Asked of the
/// file tools' workers: its mount may hang.
void look_at_workspace(self_pointer self, const preparation_ptr& p) {
  const auto& workspace = p->chat->workspace;
  if (workspace.empty() || !self->state.order.context->ports.workspaces)
    return read_parts(self, p);
  const std::string tool(tools::list_dir_name);
  ask<workspace_reply>(
      self, self->state.order.services.workspace,
      workspace_request{{},
                        boyd::run_tool{tools::list_dir_call{}, workspace, {{}, {tool}, 0}, {}, {}}},
      [self, p, workspace](result<workspace_reply> r) {
        if (!r)
          return put_off(self, r.error());
        if (r->outcome.is_error)
          return finish_unstarted(self,
                                  {errc::not_found, "cannot use the workspace: " + r->outcome.text,
                                   workspace, "create it, or set `workspace` of the executor"},
                                  failure_class::environment);
        read_parts(self, p);
      });
}

/// The system's part stays as it is from run to run, and what is read stands behind it in the
/// user's: the prompt caches of providers hold.
std::string system_message_of(self_pointer self, const preparation& p) {
  const auto& order = self->state.order;
  const auto* kernel = order.configuration->find_kernel(order.work->row.kernel_id);
  plan::system_prompt_parts parts;
  parts.instructions = p.chat->system;
  if (kernel != nullptr && !kernel->system_prompt.empty())
    parts.instructions += (parts.instructions.empty() ? "" : "\n\n") + kernel->system_prompt;
  parts.identity = p.soul;
  parts.goal = p.goal;
  return plan::make_system_prompt(parts).text;
}

void begin_recorded(self_pointer self, const preparation_ptr& p);

void begin_prepared(self_pointer self, const preparation_ptr& p) {
  auto& s = self->state;
  const auto& order = s.order;
  if (const auto why = unfit(*order.agent, p->targets->front()))
    return finish_unstarted(self, *why, failure_class::environment);
  const auto& row = order.work->row;
  for (const auto& t : *p->targets)
    s.secrets = config::with_secrets(std::move(s.secrets), {t.key});
  auto& c = p->talk;
  c.targets = std::move(*p->targets);
  auto system = system_message_of(self, *p);
  if (!system.empty())
    c.messages.push_back(model::system_message(system));
  c.messages.push_back(model::user_message(prompt_of(self)));
  c.schema_json = p->chat->schema_json;
  c.temperature = p->chat->temperature;
  c.max_output_tokens = p->chat->max_output_tokens;
  c.max_turns = p->chat->max_turns;
  c.budget = order.agent->budget.run;
  c.scopes = exec::day_scopes(*order.configuration, order.context->node_id, row.kernel_id,
                              row.agent_id, order.agent->budget.day);
  c.dispatch_id = row.dispatch_id;
  c.kernel_id = row.kernel_id;
  c.agent_id = row.agent_id;
  c.fence = row.fence;
  c.context_level = exec::name_of(exec::level_for(row.attempts_json));
  c.unit = [random = order.context->ports.random] { return random->unit(); };
  c.correct = [self](const std::string& answer) { return correction_for(self, answer); };
  give_tools(self, c);
  begin_recording(self, {std::move(system), c.tools_json}, [self, p] { begin_recorded(self, p); });
}

void begin_recorded(self_pointer self, const preparation_ptr& p) {
  const auto& order = self->state.order;
  auto options = options_for(*order.context, *order.agent, order.work->row);
  options.output_bytes = p->chat->output_bytes;
  options.wall_budget = order.agent->budget.run.wall;
  if (!p->chat->workspace.empty())
    options.base_directory = p->chat->workspace;
  options.work = std::move(p->talk);
  begin_attempt(self, std::move(options));
  tell_server_notes(self);
}

} // namespace

void begin_chat(self_pointer self, const config::chat_executor& chat) {
  auto& s = self->state;
  if (!s.order.context->ports.http)
    return finish_unstarted(self, {errc::refused, "model calls are not available here", {}, {}},
                            failure_class::environment);
  auto targets =
      exec::chat_targets(*s.order.configuration, chat.provider_id, chat.model, chat.fallback);
  if (!targets)
    return finish_unstarted(self, targets.error(), failure_class::environment);
  auto p = std::make_shared<preparation>();
  p->chat = &chat;
  p->targets = std::make_shared<std::vector<exec::chat_target>>(std::move(*targets));
  look_at_workspace(self, p);
}

void open_line(self_pointer self) {
  auto& s = self->state;
  const auto& row = s.order.work->row;
  s.calls.open({s.order.context, s.order.services.store, s.order.services.governor,
                row.kernel_id + "/" + row.agent_id, self->address(),
                [self](const conversing::dialogue_event& event) {
                  step(self, [&](exec::attempt_core& core, steady_time now) {
                    return core.on_talk(event, now);
                  });
                },
                [shared = s.attempt, clock = s.order.context->ports.clock](
                    const std::function<void(exec::dialogue&)>& part) {
                  const std::lock_guard lock(shared->mutex);
                  shared->core.hear(part, clock->steady());
                }});
}

namespace {

/// The call's turn is on record before it is made; what was stopped meanwhile is not made.
void call_recorded(self_pointer self, exec::effect::ask_place place) {
  tell_progress(self, "run",
                fmt::format("turn {}: asking {} ({})", place.turn, place.model, place.provider_id));
  const auto turn = place.turn;
  const auto call = place.call;
  self->state.held_call = std::move(place);
  keep_turns(self, turn, [self, call] {
    auto& held = self->state.held_call;
    if (!held || held->call != call)
      return;
    exec::chat_effect now = std::move(*held);
    held.reset();
    self->state.calls.perform(self, now);
  });
}

/// True: the call was not made, and there is no place to give back.
bool drops_held(self_pointer self, const exec::chat_effect& any) {
  const auto* drop = std::get_if<exec::effect::drop_place>(&any);
  auto& held = self->state.held_call;
  if (drop == nullptr || !held || held->call != drop->call)
    return false;
  held.reset();
  return true;
}

} // namespace

void perform_talk(self_pointer self, exec::chat_effect& any) {
  const auto& row = self->state.order.work->row;
  if (const auto* n = std::get_if<exec::effect::note_turn>(&any)) {
    note_turn(self, n->json);
    note_for_record(self, n->json);
  } else if (const auto* warning = std::get_if<exec::effect::warn>(&any)) {
    spdlog::warn("agent {}/{}, dispatch {}: {}", row.kernel_id, row.agent_id, row.dispatch_id,
                 warning->text);
  } else if (auto* place = std::get_if<exec::effect::ask_place>(&any)) {
    call_recorded(self, std::move(*place));
  } else if (!drops_held(self, any) && !self->state.calls.perform(self, any)) {
    perform_action(self, any);
  }
}

} // namespace boyd::executing
