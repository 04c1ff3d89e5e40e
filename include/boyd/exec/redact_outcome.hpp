#pragma once

#include "boyd/core/verdict.hpp"

#include <string>
#include <vector>

namespace boyd::exec {

/// `outcome` without the secrets in its summary, output, error and usage, the first three also
/// where they were cut in the middle of one. Whoever makes an outcome calls this before anybody
/// else sees it, so that rows, the spool, STATE.md, commits, the graph and the log need not think
/// of it. `secrets`: as in configuration::secrets.
run_outcome without_secrets(run_outcome outcome, const std::vector<std::string>& secrets);

} // namespace boyd::exec
