#include "actors/mcp/pool.hpp"

#include "actors/mcp/parts.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/web_address.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/mcp/catalogue.hpp"
#include "boyd/tools/policy.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace boyd {

namespace mcp_pool {

namespace {

/// Beyond what a call may take: a person may be asked meanwhile.
constexpr std::size_t most_tickets = 100'000;

/// Of a server with an address, for the policy.
std::string host_of(const config::mcp_server& s) {
  if (s.url.empty())
    return {};
  const auto address = parse_web_address(s.url);
  return address ? address->host : std::string();
}

void deliver(self_pointer, tools_collector& c) {
  if (std::exchange(c.answered, true))
    return;
  for (auto& [server, tools] : c.found)
    for (auto& t : tools)
      c.reply.tools.push_back(std::move(t));
  c.promise.deliver(result<mcp_tools_reply>(std::move(c.reply)));
}

void one_less(self_pointer self, const std::shared_ptr<tools_collector>& c) {
  if (--c->missing == 0)
    deliver(self, *c);
}

/// A server cannot be had: nor, then, the run, unless it does without.
void without(self_pointer self, const std::shared_ptr<tools_collector>& c, bool optional,
             const error& why) {
  if (!optional && !c->answered) {
    c->answered = true;
    c->promise.deliver(result<mcp_tools_reply>(fail(why)));
  }
  c->reply.notes.push_back("the tools of a server are missing: " + to_string(why));
  one_less(self, c);
}

void take_tools(tools_collector& c, const mcp_core::instance& what, server_tools r) {
  const auto host = host_of(what.definition);
  std::ranges::move(r.withheld, std::back_inserter(c.reply.notes));
  auto& mine = c.found[what.name];
  for (const auto& t : r.tools)
    if (tools::is_listed(t.definition.name, c.patterns))
      mine.push_back({t.definition, what.name, host});
}

/// Behind the end of a server: as what it is configured, or trusted, now.
void ask_again(self_pointer self, const std::shared_ptr<tools_collector>& c,
               const mcp_core::instance& what);

void ask_server(self_pointer self, const std::shared_ptr<tools_collector>& c,
                const mcp_core::instance& what) {
  ++c->missing;
  const bool optional = what.definition.optional;
  const auto server = server_for(self, what);
  if (self->state.shell->changing().contains(what.key)) {
    // The one that is being ended would refuse.
    self->state.behind_the_end[what.key].emplace_back([self, c, what] {
      ask_again(self, c, what);
      one_less(self, c);
    });
    return;
  }
  if (!server)
    return without(self, c, optional, no_server(self, what.key));
  ++self->state.members.at(what.key).requests;
  ask<server_tools>(
      self, server, server_tools_query{},
      [self, c, what, optional](result<server_tools> r) {
        if (!r)
          return without(self, c, optional, r.error());
        take_tools(*c, what, std::move(*r));
        one_less(self, c);
      },
      what.definition.start_timeout + start_slack);
}

/// The instances that this user may be served by.
std::vector<mcp_core::instance> instances_for(self_pointer self, const mcp_user& user,
                                              const std::vector<std::string>& patterns) {
  const auto& s = self->state;
  std::vector<mcp_core::instance> all;
  for (const auto* server : mcp_core::wanted(*s.configuration, patterns))
    all.push_back(
        mcp_core::instance_of(*server, user.workspace, s.context->home, s.configuration->path));
  return all;
}

const config::agent* agent_of(self_pointer self, const mcp_user& user) {
  const auto* kernel = self->state.configuration->find_kernel(user.kernel_id);
  return kernel == nullptr ? nullptr : config::find_agent(*kernel, user.agent_id);
}

/// A server of a workspace, in the sandbox of the agent that uses it.
mcp_core::instance for_user(self_pointer self, mcp_core::instance i, const mcp_user& user) {
  if (const auto* agent = agent_of(self, user))
    return mcp_core::kept_in_sandbox(std::move(i), *agent, agents_in(self, i.workspace));
  return i;
}

void ask_again(self_pointer self, const std::shared_ptr<tools_collector>& c,
               const mcp_core::instance& what) {
  ++c->missing;
  const error gone{errc::actor_down, "the server was removed while stopping", what.key,
                   "try again"};
  const auto ask_one_of = [self, c, what, gone](const std::vector<mcp_core::instance>& now) {
    const auto it = std::ranges::find(now, what.key, &mcp_core::instance::key);
    if (it == now.end())
      return without(self, c, what.definition.optional, gone);
    ask_server(self, c, *it);
    one_less(self, c);
  };
  if (!what.pinned)
    return ask_one_of(instances_for(self, c->user, c->patterns));
  look_into(self, c->user.workspace, [self, c, ask_one_of](result<workspace_view> v) {
    if (!v)
      return without(self, c, false, v.error());
    auto now = v->servers.usable;
    for (auto& i : now)
      i = for_user(self, std::move(i), c->user);
    ask_one_of(now);
  });
}

/// Servers of the agent's workspace that nobody has trusted, or as something else: who names them
/// is told, others do without.
void without_refused(self_pointer self, const std::shared_ptr<tools_collector>& c,
                     const mcp_core::workspace_servers& servers) {
  for (const auto& r : servers.refused) {
    if (std::ranges::none_of(c->patterns, [&](const auto& p) { return mcp::may_name(p, r.name); }))
      continue;
    const bool named = std::ranges::any_of(
        c->patterns, [&](const auto& p) { return mcp::server_of(p) == r.name; });
    ++c->missing;
    without(self, c, !named, r.why);
  }
}

void ask_all(self_pointer self, const std::shared_ptr<tools_collector>& c,
             const mcp_core::workspace_servers& servers) {
  auto instances = instances_for(self, c->user, c->patterns);
  std::vector<std::string> known;
  for (const auto& i : instances)
    known.push_back(i.name);
  for (const auto& i : servers.usable) {
    const bool shadowed = std::ranges::find(known, i.name) != known.end();
    if (!shadowed &&
        std::ranges::any_of(c->patterns, [&](const auto& p) { return mcp::may_name(p, i.name); }))
      instances.push_back(for_user(self, i, c->user));
    known.push_back(i.name);
  }
  for (const auto& r : servers.refused)
    known.push_back(r.name);
  if (const auto none = mcp_core::missing(known, c->patterns); !none.empty()) {
    ++c->missing;
    without(self, c, false,
            {errc::invalid_configuration, "no such tool server: " + none.front(),
             c->user.kernel_id + "/" + c->user.agent_id, "add it to mcpServers in the file"});
  }
  without_refused(self, c, servers);
  for (const auto& i : instances)
    ask_server(self, c, i);
  one_less(self, c);
}

tools_promise tools_for(self_pointer self, mcp_tools_query& m) {
  auto& s = self->state;
  auto promise = self->make_response_promise<result<mcp_tools_reply>>();
  const auto* agent = agent_of(self, m.user);
  if (agent == nullptr) {
    answer<mcp_tools_reply>(promise, fail(errc::not_found, "the agent is no longer configured"));
    return promise;
  }
  auto c = std::make_shared<tools_collector>();
  c->promise = promise;
  c->user = m.user;
  c->patterns = agent->tools;
  c->missing = 1;
  std::erase_if(s.collectors, [](const auto& weak) { return weak.expired(); });
  s.collectors.push_back(c);
  if (!agent->mcp_json) {
    ask_all(self, c, {});
    return promise;
  }
  look_into(self, m.user.workspace, [self, c](result<workspace_view> v) {
    if (!v)
      return without(self, c, false, v.error());
    ask_all(self, c, v->servers);
  });
  return promise;
}

/// The server that a call means: of the configuration, or of the caller's workspace as the run's
/// beginning found it. A person may call every server of the configuration.
std::optional<mcp_core::instance> meant(self_pointer self, const mcp_call& m) {
  auto& s = self->state;
  const std::string name(mcp::server_of(m.tool));
  if (name.empty())
    return std::nullopt;
  const bool person = m.user.kernel_id.empty();
  const auto* agent = agent_of(self, m.user);
  if (!person && agent == nullptr)
    return std::nullopt;
  if (const auto* server = config::find_mcp_server(*s.configuration, name))
    return mcp_core::instance_of(*server, person ? s.context->home : m.user.workspace,
                                 s.context->home, s.configuration->path);
  if (person || !agent->mcp_json)
    return std::nullopt;
  const auto it = s.seen.find(m.user.workspace);
  if (it == s.seen.end())
    return std::nullopt;
  const auto& usable = it->second.usable;
  const auto found = std::ranges::find(usable, name, &mcp_core::instance::name);
  return found == usable.end() ? std::nullopt : std::optional(for_user(self, *found, m.user));
}

call_promise call_tool(self_pointer self, mcp_call& m) {
  auto& s = self->state;
  auto promise = self->make_response_promise<result<mcp_call_reply>>();
  const auto found = meant(self, m);
  if (!found) {
    answer<mcp_call_reply>(promise, fail(errc::not_found, "no such tool: " + m.tool, {},
                                         "list the servers with: boyd tools ls"));
    return promise;
  }
  const auto& what = *found;
  const auto server = server_for(self, what);
  if (!server) {
    answer<mcp_call_reply>(promise, fail(no_server(self, what.key)));
    return promise;
  }
  ++s.members.at(what.key).requests;
  if (s.tickets.size() >= most_tickets)
    s.tickets.clear(); // cancelling some of them late is all that is lost
  s.tickets[m.ticket] = what.key;
  const auto ticket = m.ticket;
  const auto number = ++s.called;
  s.calls.emplace(number, promise);
  // A person may be asked while it runs, so its time is the server's business and the run's.
  ask<mcp_call_reply>(
      self, server, std::move(m),
      [self, promise, ticket, number](result<mcp_call_reply> r) {
        self->state.tickets.erase(ticket);
        self->state.calls.erase(number);
        answer<mcp_call_reply>(promise, std::move(r));
      },
      std::chrono::hours{25});
  return promise;
}

void cancel(self_pointer self, const mcp_cancel& m) {
  if (faults::lost("mcp.cancel"))
    return; // the call ends at its own limit
  auto& s = self->state;
  const auto it = s.tickets.find(m.ticket);
  if (it == s.tickets.end())
    return;
  if (const auto any = s.shell->handle(it->second))
    self->send(caf::actor_cast<mcp_server_actor>(any), m);
}

void on_idle(self_pointer self, const server_idle& m) {
  auto& s = self->state;
  const auto it = s.members.find(m.key);
  if (it == s.members.end() || it->second.requests != m.requests)
    return;
  spdlog::info("{}: stopped because it was not used", m.key);
  end_server(self, m.key);
}

/// Goes on with what waited for the end of servers.
void after_an_end(self_pointer self) {
  auto& s = self->state;
  const auto changing = s.shell->changing();
  if (changing.empty())
    s.heard.clear();
  std::vector<std::function<void()>> now;
  for (auto it = s.behind_the_end.begin(); it != s.behind_the_end.end();) {
    if (changing.contains(it->first)) {
      ++it;
      continue;
    }
    std::ranges::move(it->second, std::back_inserter(now));
    it = s.behind_the_end.erase(it);
  }
  for (const auto& go_on : now)
    go_on();
}

/// Servers whose definition is another one now are ended; the next use starts them anew.
void reload(self_pointer self, const reload_order& order) {
  auto& s = self->state;
  const auto& configuration = order.configuration;
  s.configuration = configuration;
  for (auto it = s.members.begin(); it != s.members.end();) {
    const auto& what = it->second.what;
    const auto* now = what.pinned ? nullptr : config::find_mcp_server(*configuration, what.name);
    const bool same = what.pinned || (now != nullptr &&
                                      mcp_core::instance_of(*now, what.workspace, s.context->home,
                                                            configuration->path) == what);
    if (same) {
      ++it;
      continue;
    }
    s.shell->remove(it->first);
    s.withheld.erase(it->first);
    s.eras.erase(it->first);
    it = s.members.erase(it);
  }
  reconcile(self);
  if (!s.shell->changing().empty())
    s.heard.push_back(order.heard);
}

tree_reply tree_of(self_pointer self) {
  tree_reply reply;
  for (const auto& c : self->state.shell->view())
    reply.children.push_back({c.id, c.state, c.restarts, c.last_error, 1, c.reason, c.renewals});
  return reply;
}

part_health health_of(self_pointer self) {
  part_health h;
  for (const auto& c : self->state.shell->view())
    if (c.state == "parked")
      h.notice += (h.notice.empty() ? "" : "; ") + c.id + " is parked: " + c.reason;
  for (const auto* all : {&self->state.withheld, &self->state.changes})
    for (const auto& [key, lines] : *all)
      for (const auto& line : lines)
        h.notice += (h.notice.empty() ? "" : "; ") +
                    (all == &self->state.changes ? "the server " + key + ": " + line : line);
  return h;
}

} // namespace

pool_state::~pool_state() {
  const error gone{errc::actor_down, "the part is being restarted", name, "try again"};
  for (const auto& weak : collectors)
    if (auto c = weak.lock(); c && !std::exchange(c->answered, true))
      c->promise.deliver(result<mcp_tools_reply>(fail(gone)));
  for (auto& [number, promise] : calls)
    promise.deliver(result<mcp_call_reply>(fail(gone)));
}

error no_server(self_pointer self, const std::string& key) {
  const auto all = self->state.shell->view();
  const auto it = std::ranges::find(all, key, &child_view::id);
  if (it != all.end() && it->state == "parked")
    return {errc::refused, "the server is parked: " + it->reason, key,
            "fix the cause, then run: boyd actors unpark " + key};
  return {errc::actor_down,
          "the server is being restarted" +
              (it == all.end() || it->last_error.empty() ? std::string() : ": " + it->last_error),
          key, "try again"};
}

void reconcile(self_pointer self) {
  // Its children are parked, each for itself: there is nothing to escalate (ADR 9).
  self->state.shell->reconcile();
}

void end_server(self_pointer self, const std::string& key) {
  self->state.shell->remove(key);
  self->state.members.erase(key);
  reconcile(self);
}

mcp_server_actor server_for(self_pointer self, const mcp_core::instance& what) {
  auto& s = self->state;
  const auto it = s.members.find(what.key);
  if (it == s.members.end() || it->second.what != what) {
    const bool other = it != s.members.end();
    s.members[what.key] = {what, 0};
    child_spec spec;
    spec.rule.id = what.key;
    spec.rule.vital = false;
    spec.make = [self, key = what.key] {
      auto& st = self->state;
      auto& m = st.members.at(key);
      m.requests = 0;
      mcp_server_order order;
      order.context = st.context;
      order.definition = m.what.definition;
      order.key = key;
      order.cwd = m.what.cwd;
      if (!m.what.workspace.empty() && order.cwd.starts_with(m.what.workspace + '/'))
        order.cwd_within = m.what.workspace;
      order.secrets = config::with_secrets(st.configuration->secrets, m.what.secrets);
      order.pinned = m.what.pinned;
      if (m.what.sandbox)
        order.confinement =
            server_confinement{*m.what.sandbox,
                               {{m.what.workspace},
                                {},
                                exec::hidden_from_agents(*st.configuration, st.context->home),
                                exec::read_only_for_agents(*st.configuration, st.context->home)}};
      if (const auto era = st.eras.find(key); era != st.eras.end())
        order.remembered = era->second;
      order.owner = mcp_server_owner(pool_impl(self));
      order.approvals = st.approvals;
      return caf::actor_cast<caf::actor>(spawn_mcp_server(self->system(), std::move(order)));
    };
    s.shell->add(std::move(spec));
    if (other)
      s.shell->renew(what.key, "its configuration changed");
    reconcile(self);
  }
  const auto any = s.shell->handle(what.key);
  return any ? caf::actor_cast<mcp_server_actor>(any) : mcp_server_actor{};
}

} // namespace mcp_pool

