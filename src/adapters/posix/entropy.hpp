#pragma once

#include "boyd/ports/entropy.hpp"

#include <memory>

namespace boyd::adapters {

/// The kernel's random numbers (getrandom), read in small blocks. Threads: any. Not to be used in a
/// forked child: parent and child would draw the same numbers until the block is used up.
std::shared_ptr<entropy> make_system_entropy();

} // namespace boyd::adapters
