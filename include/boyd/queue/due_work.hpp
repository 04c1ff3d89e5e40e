#pragma once

#include "boyd/ports/dispatch_store.hpp"

#include <cstddef>
#include <vector>

namespace boyd::queue {

/// So much new work is told of by itself; for more a question to the store is cheaper.
inline constexpr std::size_t most_told = 16;

/// Adds it to what is told, where each agent stands once, with the best priority of its work.
void add_due(std::vector<store::due_agents::row>& all, const store::due_agents::row& one);

} // namespace boyd::queue
