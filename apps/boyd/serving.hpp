#pragma once

#include "adapters/control/control_server.hpp"
#include "boyd/core/result.hpp"
#include "live_node.hpp"

#include <memory>
#include <string>

namespace boyd::app {

/// Who asks in a command that answers itself.
api_caller this_process();

/// Refused where Boyd started this process, or something above it: an agent's program, say.
result<void> only_a_person(const std::string& what);

/// Serves the control API of `node` on the home's socket. The node must outlive the server's stop.
result<std::unique_ptr<adapters::control_server>> serve(live_node& node, const place& where);

} // namespace boyd::app
