#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the librarian. It never blocks, and what it cannot have becomes a `problem` of its
/// answer: a cycle does not fail for lack of context. Ask it with gather_limit and wake_limit
/// (actors/librarian/core.hpp) as time-outs.
librarian_actor spawn_librarian(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration, state_writer_actor state_writer,
                                workspace_actor workspace, store_actor store);

} // namespace boyd
