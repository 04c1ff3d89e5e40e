#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the governors of all providers of `configuration`.
governor_actor spawn_governor(caf::actor_system& system, node_context_ptr context,
                              configuration_ptr configuration);

} // namespace boyd
