#include "actors/node/root.hpp"

#include "actors/approvals/actor.hpp"
#include "actors/dispatcher/pool.hpp"
#include "actors/gateway/actor.hpp"
#include "actors/git_committer/actor.hpp"
#include "actors/governor/actor.hpp"
#include "actors/graph_recorder/actor.hpp"
#include "actors/kernel/actor.hpp"
#include "actors/knowledge/actor.hpp"
#include "actors/librarian/actor.hpp"
#include "actors/mcp/pool.hpp"
#include "actors/node/parts.hpp"
#include "actors/permits/actor.hpp"
#include "actors/planner/actor.hpp"
#include "actors/retention/actor.hpp"
#include "actors/state_writer/actor.hpp"
#include "actors/store/actor.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "actors/workspace/actor.hpp"
#include "boyd/config/reload.hpp"
#include "boyd/faults/points.hpp"

#include <caf/actor_system.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace boyd {

namespace {

using namespace node_impl;

using api_promise = caf::typed_response_promise<result<api_response>>;

// -- the tree, as data ---------------------------------------------------------------------------

void add(self_pointer self, child_rule rule, std::function<caf::actor()> make) {
  self->state.shell->add({std::move(rule), std::move(make)});
}

/// Nothing goes without it.
child_rule vital(const std::string& id, std::vector<std::string> depends_on) {
  return {id, std::move(depends_on)};
}

/// Cycles go on without it, degraded: exhausted, it is parked.
child_rule dispensable(const std::string& id, std::vector<std::string> depends_on) {
  child_rule rule{id, std::move(depends_on)};
  rule.vital = false;
  return rule;
}

void add_keepers(self_pointer self) {
  auto& s = self->state;
  auto& system = self->system();
  add(self, vital("store", {}), [&s, &system] { return plain(spawn_store(system, s.context)); });
  add(self, vital("permits", {}),
      [&s, &system] { return plain(spawn_permits(system, s.configuration)); });
  add(self, vital("governor", {}),
      [&s, &system] { return plain(spawn_governor(system, s.context, s.configuration)); });
  add(self, vital("workspace", {}),
      [&s, &system] { return plain(spawn_workspace(system, s.context)); });
  add(self, vital("state_writer", {}), [&s, &system] {
    auto writer = spawn_state_writer(system, s.context, s.configuration);
    s.writer->play(writer);
    return plain(writer);
  });
  add(self, dispensable("git_committer", {}),
      [&s, &system] { return plain(spawn_git_committer(system, s.context, s.configuration)); });
  add(self, dispensable("graph_recorder", {}),
      [&s, &system] { return plain(spawn_graph_recorder(system, s.context)); });
  add(self, dispensable("knowledge", {}), [&s, &system] {
    auto knowledge = spawn_knowledge(system, s.context, s.configuration);
    s.knowledge->play(knowledge);
    return plain(knowledge);
  });
  add(self, dispensable("inspector", {}),
      [&s, &system] { return plain(spawn_inspector(system, s.context, s.configuration)); });
}

void add_loop(self_pointer self) {
  auto& s = self->state;
  auto& system = self->system();
  add(self, vital("approvals", {"store"}), [self, &s, &system] {
    return plain(
        spawn_approvals(system, s.context, s.configuration, child<store_actor>(self, "store")));
  });
  add(self, dispensable("mcp", {"workspace", "approvals"}), [self, &s, &system] {
    auto servers = spawn_mcp_pool(system, s.context, s.configuration,
                                  child<workspace_actor>(self, "workspace"),
                                  child<approvals_actor>(self, "approvals"));
    s.servers->play(servers);
    return plain(servers);
  });
  // Not "mcp": what runs goes on without it.
  add(self, vital("dispatchers", {"store", "permits", "governor", "workspace", "approvals"}),
      [self, &s, &system] {
        run_services services{
            child<store_actor>(self, "store"), child<permits_actor>(self, "permits"),
            child<workspace_actor>(self, "workspace"), child<governor_actor>(self, "governor"),
            child<approvals_actor>(self, "approvals")};
        services.mcp = s.servers;
        services.watched = s.watched;
        services.state_writer = s.writer;
        services.knowledge = s.knowledge;
        auto pool = spawn_dispatcher_pool(system, s.context, s.configuration, std::move(services));
        if (s.claiming)
          self->send(pool, start_claiming{});
        return plain(pool);
      });
  add(self, dispensable("librarian", {"store", "state_writer", "workspace"}), [self, &s, &system] {
    return plain(spawn_librarian(
        system, s.context, s.configuration, child<state_writer_actor>(self, "state_writer"),
        child<workspace_actor>(self, "workspace"), child<store_actor>(self, "store")));
  });
  add(self, vital("planner", {"store", "governor", "workspace"}), [self, &s, &system] {
    return plain(spawn_planner(system, {s.context, child<store_actor>(self, "store"),
                                        child<governor_actor>(self, "governor"),
                                        child<workspace_actor>(self, "workspace")}));
  });
  // Maintenance.
  add(self, dispensable("retention", {"store", "workspace"}), [self, &s, &system] {
    return plain(spawn_retention(system, s.context, s.configuration,
                                 child<store_actor>(self, "store"),
                                 child<workspace_actor>(self, "workspace")));
  });
}

kernel_parts parts_of(self_pointer self, const std::string& kernel_id) {
  auto& s = self->state;
  return {s.context,
          s.configuration,
          kernel_id,
          child<store_actor>(self, "store"),
          child<state_writer_actor>(self, "state_writer"),
          child<git_committer_actor>(self, "git_committer"),
          child<graph_recorder_actor>(self, "graph_recorder"),
          child<librarian_actor>(self, "librarian"),
          child<planner_actor>(self, "planner"),
          child<dispatcher_pool_actor>(self, "dispatchers"),
          child<workspace_actor>(self, "workspace"),
          s.knowledge};
}

} // namespace

