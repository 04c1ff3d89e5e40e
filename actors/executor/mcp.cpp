#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/json_depth.hpp"
#include "boyd/mcp/catalogue.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/policy.hpp"

#include <caf/send.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::executing {

namespace {

/// Servers that are started for the run; each has a limit of its own.
constexpr milliseconds tools_patience = std::chrono::hours{1};
/// A call has its server's limit and, with a person in between, at most the run's.
constexpr milliseconds call_patience = std::chrono::hours{25};

mcp_user user_of(const run_order& order) {
  const auto& row = order.work->row;
  const auto& chat = std::get<config::chat_executor>(order.agent->run);
  return {row.kernel_id, row.agent_id,
          chat.workspace.empty() ? order.context->kernel_home(row.kernel_id) : chat.workspace};
}

std::string ticket_of(const run_order& order, std::uint64_t step) {
  const auto& row = order.work->row;
  return row.dispatch_id + "/" + std::to_string(row.fence) + "/" + std::to_string(step);
}

/// What the model sent, when it can be sent on.
result<std::string> checked_arguments(const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos || text == "null")
    return std::string();
  if (text.size() > tools::argument_bytes)
    return fail(errc::limit_exceeded, "the arguments are longer than " +
                                          std::to_string(tools::argument_bytes >> 10) + " KiB");
  if (auto deep = check_json_depth(text); !deep)
    return fail(std::move(deep.error()));
  const auto all = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!all.is_object())
    return fail(errc::invalid_argument, "the arguments are not a JSON object");
  return all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace

bool is_server_tool(std::string_view name) {
  return name.starts_with(mcp::tool_prefix);
}

void gather_server_tools(self_pointer self, std::function<void()> then) {
  auto& s = self->state;
  const bool wants = std::ranges::any_of(s.order.agent->tools, is_server_tool);
  if (!wants)
    return then();
  ask<mcp_tools_reply>(
      self, s.order.services.servers(), mcp_tools_query{{}, user_of(s.order)},
      [self, then](result<mcp_tools_reply> r) {
        if (!r)
          return finish_unstarted(self, r.error(),
                                  category_of(r.error()) == error_category::transient ||
                                          category_of(r.error()) == error_category::overloaded
                                      ? failure_class::transient
                                      : failure_class::environment);
        self->state.server_tools = std::move(r->tools);
        self->state.server_notes = std::move(r->notes);
        then();
      },
      tools_patience);
}

void offer_server_tools(self_pointer self, std::vector<tools::definition>& all) {
  for (const auto& t : self->state.server_tools)
    all.push_back(t.definition);
}

std::map<std::string, std::string> server_hosts(self_pointer self) {
  std::map<std::string, std::string> hosts;
  for (const auto& t : self->state.server_tools)
    hosts[t.definition.name] = t.host;
  return hosts;
}

exec::judgement judge_server_tool(const std::string& tool,
                                  const std::map<std::string, std::string>& hosts,
                                  const config::agent& agent) {
  tools::action a;
  a.tool = tool;
  if (const auto it = hosts.find(tool); it != hosts.end())
    a.host = it->second;
  auto decision = tools::decide(a, agent.policy, agent.tools);
  return {decision.what, std::move(decision.reason)};
}

void call_server_tool(self_pointer self, const exec::effect::run_tool& e,
                      std::function<void(std::string, bool)> done) {
  auto& s = self->state;
  auto arguments = checked_arguments(e.call.arguments);
  if (!arguments)
    return done("error: " + to_string(arguments.error()), true);
  mcp_call call;
  call.user = user_of(s.order);
  call.ticket = ticket_of(s.order, e.step);
  call.tool = e.call.name;
  call.arguments_json = std::move(*arguments);
  call.dispatch_id = s.order.work->row.dispatch_id;
  s.server_step = e.step;
  ask<mcp_call_reply>(
      self, s.order.services.servers(), std::move(call),
      [self, step = e.step, done](result<mcp_call_reply> r) {
        if (self->state.server_step == step)
          self->state.server_step.reset();
        if (!r)
          return done("error: " + to_string(r.error()), true);
        done(std::move(r->text), r->is_error);
      },
      call_patience);
}

void stop_server_tool(self_pointer self, std::uint64_t step) {
  auto& s = self->state;
  if (s.server_step != step)
    return;
  s.server_step.reset();
  self->send(s.order.services.servers(), mcp_cancel{{}, ticket_of(s.order, step)});
}

void tell_server_notes(self_pointer self) {
  for (const auto& note : std::exchange(self->state.server_notes, {})) {
    spdlog::warn("dispatch {}: {}", self->state.order.work->row.dispatch_id, note);
    note_turn(self, nlohmann::json{{"note", note}}.dump(-1, ' ', false,
                                                        nlohmann::json::error_handler_t::replace));
  }
}

void drop_server_tool(executor_state& s) {
  const auto servers = s.order.services.servers();
  if (s.server_step && servers)
    caf::anon_send(servers, mcp_cancel{{}, ticket_of(s.order, *s.server_step)});
}

} // namespace boyd::executing
