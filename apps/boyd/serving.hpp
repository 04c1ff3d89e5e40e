#pragma once

#include "adapters/control/control_server.hpp"
#include "boyd/core/result.hpp"
#include "live_node.hpp"

#include <functional>
#include <memory>
#include <string>

namespace boyd::app {

/// Who asks in a command that answers itself.
api_caller this_process();

/// Refused where Boyd started this process, or something above it: an agent's program, say.
result<void> only_a_person(const std::string& what);

/// Takes the wish of a person that the node stops; `now`: without a grace for running attempts.
/// Called on the server's thread, so it must not block.
using stop_function = std::function<void(bool now)>;

/// Serves the control API of `node` on the home's socket. The node must outlive the server's stop.
/// POST /api/v1/stop goes to `on_stop`, past the actors, which may hang; without it, as of a
/// command with a node of its own, it is refused.
result<std::unique_ptr<adapters::control_server>> serve(live_node& node, const place& where,
                                                        stop_function on_stop = {});

} // namespace boyd::app
