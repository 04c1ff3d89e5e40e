#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/time.hpp"
#include "messages/api.hpp"
#include "messages/message.hpp"

#include <memory>

namespace boyd {

/// Ordered shutdown: no new cycles, drain with `grace`, final records, then everybody stops.
struct shutdown_order : message {
  milliseconds grace{0};
};

/// A new configuration from the gateway, and what is answered when every part works by it.
struct reload_request : message {
  std::shared_ptr<const config::configuration> configuration;
  api_response answer;
};

} // namespace boyd
