#pragma once

#include "boyd/core/run_usage.hpp"
#include "boyd/core/verdict.hpp"

#include <string>
#include <string_view>
#include <vector>

/// A run's usage as the store's column, the API and the spool have it.
namespace boyd::queue {

/// A JSON object; empty text when nothing is known.
std::string usage_json(const run_usage& u);

/// What can be read of it; a member of another type counts as missing.
run_usage usage_from(std::string_view json);

/// {"mode": …, "abi": …, "not_enforced": […]}.
std::string to_json(const sandbox_report& s);

/// What a row remembers of an attempt before the latest.
struct earlier_attempt {
  execution_verdict execution = execution_verdict::none;
  run_usage usage;
};

/// Of dispatch::attempts_json, the oldest first; nothing when it cannot be read.
std::vector<earlier_attempt> earlier_attempts(std::string_view attempts_json);

} // namespace boyd::queue
