#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the keeper of the kernel homes' files with its worker.
state_writer_actor spawn_state_writer(caf::actor_system& system, node_context_ptr context,
                                      configuration_ptr configuration);

} // namespace boyd
