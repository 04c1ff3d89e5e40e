#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the knowledge graph's keeper with its worker.
graph_recorder_actor spawn_graph_recorder(caf::actor_system& system, node_context_ptr context);

} // namespace boyd
