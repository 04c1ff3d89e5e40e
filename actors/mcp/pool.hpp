#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the supervisor of all servers of tools (docs/executors.md). None runs until it is wanted.
mcp_actor spawn_mcp_pool(caf::actor_system& system, node_context_ptr context,
                         configuration_ptr configuration, workspace_actor workspace,
                         approvals_actor approvals);

} // namespace boyd
