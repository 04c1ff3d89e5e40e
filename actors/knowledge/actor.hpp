#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the keeper of the node's index of memory with its worker.
knowledge_actor spawn_knowledge(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration);

/// Starts one that answers people's questions about the log (knowledge_session::task::questions),
/// which may take long, from the same index: nobody else waits for them.
knowledge_actor spawn_inspector(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration);

} // namespace boyd
