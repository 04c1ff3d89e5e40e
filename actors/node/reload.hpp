#pragma once

#include "boyd/config/configuration.hpp"

#include <string>
#include <vector>

namespace boyd {

/// The keys whose value in `now` waits for the next start, because the node works with what
/// `started_with` said; sorted. Everything else takes effect at the reload.
std::vector<std::string> waiting_for_restart(const config::configuration& started_with,
                                             const config::configuration& now);

/// True when the keepers of kernel homes, started with `known`, must be started anew to work by
/// `now`: another author, or auto_commit, of a kernel that they know or will be asked about.
bool home_settings_differ(const config::configuration& known, const config::configuration& now);

} // namespace boyd
