#pragma once

#include "actors/node/context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the planner: stateless, it decides from what a request carries.
planner_actor spawn_planner(caf::actor_system& system, node_context_ptr context);

} // namespace boyd
