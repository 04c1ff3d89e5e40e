#pragma once

#include "boyd/core/time.hpp"
#include "messages/message.hpp"

namespace boyd {

/// Ordered shutdown: no new cycles, drain with `grace`, final records, then everybody stops.
struct shutdown_order : message {
  milliseconds grace{0};
};

} // namespace boyd
