#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_addr.hpp>
#include <caf/fwd.hpp>

#include <cstdint>

namespace boyd {

/// Begin.
struct begin_sweep : message {};

/// What was removed, or would be.
struct sweep_report : message {
  std::uint64_t executions = 0; ///< folders of dispatches that the store has removed
  std::uint64_t execution_bytes = 0;
  std::uint64_t contents = 0; ///< files of context/objects that no record names
  std::uint64_t content_bytes = 0;
};

/// Removes what executions have left, once their dispatches are gone from the store: folders that
/// nobody has touched for `node.retention`, then the contents that no record names any more.
using sweeper_actor = caf::typed_actor<
    // Once; the actor ends with its answer.
    caf::replies_to<begin_sweep>::with<answers<sweep_report>>>;

struct sweep_order {
  node_context_ptr context;
  milliseconds retention{0};
  bool dry_run = false;
  store_actor store;
  workspace_actor workspace;
  caf::actor_addr asker; ///< when it ends, so does the sweep
};

/// The longest time that one step may take; the whole takes as many steps as there are records.
inline constexpr milliseconds sweep_limit = 10min;

/// Starts a sweep: event-driven, in bounded steps of the workspace's workers.
sweeper_actor spawn_sweeper(caf::actor_system& system, sweep_order order);

} // namespace boyd
