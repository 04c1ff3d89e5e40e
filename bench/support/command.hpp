#pragma once

#include "boyd/core/result.hpp"

#include <string>
#include <utility>
#include <vector>

namespace boyd::bench {

/// Runs a program to its end and returns its standard output. `set` are variables over this
/// process's own environment. Blocking, without a limit: for programs that end by themselves. Error
/// `io_error` when it cannot be started or exits with another code than 0.
result<std::string> run_command(const std::vector<std::string>& argv,
                                const std::vector<std::pair<std::string, std::string>>& set = {});

} // namespace boyd::bench
