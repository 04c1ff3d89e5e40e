#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the keeper of the node's index of memory with its worker.
knowledge_actor spawn_knowledge(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration);

} // namespace boyd
