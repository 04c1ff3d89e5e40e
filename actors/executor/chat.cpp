#include "actors/executor/options.hpp"
#include "actors/executor/parts.hpp"
#include "actors/librarian/core.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/chat_targets.hpp"
#include "boyd/exec/context_level.hpp"
#include "boyd/faults/faulty_ports.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/model/probe.hpp"
#include "boyd/plan/system_prompt.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/queue/spend.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/definitions.hpp"

#include <caf/send.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace boyd::executing {

namespace {

/// SOUL.md, GOAL.md and a file with a key.
constexpr std::size_t part_bytes = 1u << 20;

/// A part with too much to do is asked again after this long, and up to as long again: of thousands
/// of runs that begin at once none fails for that.
constexpr milliseconds ask_again = 200ms;

/// What is gathered before a conversation begins.
struct preparation {
  const config::chat_executor* chat = nullptr;
  std::vector<exec::chat_target> targets;
  std::string soul;
  std::string goal;
  /// Files that are left to read, and what takes their text.
  struct wanted {
    std::string path;
    std::string kernel_home; ///< of a file that agents write, and that may be missing; else empty
    std::function<void(std::string)> take;
  };
  std::vector<wanted> files;
  std::size_t next = 0;
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

bool says_nothing(const error& e) {
  return e.code == errc::overloaded || e.code == errc::actor_down || e.code == errc::timed_out;
}

void take_findings(exec::chat_target& target, const store::get_facts::reply& facts) {
  if (const auto found = facts.find(target.model); found != facts.end())
    model::apply(model::found_in(found->second, target.provider.base_url), target.provider);
}

/// Why the first target cannot do what the agent needs; empty: it can. The configuration's own word
/// was checked when it was loaded.
std::optional<error> unfit(const config::agent& agent, const exec::chat_target& first) {
  if (agent.tools.empty() || first.provider.capabilities.tools)
    return std::nullopt;
  const auto& id = first.provider.provider_id;
  return error{errc::refused, first.model + " takes no tools, as boyd doctor found",
               "provider " + id,
               "another model, or `capabilities: {tools: true}` at the provider; look again: boyd "
               "doctor --provider " +
                   id};
}

/// What `boyd doctor --provider` found stands for what the configuration leaves open.
void read_findings(self_pointer self, const preparation_ptr& p) {
  store_request request;
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < p->targets.size(); ++i)
    if (const auto& provider = p->targets[i].provider; exec::leaves_open(provider)) {
      request.operations.emplace_back(
          store::get_facts{model::findings_scope(provider.provider_id)});
      asked.push_back(i);
    }
  if (asked.empty())
    return gather_server_tools(self, [self, p] { begin_prepared(self, p); });
  ask<store_reply>(self, self->state.order.services.store, std::move(request),
                   [self, p, asked](result<store_reply> r) {
                     if (!r)
                       return put_off(self, r.error());
                     for (std::size_t i = 0; i < std::min(asked.size(), r->values.size()); ++i)
                       if (const auto facts = reply_of<store::get_facts>(r->values[i]))
                         take_findings(p->targets[asked[i]], *facts);
                     gather_server_tools(self, [self, p] { begin_prepared(self, p); });
                   });
}

void read_next(self_pointer self, const preparation_ptr& p) {
  if (p->next == p->files.size())
    return read_findings(self, p);
  const auto& file = p->files[p->next];
  ask<workspace_reply>(
      self, self->state.order.services.workspace,
      workspace_request{{}, read_text_file{file.path, part_bytes, file.kernel_home}},
      [self, p](result<workspace_reply> r) {
        const auto& wanted = p->files[p->next];
        if (!r && says_nothing(r.error()))
          return put_off(self, r.error());
        if (!r && wanted.kernel_home.empty())
          return finish_unstarted(self, r.error(), failure_class::environment);
        if (r)
          wanted.take(std::move(r->text));
        else if (r.error().code != errc::not_found)
          wanted.take(
              unreadable_text(wanted.path.substr(wanted.kernel_home.size() + 1), r.error()));
        ++p->next;
        read_next(self, p);
      });
}

/// Without it each tool would fail on its own, and the model would have to guess why. Asked of the
/// file tools' workers: its mount may hang.
void look_at_workspace(self_pointer self, const preparation_ptr& p) {
  const auto& workspace = p->chat->workspace;
  if (workspace.empty() || !self->state.order.context->ports.workspaces)
    return read_next(self, p);
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
                                  {errc::not_found,
                                   "the workspace cannot be used: " + r->outcome.text, workspace,
                                   "make it, or set `workspace` of the executor"},
                                  failure_class::environment);
        read_next(self, p);
      });
}

