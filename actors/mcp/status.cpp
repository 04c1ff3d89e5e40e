#include "actors/mcp/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/mcp/catalogue.hpp"

#include <caf/actor_cast.hpp>

#include <algorithm>
#include <utility>

namespace boyd::mcp_pool {

namespace {

mcp_server_status known_status(self_pointer self, const mcp_core::instance& i) {
  mcp_server_status row;
  row.name = i.name;
  row.from = i.file;
  row.scope = i.workspace;
  row.transport = i.definition.url.empty() ? "stdio" : "http";
  row.target = i.definition.url;
  if (i.definition.url.empty()) {
    row.target = i.definition.command;
    for (const auto& a : i.definition.args)
      row.target += " " + a;
  }
  row.target = config::redact_text(row.target, self->state.configuration->secrets);
  row.definition = config::redact_text(i.shown, self->state.configuration->secrets);
  row.hash = i.pin;
  row.state = "idle";
  const auto all = self->state.shell->view();
  if (const auto it = std::ranges::find(all, i.key, &child_view::id); it != all.end()) {
    row.state = it->state;
    row.restarts = it->restarts;
    row.problem = it->reason.empty() ? it->last_error : it->reason;
  }
  return row;
}

/// What the server says of itself goes over what is known of it.
void merge(mcp_server_status& row, mcp_server_status said) {
  row.state = said.state;
  row.era = said.era;
  row.version = said.version;
  row.says = said.says;
  row.tool_count = said.tool_count;
  row.tools = std::move(said.tools);
  row.sandbox = said.sandbox;
  if (!said.problem.empty())
    row.problem = said.problem;
  else if (said.state == "ready")
    row.problem.clear();
}

struct status_collector {
  servers_promise promise;
  mcp_servers_reply reply;
  std::size_t missing = 1;

