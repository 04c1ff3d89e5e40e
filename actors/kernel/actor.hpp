#pragma once

#include "actors/support/node_context.hpp"
#include "actors/support/role.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

#include <memory>
#include <string>

namespace boyd {

/// What a kernel is made of: handles of earlier siblings.
struct kernel_parts {
  node_context_ptr context;
  configuration_ptr configuration;
  std::string kernel_id;
  store_actor store;
  state_writer_actor state_writer;
  git_committer_actor git_committer;
  graph_recorder_actor graph_recorder;
  librarian_actor librarian;
  planner_actor planner;
  dispatcher_pool_actor dispatchers;
  workspace_actor workspace;
  /// Null: nothing is learned beyond the facts. The kernel goes on when that part is started anew.
  std::shared_ptr<const role<knowledge_actor>> knowledge{};
};

/// Starts the actor that drives one kernel's cycles. It rebuilds what it knows from the store: open
/// slots, a cycle that an earlier life left running, and whether STATE.md shows the latest row.
kernel_actor spawn_kernel(caf::actor_system& system, kernel_parts parts);

} // namespace boyd
