#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// Starts the keeper of the kernels' repositories with its worker.
git_committer_actor spawn_git_committer(caf::actor_system& system, node_context_ptr context,
                                        configuration_ptr configuration);

} // namespace boyd
