#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts it: maintenance, without which the node does its work. It looks for the first time soon,
/// then every `housekeeping.retention`, and removes rows in bounded batches, then what executions
/// without a row have left (actors/sweeper); in a command that only asks it does nothing.
retention_actor spawn_retention(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration, store_actor store,
                                workspace_actor workspace);

} // namespace boyd