void node_impl::add_kernel(self_pointer self, const std::string& kernel_id) {
  auto rule =
      dispensable(kernel_child(kernel_id), {"store", "dispatchers", "state_writer", "git_committer",
                                            "graph_recorder", "librarian", "planner", "workspace"});
  // The others go on without it; without any the node would do nothing.
  rule.group = "kernels";
  add(self, std::move(rule),
      [self, kernel_id] { return plain(spawn_kernel(self->system(), parts_of(self, kernel_id))); });
}

namespace {

void watch(self_pointer self, const gateway_actor& gateway,
           const std::shared_ptr<event_watcher>& w) {
  self->send(gateway, watch_events{{}, [w](const std::string& line) {
                                     if (!w->gone && !w->sink(line))
                                       w->gone = true;
                                     return !w->gone;
                                   }});
}

void forget_gone_watchers(self_pointer self) {
  std::erase_if(self->state.watchers, [](const auto& w) { return w->gone.load(); });
}

void add_watcher(self_pointer self, watch_events& m) {
  auto w = std::make_shared<event_watcher>();
  w->sink = std::move(m.sink);
  forget_gone_watchers(self);
  self->state.watchers.push_back(w);
  if (auto g = child<gateway_actor>(self, "gateway"))
    watch(self, g, w);
}

} // namespace

void node_impl::add_gateway(self_pointer self) {
  auto& s = self->state;
  std::vector<std::string> earlier{"store",     "permits",      "governor",      "workspace",
                                   "mcp",       "state_writer", "git_committer", "graph_recorder",
                                   "knowledge", "inspector",    "approvals",     "dispatchers",
                                   "librarian", "planner"};
  for (const auto& k : s.configuration->kernels)
    earlier.push_back(kernel_child(k.kernel_id));
  add(self, vital("gateway", std::move(earlier)), [self, &s] {
    gateway_parts parts;
    parts.context = s.context;
    parts.configuration = s.configuration;
    parts.started_with = s.started_with;
    parts.store = child<store_actor>(self, "store");
    parts.permits = child<permits_actor>(self, "permits");
    parts.governor = child<governor_actor>(self, "governor");
    parts.approvals = child<approvals_actor>(self, "approvals");
    parts.mcp = child<mcp_actor>(self, "mcp");
    parts.workspace = child<workspace_actor>(self, "workspace");
    parts.state_writer = child<state_writer_actor>(self, "state_writer");
    parts.git_committer = child<git_committer_actor>(self, "git_committer");
    parts.graph_recorder = child<graph_recorder_actor>(self, "graph_recorder");
    parts.knowledge = child<knowledge_actor>(self, "knowledge");
    parts.inspector = child<knowledge_actor>(self, "inspector");
    parts.dispatchers = child<dispatcher_pool_actor>(self, "dispatchers");
    parts.librarian = child<librarian_actor>(self, "librarian");
    parts.planner = child<planner_actor>(self, "planner");
    for (const auto& k : s.configuration->kernels)
      parts.kernels[k.kernel_id] = child<kernel_actor>(self, kernel_child(k.kernel_id));
    parts.tree = tree_source_actor(root_impl(self));
    parts.watched = s.watched;
    auto gateway = spawn_gateway(self->system(), std::move(parts));
    forget_gone_watchers(self);
    for (const auto& w : s.watchers)
      watch(self, gateway, w);
    return plain(gateway);
  });
}