namespace {

using namespace mcp_pool;

void quit_when_stopped(self_pointer self) {
  if (self->state.shell->shutting_down() && self->state.shell->all_stopped())
    self->quit(caf::exit_reason::user_shutdown);
}

pool_impl::behavior_type pool_behavior(self_pointer self, node_context_ptr context,
                                       configuration_ptr configuration, workspace_actor workspace,
                                       approvals_actor approvals) {
  install_handlers(self, "mcp");
  self->set_down_handler([self](caf::down_msg& m) {
    if (self->state.shell->on_down(m)) {
      mcp_pool::reconcile(self);
      after_an_end(self);
    }
    quit_when_stopped(self);
  });
  // Servers are given a moment to end by themselves.
  self->set_exit_handler([self](caf::exit_msg&) {
    self->state.shell->begin_shutdown();
    mcp_pool::reconcile(self);
    quit_when_stopped(self);
  });
  auto& s = self->state;
  s.context = std::move(context);
  s.configuration = std::move(configuration);
  s.workspace = std::move(workspace);
  s.approvals = std::move(approvals);
  s.shell = std::make_unique<supervisor_shell<pool_impl::base>>(
      self, "mcp", s.context->ports.clock, s.context->ports.random, restart_intensity{});
  s.shell->record_in(s.context->restarts);
  return {
      [self](mcp_tools_query& m) { return tools_for(self, m); },
      [self](mcp_call& m) { return call_tool(self, m); },
      [self](mcp_cancel& m) { cancel(self, m); },
      [self](mcp_servers_query& m) { return servers(self, m); },
      [self](mcp_trust_order& m) { return decide_trust(self, m); },
      [self](reload_order& m) {
        faults::may_crash("parts.reload");
        reload(self, m);
      },
      [self](tree_query&) -> result<tree_reply> { return tree_of(self); },
      [self](actor_order& m) -> result<actor_order_reply> {
        auto done = self->state.shell->obey(m);
        mcp_pool::reconcile(self);
        return done;
      },
      [self](health_query&) -> result<part_health> { return health_of(self); },
      [self](supervise_tick&) { mcp_pool::reconcile(self); },
      [self](stop_overdue& m) { self->state.shell->on_overdue(m); },
      [self](server_idle& m) { on_idle(self, m); },
      [self](server_found& m) { self->state.eras[m.key] = m.era; },
      [self](server_withholds& m) {
        if (m.lines.empty())
          self->state.withheld.erase(m.key);
        else if (self->state.members.contains(m.key))
          self->state.withheld[m.key] = std::move(m.lines);
      },
      [self](server_listed& m) { return check_tools(self, m); },
      [self](server_starting& m) { return check_programs(self, m); },
      [self](ping&) {
        self->state.shell->beat(self->state.context->housekeeping.heartbeat);
        return pong{{}, {}, self->state.shell->silent()};
      },
      [self](pong& m) { self->state.shell->on_pong(self->current_sender(), m); },
  };
}

} // namespace

mcp_actor spawn_mcp_pool(caf::actor_system& system, node_context_ptr context,
                         configuration_ptr configuration, workspace_actor workspace,
                         approvals_actor approvals) {
  return system.spawn(pool_behavior, std::move(context), std::move(configuration),
                      std::move(workspace), std::move(approvals));
}

} // namespace boyd
