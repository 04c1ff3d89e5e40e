#include "actors/gateway/actor.hpp"

#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/config/reload.hpp"
#include "boyd/core/text.hpp"
#include "boyd/faults/points.hpp"

#include <caf/actor_system.hpp>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd {

namespace gateway_impl {

namespace {

using handler = void (*)(exchange_ptr);

/// Names with blanks between them.
using names = const char*;

/// The body is the handler's own business.
constexpr names any_member = nullptr;

struct route {
  const char* method;
  const char* path;
  handler handle;
  names parameters = ""; ///< of the query
  names members = "";    ///< of the body; each is a text
};

void get_health(exchange_ptr x) {
  x->reply("health", {{"ok", true}});
}

void post_reload(exchange_ptr x) {
  const auto& p = x->self->state.parts;
  if (!p.context->parse_configuration)
    return x->fail_with({errc::refused,
                         "no node is running, so there is nothing to reload",
                         {},
                         "start the node: boyd node"});
  workspace_request read;
  read.what = read_configuration{p.configuration->path};
  ask<workspace_reply>(x->self, p.workspace, std::move(read), [x](result<workspace_reply> r) {
    if (!r)
      return x->fail_with(r.error());
    const auto& parts = x->self->state.parts;
    const auto& loaded = r->configuration;
    if (!loaded)
      return x->fail_with(loaded.error());
    const json body{{"reloaded", true},
                    {"changes", config::changes(*parts.configuration, **loaded)},
                    {"restart_needed", config::waiting_for_restart(*parts.started_with, **loaded)}};
    // This gateway may be one of the parts that are started anew: who does that answers.
    x->answered = true;
    x->promise.delegate(parts.tree, reload_request{{}, *loaded, x->response("reload", body)});
  });
}

/// What asks by GET through the control socket is served before it comes here.
void get_events(exchange_ptr x) {
  x->fail_with({errc::refused, "events are available only as a stream", x->request.path,
                "use GET on the control socket"});
}

constexpr route routes[] = {
    {"GET", "/healthz", get_health},
    {"GET", "/readyz", get_ready},
    {"GET", "/api/v1/status", get_status},
    {"GET", "/api/v1/agents", get_agents, "kernel"},
    {"GET", "/api/v1/next", get_next, "kernel agent limit"},
    {"GET", "/api/v1/actors", get_actors},
    {"GET", "/api/v1/dispatches", list_dispatches, "kernel cycle agent status since limit before"},
    {"GET", "/api/v1/cycles", list_cycles, "kernel limit"},
    {"POST", "/api/v1/cycles", trigger, "", "kernel trigger"},
    {"GET", "/api/v1/events", get_events},
    {"GET", "/api/v1/state", get_state, "kernel path at"},
    {"GET", "/api/v1/state/log", get_state_log, "kernel path limit"},
    {"GET", "/api/v1/state/diff", get_state_diff, "kernel from to"},
    {"GET", "/api/v1/memory", get_memory, "kernel"},
    {"POST", "/api/v1/memory/recall", recall, "", any_member},
    {"POST", "/api/v1/memory/append", append_to_memory, "", "kernel file section text"},
    {"POST", "/api/v1/memory/import", import_to_memory, "", any_member},
    {"POST", "/api/v1/memory/compact", compact_memory_files, "", "kernel apply"},
    {"GET", "/api/v1/memory/policy", judge_memory_items, "kernel"},
    {"POST", "/api/v1/memory/policy", apply_memory_policy, "", any_member},
    {"POST", "/api/v1/memory/policy/undo", undo_memory_policy, "", "kernel item"},
    {"POST", "/api/v1/memory/policy/replay", replay_with_policy, "wait", any_member},
    {"GET", "/api/v1/knowledge", get_knowledge, "question subject from to type since limit depth"},
    {"POST", "/api/v1/improvements", record_improvement, "", any_member},
    {"GET", "/api/v1/skills", list_skills, "kernel texts"},
    {"POST", "/api/v1/skills", import_skill, "", "kernel text"},
    {"GET", "/api/v1/context/bank", list_bank, "kernel"},
    {"GET", "/api/v1/why", get_why, "kernel agent at"},
    {"GET", "/api/v1/plan", get_plan, "kernel agent"},
    {"GET", "/api/v1/context", list_context, "kernel"},
    {"POST", "/api/v1/context", change_context, "", any_member},
    {"POST", "/api/v1/context/read", read_context_of, "", any_member},
    {"POST", "/api/v1/context/resolve", resolve_context, "", any_member},
    {"POST", "/api/v1/cleanup", clean_up, "", "apply"},
    {"GET", "/api/v1/cost", get_cost, "by from to kernel"},
    {"POST", "/api/v1/cost/release", release_cost, "", "id used_tokens used_cost reason force"},
    {"GET", "/api/v1/providers", list_providers},
    {"GET", "/api/v1/approvals", list_approvals, "kernel state limit"},
    {"GET", "/api/v1/tools", list_tools, "server connect wait"},
    {"POST", "/api/v1/tools/call", call_tool, "wait", "tool arguments"},
    {"POST", "/api/v1/tools/trust", trust_tools, "wait", "server workspace hash"},
    {"POST", "/api/v1/tools/forget", forget_tools, "wait", "server workspace"},
    {"POST", "/api/v1/pause", pause, "", "kernel agent reason"},
    {"POST", "/api/v1/resume", resume, "", "kernel agent reason"},
    {"POST", "/api/v1/reload", post_reload},
    {"GET", "/api/v1/chaos", get_chaos},
    {"POST", "/api/v1/chaos", inject_fault, "", any_member},
    {"POST", "/api/v1/chaos/clear", clear_faults},
};

/// The rest of `path` after `prefix`, or nothing.
std::optional<std::string> after(const std::string& path, std::string_view prefix) {
  if (path.size() <= prefix.size() || path.compare(0, prefix.size(), prefix) != 0)
    return std::nullopt;
  return path.substr(prefix.size());
}

bool ends_with(std::string& text, std::string_view suffix) {
  if (text.size() <= suffix.size() ||
      text.compare(text.size() - suffix.size(), suffix.size(), suffix) != 0)
    return false;
  text.resize(text.size() - suffix.size());
  return true;
}

using item_handler = void (*)(exchange_ptr, const std::string& id);

/// Routes with an id between `prefix` and `suffix`; of several that fit, the first.
struct item_route {
  const char* method;
  const char* prefix;
  const char* suffix;
  item_handler handle;
  names parameters = "";
  names members = "";
};

constexpr item_route item_routes[] = {
    {"POST", "/api/v1/dispatches/", "/retry", retry_dispatch, "kernel"},
    {"POST", "/api/v1/dispatches/", "/cancel", cancel_dispatch, "kernel"},
    {"GET", "/api/v1/dispatches/", "/logs", show_logs, "kernel out err turns run"},
    {"POST", "/api/v1/agents/", "/run", run_agent, "", "kernel message"},
    {"POST", "/api/v1/actors/", "/restart", restart_actor},
    {"POST", "/api/v1/actors/", "/unpark", unpark_actor},
    {"POST", "/api/v1/providers/", "/probe", probe_provider, "model wait"},
    {"POST", "/api/v1/approvals/", "/approve", approve, "", "hash note"},
    {"POST", "/api/v1/approvals/", "/reject", reject, "", "hash note"},
    {"GET", "/api/v1/executions/", "/explain", explain_run, "kernel context lifecycle facts graph"},
    {"GET", "/api/v1/executions/", "/replay", replay_run, "kernel texts"},
    {"POST", "/api/v1/executions/", "/reevaluate", reevaluate, "kernel wait", "executor model"},
    {"POST", "/api/v1/skills/", "/approve", approve_skill, "", "kernel hash reason"},
    {"POST", "/api/v1/skills/", "/draft", draft_skill, "wait",
     "kernel text provider model replace"},
    {"POST", "/api/v1/skills/", "/reject", reject_skill, "", "kernel reason"},
    {"POST", "/api/v1/skills/", "/defer", defer_skill, "", "kernel reason"},
    {"POST", "/api/v1/skills/", "/enable", enable_skill, "", "kernel reason"},
    {"POST", "/api/v1/skills/", "/disable", disable_skill, "", "kernel reason"},
    {"POST", "/api/v1/skills/", "/rollback", roll_back_skill, "", "kernel version reason"},
    {"GET", "/api/v1/skills/", "", show_skill, "kernel"},
    {"GET", "/api/v1/approvals/", "", show_approval},
    {"GET", "/api/v1/dispatches/", "", show_dispatch, "kernel"},
    {"GET", "/api/v1/cycles/", "", show_cycle, "kernel wait"},
};

error unknown_name(const std::string& what, const std::string& name, names known,
                   const std::string& where) {
  std::vector<std::string_view> all;
  std::string listed;
  for (const auto word : split(known, ' '))
    if (!word.empty()) {
      all.push_back(word);
      listed += (listed.empty() ? "" : ", ") + std::string(word);
    }
  const auto close = nearest(name, all);
  return {errc::invalid_argument, "no such " + what + ": " + name, where,
          !close.empty()   ? "did you mean " + std::string(close) + "?"
          : listed.empty() ? "this path has no " + what + "s"
                           : "parameters: " + listed};
}

bool is_among(const std::string& name, names known) {
  const auto words = split(known, ' ');
  return !name.empty() && std::ranges::find(words, std::string_view(name)) != words.end();
}

/// What nobody would read is a slip: without it the request could do something else than what was
/// asked for. False: it is answered.
bool is_understood(const exchange_ptr& x, names parameters, names members) {
  for (const auto& [key, value] : x->request.query)
    if (!is_among(key, parameters)) {
      x->fail_with(unknown_name("parameter", key, parameters, x->request.path));
      return false;
    }
  if (members == any_member || x->request.method != "POST")
    return true;
  const auto body = x->body();
  if (!body)
    return false;
  for (const auto& [key, value] : body->items()) {
    if (is_among(key, members) && (value.is_string() || value.is_null()))
      continue;
    x->fail_with(is_among(key, members)
                     ? error{errc::invalid_argument, key + " is not a string", "body", {}}
                     : unknown_name("member", key, members, "body"));
    return false;
  }
  return true;
}

/// False when no path with an id fits.
bool handle_item(const exchange_ptr& x) {
  for (const auto& r : item_routes) {
    auto id = after(x->request.path, r.prefix);
    if (!id || (*r.suffix != '\0' && !ends_with(*id, r.suffix)))
      continue;
    if (x->request.method != r.method)
      x->refuse_method(r.method);
    else if (is_understood(x, r.parameters, r.members))
      r.handle(x, *id);
    return true;
  }
  return false;
}

void handle(const exchange_ptr& x) {
  std::string allow;
  for (const auto& r : routes) {
    if (x->request.path != r.path)
      continue;
    if (x->request.method == r.method)
      return is_understood(x, r.parameters, r.members) ? r.handle(x) : void();
    allow += (allow.empty() ? "" : ", ") + std::string(r.method);
  }
  if (!allow.empty())
    return x->refuse_method(allow);
  if (!handle_item(x))
    x->fail_with({errc::not_found, "no such path", x->request.path,
                  "the paths are in docs/control-api.md; ask /api/v1/status to begin with"});
}

/// False: the request has failed at the fault point and is answered. What is about the faults
/// themselves does not pass it: they must be possible to end.
bool pass_fault_point(exchange& x) {
  if (!faults::any_armed() || x.request.path.rfind("/api/v1/chaos", 0) == 0)
    return true;
  const auto met = faults::meet("gateway.request");
  if (!met) {
    x.fail_with(met.error());
    return false;
  }
  if (met->corrupts())
    x.request.body = faults::malformed(x.request.body, met->salt);
  return true;
}

std::string event_line(const cycle_event& e) {
  return json{{"schema", "boyd.event/1"},
              {"kernel_id", e.kernel_id},
              {"cycle_id", e.cycle_id},
              {"phase", e.phase},
              {"agent_id", e.agent_id},
              {"text", e.text},
              {"at", to_json(std::optional(e.at))},
              {"dispatch_id", e.dispatch_id},
              {"stream", e.stream}}
             .dump(-1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

/// Runs tell of their output only while somebody watches.
void hear_output(self_pointer self) {
  const auto& s = self->state;
  if (s.parts.watched)
    s.parts.watched->play(s.watchers.empty() ? event_listener_actor{}
                                             : event_listener_actor(gateway_actor(self)));
}

/// Watchers that are gone or too slow fall out here.
void tell_watchers(self_pointer self, const std::string& line) {
  std::erase_if(self->state.watchers, [&](const watcher& w) { return !w(line); });
  hear_output(self);
}

} // namespace

} // namespace gateway_impl

namespace {

gateway_impl::gateway_part::behavior_type gateway_behavior(gateway_impl::self_pointer self,
                                                           gateway_parts parts) {
  using namespace gateway_impl;
  install_handlers(self, "gateway");
  self->set_down_handler([self](caf::down_msg& m) { self->state.conversations.forget(m.source); });
  self->state.parts = std::move(parts);
  for (const auto& [id, k] : self->state.parts.kernels)
    self->send(k, subscribe_events{{}, event_listener_actor(gateway_actor(self))});
  return {
      [self](api_request& m) {
        auto x = std::make_shared<exchange>();
        auto& open = self->state.open;
        std::erase_if(open, [](const auto& earlier) { return earlier->answered; });
        open.push_back(x);
        x->self = self;
        x->configuration = self->state.parts.configuration;
        x->request = std::move(m);
        x->promise = self->make_response_promise<result<api_response>>();
        if (x->left() && x->request.method == "GET")
          x->reply_as({});
        else if (pass_fault_point(*x))
          handle(x);
        return x->promise;
      },
      [self](watch_events& m) {
        faults::may_crash("parts.subscribe");
        // Those that have left would else stay until the next event.
        tell_watchers(self, {});
        self->state.watchers.push_back(std::move(m.sink));
        hear_output(self);
      },
      [self](cycle_event& m) {
        if (!faults::lost("gateway.event"))
          tell_watchers(self, event_line(m));
      },
      [self](reload_order& m) {
        faults::may_crash("parts.reload");
        self->state.parts.configuration = std::move(m.configuration);
      },
      [self](ping&) {
        auto& s = self->state;
        return s.conversations.answer(self, s.parts.context->ports.clock->steady());
      },
      [self](pong&) { self->state.conversations.heard(self->current_sender()); },
  };
}

} // namespace

gateway_actor spawn_gateway(caf::actor_system& system, gateway_parts parts) {
  return system.spawn(gateway_behavior, std::move(parts));
}

} // namespace boyd
