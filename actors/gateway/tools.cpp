#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "src/core/json_values.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace boyd::gateway_impl {

namespace {

/// More than a server may take to start, or a call.
constexpr milliseconds longest_wait = std::chrono::hours{1};

json to_json(const mcp_server_status& s) {
  json tools = json::array();
  for (const auto& t : s.tools)
    tools.push_back({{"name", t.definition.name},
                     {"description", t.definition.description},
                     {"parameters", json::parse(t.definition.parameters_json, nullptr, false)},
                     {"own_name", t.own_name},
                     {"pin", t.pin},
                     {"withheld", t.withheld}});
  return {{"name", s.name},
          {"from", s.from},
          {"workspace", s.scope},
          {"transport", s.transport},
          {"target", s.target},
          {"state", s.state},
          {"era", s.era},
          {"version", s.version},
          {"server", s.says},
          {"problem", s.problem},
          {"tool_count", s.tool_count},
          {"restarts", s.restarts},
          {"definition", s.definition},
          {"hash", s.hash},
          {"sandbox", s.sandbox},
          {"tools", std::move(tools)}};
}

/// Nobody but a person: not the node's own children, and nobody of whom nothing is known.
bool is_person(const exchange_ptr& x, const std::string& what) {
  if (x->request.caller && x->request.caller->barred.empty())
    return true;
  const auto why = x->request.caller ? x->request.caller->barred : "the caller is unknown";
  spdlog::warn("tools: {} was refused for {}: {}", what,
               x->request.caller ? x->request.caller->name : std::string("an unknown user"), why);
  x->fail_with({errc::refused,
                "only a person can " + what + ": " + why,
                {},
                "run the command in your own shell, not in a program started by Boyd"});
  return false;
}

void decide(const exchange_ptr& x, bool forget) {
  if (!is_person(x, "change the trusted servers"))
    return;
  const auto body = x->body();
  if (!body)
    return;
  mcp_trust_order order;
  order.server = text_in(*body, "server");
  order.workspace = text_in(*body, "workspace");
  order.hash = text_in(*body, "hash");
  order.forget = forget;
  if (order.server.empty())
    return x->fail_with({errc::invalid_argument, "no server given", "server", {}});
  ask<mcp_trust_reply>(
      x->self, x->self->state.parts.mcp, std::move(order),
      [x, forget](const result<mcp_trust_reply>& r) {
        if (!r)
          return x->fail_with(r.error());
        x->reply(forget ? "tools_forgotten" : "tools_trusted",
                 {{"server", r->server}, {"file", r->file}, {"changes", r->changes}});
      },
      longest_wait);
}

} // namespace

void list_tools(exchange_ptr x) {
  mcp_servers_query q;
  q.server = x->query("server");
  const auto connect = x->query("connect");
  if (!connect.empty() && connect != "true" && connect != "false")
    return x->fail_with(
        {errc::invalid_argument, "connect cannot be " + connect, "connect", "true or false"});
  q.connect = connect == "true";
  ask<mcp_servers_reply>(
      x->self, x->self->state.parts.mcp, std::move(q),
      [x](const result<mcp_servers_reply>& r) {
        if (!r)
          return x->fail_with(r.error());
        json items = json::array();
        for (const auto& s : r->servers)
          items.push_back(to_json(s));
        x->reply("tools", {{"items", std::move(items)}});
      },
      longest_wait);
}

void trust_tools(exchange_ptr x) {
  decide(x, false);
}

void forget_tools(exchange_ptr x) {
  decide(x, true);
}

void call_tool(exchange_ptr x) {
  if (!is_person(x, "call a tool directly"))
    return;
  const auto body = x->body();
  if (!body)
    return;
  const auto& ports = x->self->state.parts.context->ports;
  mcp_call call;
  call.ticket = make_uuid_v7(ports.clock->now(), *ports.random);
  call.tool = text_in(*body, "tool");
  call.arguments_json = text_in(*body, "arguments");
  const auto arguments = json::parse(call.arguments_json, nullptr, false);
  if (!call.arguments_json.empty() && !arguments.is_object())
    return x->fail_with({errc::invalid_argument, "the arguments are not a JSON object", "arguments",
                         R"(for instance {"path": "notes.txt"})"});
  ask<mcp_call_reply>(
      x->self, x->self->state.parts.mcp, std::move(call),
      [x](const result<mcp_call_reply>& r) {
        if (!r)
          return x->fail_with(r.error());
        x->reply("tool_result", {{"text", r->text}, {"is_error", r->is_error}});
      },
      longest_wait);
}

} // namespace boyd::gateway_impl
