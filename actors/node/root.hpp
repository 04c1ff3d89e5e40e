#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"
#include "messages/node.hpp"

#include <caf/fwd.hpp>

#include <functional>

namespace boyd {

/// The root supervisor: the only handle that the outside of the actor system needs. It ends with
/// the reason `user_shutdown` after an ordered shutdown, and with an error (its text says which
/// part) when a part was restarted too often: then the process exits non-zero.
using root_actor = caf::typed_actor<
    // A request of the control API: forwarded to the gateway, whichever lives.
    caf::replies_to<api_request>::with<answers<api_response>>,
    // A watcher: forwarded to the gateway.
    caf::reacts_to<watch_events>,
    // The node listens: recover this node's rows, then claim.
    caf::reacts_to<start_claiming>,
    // A new, valid configuration; answered when every part works by it.
    caf::replies_to<reload_order>::with<answers<reload_reply>>,
    // The same for the gateway, which may be one of the parts that are started anew.
    caf::replies_to<reload_request>::with<answers<api_response>>,
    // The whole tree.
    caf::replies_to<tree_query>::with<answers<tree_reply>>,
    // Restart or unpark one part.
    caf::replies_to<actor_order>::with<answers<actor_order_reply>>,
    // Stop in order; the root's end is the answer.
    caf::reacts_to<shutdown_order>,
    // Stop faster.
    caf::reacts_to<hurry_order>>;

/// Called with a configuration that has just taken effect by a reload, on an actor's thread; must
/// not block.
using reload_hook = std::function<void(const config::configuration&)>;

/// Starts the whole node.
root_actor spawn_root(caf::actor_system& system, node_context_ptr context,
                      configuration_ptr configuration, reload_hook on_reload = {});

} // namespace boyd