std::vector<store::reserve_spend::limit> scopes_of(const run_order& order) {
  const auto& row = order.work->row;
  const auto& day = order.agent->budget.day;
  const auto& node = order.configuration->node_settings.budget_day;
  return {{queue::agent_scope(row.kernel_id, row.agent_id), day.tokens, day.cost},
          {queue::node_scope(order.context->node_id), node.tokens, node.cost}};
}

std::vector<model::message_json> messages_of(const run_order& order, const preparation& p,
                                             exec::context_level level) {
  const auto& row = order.work->row;
  const auto* kernel = order.configuration->find_kernel(row.kernel_id);
  plan::system_prompt_parts parts;
  parts.instructions = p.chat->system;
  if (kernel != nullptr && !kernel->system_prompt.empty())
    parts.instructions += (parts.instructions.empty() ? "" : "\n\n") + kernel->system_prompt;
  parts.identity = p.soul;
  parts.goal = p.goal;
  std::vector<model::message_json> messages;
  if (auto system = plan::make_system_prompt(parts).text; !system.empty())
    messages.push_back(model::system_message(system));
  messages.push_back(
      model::user_message(exec::shrink_prompt(row.prompt, row.metadata_json, level)));
  return messages;
}

void begin_prepared(self_pointer self, const preparation_ptr& p) {
  auto& s = self->state;
  const auto& order = s.order;
  const auto& row = order.work->row;
  if (const auto why = unfit(*order.agent, p->targets.front()))
    return finish_unstarted(self, *why, failure_class::environment);
  const auto level = exec::level_for(row.attempts_json);
  exec::conversation c;
  for (const auto& t : p->targets)
    s.secrets = config::with_secrets(std::move(s.secrets), {t.key});
  c.targets = std::move(p->targets);
  c.messages = messages_of(order, *p, level);
  c.schema_json = p->chat->schema_json;
  c.temperature = p->chat->temperature;
  c.max_output_tokens = p->chat->max_output_tokens;
  c.max_turns = p->chat->max_turns;
  c.budget = order.agent->budget.run;
  c.scopes = scopes_of(order);
  c.dispatch_id = row.dispatch_id;
  c.kernel_id = row.kernel_id;
  c.agent_id = row.agent_id;
  c.fence = row.fence;
  c.context_level = exec::name_of(level);
  c.unit = [random = order.context->ports.random] { return random->unit(); };
  give_tools(self, c);
  auto options = options_for(*order.context, *order.agent, row);
  options.output_bytes = p->chat->output_bytes;
  options.wall_budget = order.agent->budget.run.wall;
  if (!p->chat->workspace.empty())
    options.base_directory = p->chat->workspace;
  options.work = std::move(c);
  begin_attempt(self, std::move(options));
  tell_server_notes(self);
}

/// An event of the conversation; late ones find no attempt or change nothing.
template <class Event>
void talk(self_pointer self, Event event) {
  if (!self->state.attempt)
    return;
  step(self, [&](exec::attempt_core& core, steady_time now) { return core.on_talk(event, now); });
}

void call_model(self_pointer self, exec::effect::call_model& e) {
  auto& s = self->state;
  const auto call = e.call;
  const caf::actor_addr me = self->address();
  const auto ended = [me, call](const result<void>& transport) {
    if (auto strong = caf::actor_cast<caf::actor>(me))
      caf::anon_send(strong, model_call_ended{{}, call, transport});
  };
  if (auto passed = faults::pass("models.call"); !passed)
    return ended(fail(std::move(passed.error())));
  auto shared = s.attempt;
  auto clock = s.order.context->ports.clock;
  http_events events;
  events.on_head = [shared, clock, call](const http_head& head) {
    std::lock_guard lock(shared->mutex);
    shared->core.hear([&](exec::chat_loop& loop) { loop.on_head(call, head); }, clock->steady());
  };
  events.on_body = [shared, clock, call](std::string_view bytes) {
    std::lock_guard lock(shared->mutex);
    shared->core.hear([&](exec::chat_loop& loop) { loop.on_body(call, bytes); }, clock->steady());
  };
  events.on_end = ended;
  s.model_call.emplace(call,
                       s.order.context->ports.http->start(
                           std::move(e.request),
                           faults::watched(std::move(events), faults::point("models.answer"))));
}

