#pragma once

#include "actors/supervision/core.hpp"
#include "messages/health.hpp"

#include <string>
#include <vector>

namespace boyd {

/// How a pool is: not well without its children, whatever became of them, unless it is `draining`.
/// `store_problem`: why the store cannot be read, which comes first; empty when it can.
part_health pool_health(const std::vector<child_view>& children, const std::string& store_problem,
                        bool draining);

} // namespace boyd
