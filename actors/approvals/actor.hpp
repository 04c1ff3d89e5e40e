#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// The inbox of what people are to decide: puts the wishes of this node's runs into the store,
/// wakes the runs when somebody has decided (here or on another node), has what is over swept, and
/// tells people of new requests.
approvals_actor spawn_approvals(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration, store_actor store);

} // namespace boyd
