#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the durable store's keeper with its worker. `configuration` names the place.
store_actor spawn_store(caf::actor_system& system, node_context_ptr context);

} // namespace boyd
