#pragma once

#include "adapters/http/control_server.hpp"
#include "boyd/core/result.hpp"
#include "live_node.hpp"

#include <memory>

namespace boyd::app {

/// Who asks in a command that answers itself.
api_caller this_process();

/// Serves the control API of `node` on the home's socket. The node must outlive the server's stop.
result<std::unique_ptr<adapters::control_server>> serve(live_node& node, const place& where);

} // namespace boyd::app
