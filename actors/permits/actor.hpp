#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the permit broker with the configuration's limits.
permits_actor spawn_permits(caf::actor_system& system, configuration_ptr configuration);

/// The limits of a configuration, as a message.
permit_limits limits_of(const config::configuration& configuration);

} // namespace boyd
