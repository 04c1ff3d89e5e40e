#pragma once

#include "actors/node/context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

namespace boyd {

/// Removes finished rows that are older than `node.retention`, in bounded batches. Maintenance: the
/// node does its work without it, so the root parks it when it fails too often.
using retention_actor = caf::typed_actor<
    // A new, valid configuration.
    caf::reacts_to<reload_order>>;

/// Starts it; it looks for the first time soon, then every `housekeeping.retention`.
retention_actor spawn_retention(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration, store_actor store);

} // namespace boyd
