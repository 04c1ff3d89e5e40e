#pragma once

#include "actors/node/context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the keeper of files in agents' workspaces with its worker.
workspace_actor spawn_workspace(caf::actor_system& system, node_context_ptr context);

} // namespace boyd