  void one_less() {
    if (--missing == 0)
      promise.deliver(result<mcp_servers_reply>(std::move(reply)));
  }
};

void ask_status(self_pointer self, const std::shared_ptr<status_collector>& c, std::size_t row,
                const mcp_server_actor& server, bool tools) {
  ++c->missing;
  ask<mcp_server_status>(
      self, server, server_status_query{{}, tools},
      [c, row](result<mcp_server_status> r) {
        if (r)
          merge(c->reply.servers[row], std::move(*r));
        c->one_less();
      },
      2s);
}

/// Connects, then asks how it went.
void connect_and_ask(self_pointer self, const std::shared_ptr<status_collector>& c, std::size_t row,
                     const mcp_core::instance& what) {
  const auto server = server_for(self, what);
  if (!server) {
    c->reply.servers[row].problem = no_server(self, what.key).what;
    return;
  }
  ++self->state.members.at(what.key).requests;
  ++c->missing;
  ask<server_tools>(
      self, server, server_tools_query{},
      [self, c, row, server](const result<server_tools>& r) {
        if (!r) {
          c->reply.servers[row].problem = to_string(r.error());
          c->reply.servers[row].state = "unreachable";
        }
        // It may say more of itself, when it lives.
        ask_status(self, c, row, server, true);
        c->one_less();
      },
      what.definition.start_timeout + start_slack);
}

/// Every instance that there is or could be without a workspace of its own, each once.
std::vector<mcp_core::instance> all_instances(self_pointer self) {
  const auto& s = self->state;
  std::vector<mcp_core::instance> all;
  const auto add = [&](mcp_core::instance i) {
    if (std::ranges::find(all, i.key, &mcp_core::instance::key) == all.end())
      all.push_back(std::move(i));
  };
  for (const auto& server : s.configuration->mcp_servers) {
    bool used = false;
    for (const auto& k : s.configuration->kernels)
      for (const auto& a : k.agents) {
        const auto* chat = std::get_if<config::chat_executor>(&a.run);
        if (chat == nullptr || std::ranges::none_of(a.tools, [&](const auto& p) {
              return mcp::may_name(p, server.name);
            }))
          continue;
        used = true;
        add(mcp_core::instance_of(
            server, chat->workspace.empty() ? s.context->kernel_home(k.kernel_id) : chat->workspace,
            s.context->home, s.configuration->path));
      }
    if (!used)
      add(mcp_core::instance_of(server, s.context->home, s.context->home, s.configuration->path));
  }
  for (const auto& [key, m] : s.members)
    add(m.what);
  return all;
}

/// A server that may not be used as it is now may still have a process, or a restart to come: told,
/// but neither connected to nor taken for what a person would trust.
void tell_former(self_pointer self, const std::string& workspace, const std::string& name,
                 std::vector<mcp_core::instance>& usable, mcp_servers_reply& reply) {
  std::erase_if(usable, [&](const mcp_core::instance& i) {
    if (!i.pinned || i.workspace != workspace || i.name != name)
      return false;
    auto row = known_status(self, i);
    row.definition.clear();
    row.hash.clear();
    reply.servers.push_back(std::move(row));
    return true;
  });
}

/// Servers of workspaces, as the latest looks found them.
void add_workspaces(self_pointer self, const std::string& server,
                    std::vector<mcp_core::instance>& usable, mcp_servers_reply& reply) {
  for (const auto& workspace : open_workspaces(self)) {
    const auto it = self->state.seen.find(workspace);
    const auto agents = agents_in(self, workspace);
    if (it == self->state.seen.end() || agents.empty())
      continue;
    for (const auto& i : it->second.usable)
      if (std::ranges::find(usable, i.key, &mcp_core::instance::key) == usable.end())
        usable.push_back(mcp_core::kept_in_sandbox(i, *agents.front(), agents));
    for (const auto& r : it->second.refused) {
      if (!server.empty() && r.name != server)
        continue;
      tell_former(self, workspace, r.name, usable, reply);
      mcp_server_status row;
      row.name = r.name;
      row.from = mcp_core::file_of(workspace);
      row.scope = workspace;
      row.target = r.words;
      row.definition = config::redact_text(r.shown, self->state.configuration->secrets);
      row.hash = r.pin;
      row.state = r.changed ? "changed" : "untrusted";
      row.problem = to_string(r.why);
      reply.servers.push_back(std::move(row));
    }
  }
}

void answer_servers(self_pointer self, const std::shared_ptr<status_collector>& c,
                    const mcp_servers_query& m) {
  auto promise = c->promise;
  auto instances = all_instances(self);
  add_workspaces(self, m.server, instances, c->reply);
  for (const auto& i : instances) {
    if (!m.server.empty() && i.name != m.server)
      continue;
    c->reply.servers.push_back(known_status(self, i));
    const auto row = c->reply.servers.size() - 1;
    if (m.connect)
      connect_and_ask(self, c, row, i);
    else if (const auto any = self->state.shell->handle(i.key))
      ask_status(self, c, row, caf::actor_cast<mcp_server_actor>(any), false);
  }
  if (!m.server.empty() && c->reply.servers.empty()) {
    promise.deliver(result<mcp_servers_reply>(
        fail(errc::not_found, "no such tool server: " + m.server, self->state.configuration->path,
             "list them with: boyd tools ls")));
    return;
  }
  c->one_less();
}

/// Looks into one workspace after the other, then answers.
void look_and_answer(self_pointer self, const std::shared_ptr<status_collector>& c,
                     const mcp_servers_query& m, std::vector<std::string> left) {
  if (left.empty())
    return answer_servers(self, c, m);
  const auto workspace = left.back();
  left.pop_back();
  look_into(self, workspace, [self, c, m, left, workspace](const result<workspace_view>& v) {
    if (!v) {
      mcp_server_status row;
      row.from = mcp_core::file_of(workspace);
      row.scope = workspace;
      row.state = "unreadable";
      row.problem = to_string(v.error());
      c->reply.servers.push_back(std::move(row));
    }
    look_and_answer(self, c, m, left);
  });
}

} // namespace

servers_promise servers(self_pointer self, const mcp_servers_query& m) {
  auto c = std::make_shared<status_collector>();
  c->promise = self->make_response_promise<result<mcp_servers_reply>>();
  auto promise = c->promise;
  look_and_answer(self, c, m, open_workspaces(self));
  return promise;
}

} // namespace boyd::mcp_pool
