#pragma once

#include "boyd/ports/clock.hpp"

#include <memory>

namespace boyd::adapters {

/// The machine's clocks. Threads: any.
std::shared_ptr<clock_port> make_system_clock();

} // namespace boyd::adapters
