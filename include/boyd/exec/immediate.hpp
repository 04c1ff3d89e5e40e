#pragma once

#include "boyd/exec/attempt.hpp"

namespace boyd::exec {

/// Whether an attempt with this scripted answer is over in the moment it begins: it has no delay,
/// and nothing is required that needs a file or a process.
bool is_immediate(const config::script_executor::answer& answer,
                  const std::vector<config::requirement>& require);

/// The answer of the run behind so many of this agent, when it is a script's in the configuration
/// and immediate; else null. The agent's own.
const config::script_executor::answer* immediate_answer(const config::agent& agent,
                                                        std::uint64_t earlier_runs);

/// Such an attempt from its beginning to its end, by attempt_core's rules. Error `bug` when the
/// options are not immediate after all.
result<run_outcome> run_immediate(attempt_options options, steady_time now);

} // namespace boyd::exec
