#pragma once

#include "boyd/exec/attempt.hpp"

namespace boyd::exec {

/// Whether an attempt with this scripted answer is over in the moment it begins: it has no delay,
/// and nothing is required that needs a file or a process.
bool is_immediate(const config::script_executor::answer& answer,
                  const std::vector<config::requirement>& require);

/// Such an attempt from its beginning to its end, by attempt_core's rules. Error `bug` when the
/// options are not immediate after all.
result<run_outcome> run_immediate(attempt_options options, steady_time now);

} // namespace boyd::exec
