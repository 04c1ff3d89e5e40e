#pragma once

#include "boyd/config/configuration.hpp"

#include <string>
#include <vector>

namespace boyd::config {

/// The keys whose value in `now` waits for the next start, because the node works with what
/// `started_with` said; sorted. Everything else takes effect at the reload.
std::vector<std::string> waiting_for_restart(const configuration& started_with,
                                             const configuration& now);

/// What `now` has other than `before`, one line each: kernels, agents, providers and servers of
/// tools that were added, removed or changed, with the names of the keys; the node's keys. Empty:
/// nothing. Values are not told. Pure.
std::vector<std::string> changes(const configuration& before, const configuration& now);

/// True when the keepers of kernel homes, started with `known`, must be started anew to work by
/// `now`: another author, or auto_commit, of a kernel that they know or will be asked about.
bool home_settings_differ(const configuration& known, const configuration& now);

} // namespace boyd::config
