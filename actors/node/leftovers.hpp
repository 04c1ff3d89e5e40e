#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <string>

namespace boyd {

class file_system;
class process_runner;

/// Removes the prompt files that attempts of a killed node left in HOME/run/prompts; returns how
/// many. Only for whoever holds the home's lock, before any attempt runs: the lock is inherited by
/// the process host, so nobody reads them any more. At most `prompt_files_at_start` are removed;
/// the next start takes the rest. What is not a regular file named *.txt stays. Blocking.
result<std::size_t> remove_leftover_prompts(file_system& files, const std::string& home);

/// The same for the temporary directories of runs in HOME/run/tmp; returns how many. A program
/// removes them: what an agent left there may be much.
result<std::size_t> remove_leftover_scratch(file_system& files, process_runner& processes,
                                            const std::string& home);

/// Files that one start removes at most.
inline constexpr std::size_t prompt_files_at_start = 10'000;

} // namespace boyd