namespace {

/// The gateway answers the asker itself, also when it ends before; what it never saw bounces.
api_promise ask_gateway(self_pointer self, api_request& m) {
  auto promise = self->make_response_promise<result<api_response>>();
  if (auto gateway = child<gateway_actor>(self, "gateway"))
    return promise.delegate(gateway, std::move(m));
  answer<api_response>(
      promise, fail(errc::actor_down, "the gateway is being restarted", "gateway", "try again"));
  return promise;
}

/// What waits until nothing is being started anew.
void look_behind_renewal(self_pointer self) {
  auto& s = self->state;
  end_reload(self);
  if (s.stop_behind_renewal && s.shell->changing().empty())
    shut_down(self, *s.stop_behind_renewal);
}

void on_down(self_pointer self, caf::down_msg& m) {
  if (!self->state.shell->on_down(m))
    return;
  if (self->state.shell->shutting_down())
    stop_tree(self);
  else if (self->state.stopping)
    look_at_drain(self);
  else
    reconcile(self);
  if (self->state.shell->shutting_down())
    return;
  look_behind_renewal(self);
  record_restarts(self);
}

root_impl::behavior_type root_behavior(self_pointer self, node_context_ptr context,
                                       configuration_ptr configuration, reload_hook on_reload) {
  install_handlers(self, "root");
  self->set_down_handler([self](caf::down_msg& m) { on_down(self, m); });
  auto& s = self->state;
  s.context = context;
  s.configuration = s.started_with = s.homes_with = configuration;
  s.on_reload = std::move(on_reload);
  arm_faults(*context, *configuration);
  s.shell = std::make_unique<supervisor_shell<root_impl::base>>(
      self, "root", context->ports.clock, context->ports.random, vital_intensity);
  s.shell->record_in(context->restarts);
  if (context->after_crash)
    context->restarts->note({"root", "the previous node crashed", context->ports.clock->now()});
  add_keepers(self);
  add_loop(self);
  for (const auto& k : configuration->kernels)
    add_kernel(self, k.kernel_id);
  add_gateway(self);
  reconcile(self);
  beat(self);
  return {
      [self](api_request& m) { return ask_gateway(self, m); },
      [self](watch_events& m) { add_watcher(self, m); },
      [self](start_claiming&) {
        if (self->state.stopping)
          return;
        self->state.claiming = true;
        if (auto d = child<dispatcher_pool_actor>(self, "dispatchers"))
          self->send(d, start_claiming{});
      },
      [self](reload_order& m) { return reload(self, m); },
      [self](reload_request& m) { return reload(self, m); },
      [self](reload_taken& m) { on_taken(self, m); },
      [self](reload_overdue& m) { on_overdue(self, m); },
      [self](tree_query&) { return tree_of(self); },
      [self](actor_order& m) { return obey(self, m); },
      [self](shutdown_order& m) { shut_down_in_turn(self, m.grace); },
      [self](hurry_order&) {
        if (const auto grace = self->state.stop_behind_renewal)
          shut_down(self, *grace); // it waits for nothing any more, and drains first
        if (auto d = child<dispatcher_pool_actor>(self, "dispatchers"))
          self->send(d, hurry_order{});
      },
      [self](supervise_tick&) {
        reconcile(self);
        look_behind_renewal(self);
      },
      [self](stop_overdue& m) { self->state.shell->on_overdue(m); },
      [self](kernels_stopped&) { stop_tree(self); },
      [self](heartbeat_tick&) { beat(self); },
      [self](pong& m) { self->state.shell->on_pong(self->current_sender(), m); },
  };
}

} // namespace

root_actor spawn_root(caf::actor_system& system, node_context_ptr context,
                      configuration_ptr configuration, reload_hook on_reload) {
  return system.spawn(root_behavior, std::move(context), std::move(configuration),
                      std::move(on_reload));
}

} // namespace boyd
