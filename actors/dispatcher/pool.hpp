#pragma once

#include "actors/support/node_context.hpp"
#include "actors/support/run_services.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the supervisor of all dispatchers (one_for_one). It recovers this node's rows when it is
/// told to start claiming, asks the store whose work is due, and sweeps for dead owners' rows.
dispatcher_pool_actor spawn_dispatcher_pool(caf::actor_system& system, node_context_ptr context,
                                            configuration_ptr configuration, run_services services);

} // namespace boyd
