#pragma once

#include "actors/support/node_context.hpp"
#include "actors/support/role.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

#include <map>
#include <memory>
#include <string>

namespace boyd {

/// What the gateway asks: handles of earlier siblings, and the root for the tree.
struct gateway_parts {
  node_context_ptr context;
  configuration_ptr configuration;
  configuration_ptr started_with; ///< what the node works by until a restart, where that differs
  store_actor store;
  permits_actor permits;
  governor_actor governor;
  approvals_actor approvals;
  mcp_actor mcp;
  workspace_actor workspace;
  state_writer_actor state_writer;
  git_committer_actor git_committer;
  graph_recorder_actor graph_recorder;
  knowledge_actor knowledge;
  knowledge_actor inspector; ///< of people's questions about the log
  dispatcher_pool_actor dispatchers;
  librarian_actor librarian;
  planner_actor planner;
  std::map<std::string, kernel_actor> kernels;
  tree_source_actor tree;
  /// Where runs find whoever hears their output; played by the gateway while it has watchers. Null:
  /// output is not shown.
  std::shared_ptr<role<event_listener_actor>> watched{};
};

/// Starts the control API: the same answers over the socket and for a command without a node
/// (docs/adr/0006).
gateway_actor spawn_gateway(caf::actor_system& system, gateway_parts parts);

} // namespace boyd