void reserve(self_pointer self, exec::effect::reserve& e) {
  ask_store(self, self->state.order.services.store, std::move(e.what),
            [self, call = e.call](const result<store::reserve_spend::reply>& r) {
              talk(self, [&](exec::chat_loop& loop) { return loop.on_reserved(call, r); });
            });
}

void settle(self_pointer self, exec::effect::settle_spend& e) {
  // Sent, not asked: the actor may be gone before the answer. What the store does not take stays
  // reserved, which counts the most that the call could have cost.
  store_request request;
  request.operations.emplace_back(std::move(e.what));
  caf::anon_send(self->state.order.services.store, std::move(request));
}

} // namespace

void begin_chat(self_pointer self, const config::chat_executor& chat) {
  auto& s = self->state;
  if (!s.order.context->ports.http)
    return finish_unstarted(self, {errc::refused, "this node calls no models", {}, {}},
                            failure_class::environment);
  auto targets =
      exec::chat_targets(*s.order.configuration, chat.provider_id, chat.model, chat.fallback);
  if (!targets)
    return finish_unstarted(self, targets.error(), failure_class::environment);
  auto p = std::make_shared<preparation>();
  p->chat = &chat;
  p->targets = std::move(*targets);
  const auto home = s.order.context->kernel_home(s.order.work->row.kernel_id);
  auto* raw = p.get();
  p->files.push_back({home + "/SOUL.md", home, [raw](std::string t) { raw->soul = std::move(t); }});
  p->files.push_back({home + "/GOAL.md", home, [raw](std::string t) { raw->goal = std::move(t); }});
  for (std::size_t i = 0; i < p->targets.size(); ++i)
    if (const auto& file = p->targets[i].provider.api_key_file; !file.empty())
      p->files.push_back(
          {file, {}, [raw, i](const std::string& t) { raw->targets[i].key = exec::key_in(t); }});
  look_at_workspace(self, p);
}

void perform_talk(self_pointer self, exec::chat_effect& any) {
  auto& s = self->state;
  const auto& governor = s.order.services.governor;
  const auto me = [self] { return place_holder_actor(executor_impl(self)); };
  const auto& row = s.order.work->row;
  if (auto* e = std::get_if<exec::effect::ask_place>(&any)) {
    place_wish wish{{},      e->provider_id, row.kernel_id + "/" + row.agent_id,
                    e->call, e->tokens,      e->model};
    self->send(governor, place_request{{}, std::move(wish), me()});
  } else if (auto* d = std::get_if<exec::effect::drop_place>(&any)) {
    self->send(governor, place_release{{}, d->provider_id, d->call, {}, me()});
  } else if (auto* l = std::get_if<exec::effect::leave_place>(&any)) {
    self->send(
        governor,
        place_release{
            {}, l->provider_id, l->call, call_ended{l->tokens, std::move(l->trouble)}, me()});
  } else if (auto* r = std::get_if<exec::effect::reserve>(&any)) {
    reserve(self, *r);
  } else if (auto* paid = std::get_if<exec::effect::settle_spend>(&any)) {
    settle(self, *paid);
  } else if (auto* c = std::get_if<exec::effect::call_model>(&any)) {
    call_model(self, *c);
  } else if (std::holds_alternative<exec::effect::cancel_call>(any)) {
    if (s.model_call)
      s.order.context->ports.http->cancel(s.model_call->second);
    s.model_call.reset();
  } else if (auto* w = std::get_if<exec::effect::wait_repeat>(&any)) {
    self->delayed_send(self, w->delay, talk_again{{}, w->call});
  } else if (auto* n = std::get_if<exec::effect::note_turn>(&any)) {
    note_turn(self, n->json);
  } else if (auto* warning = std::get_if<exec::effect::warn>(&any)) {
    spdlog::warn("agent {}/{}, dispatch {}: {}", row.kernel_id, row.agent_id, row.dispatch_id,
                 warning->text);
  } else {
    perform_action(self, any);
  }
}

void on_place(self_pointer self, const place_answer& m) {
  talk(self, [&](exec::chat_loop& loop) { return loop.on_place(m.call, m.why); });
}

void on_call_ended(self_pointer self, const model_call_ended& m) {
  if (self->state.model_call && self->state.model_call->first == m.call)
    self->state.model_call.reset();
  talk(self, [&](exec::chat_loop& loop) { return loop.on_call_end(m.call, m.transport); });
}

void on_talk_again(self_pointer self, const talk_again& m) {
  talk(self, [&](exec::chat_loop& loop) { return loop.on_repeat(m.call); });
}

} // namespace boyd::executing
