#pragma once

#include "boyd/core/run_usage.hpp"

#include <nlohmann/json.hpp>

namespace boyd::queue {

/// usage_json's object; null when nothing is known.
nlohmann::json usage_object(const run_usage& u);

} // namespace boyd::queue
