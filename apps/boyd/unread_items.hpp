#pragma once

#include "boyd/config/load.hpp"
#include "home.hpp"

#include <string>
#include <vector>

namespace boyd::app {

/// What enabled agents name in `context:` and in their prompts and could not read as it is now, as
/// warnings about the file as a whole. `agent_id`: of this agent alone; empty: of all. Agents whose
/// directory is not there yet, and commands, are passed over. Blocking: reads the files.
std::vector<config::finding> unread_items(const config::configuration& configuration,
                                          const place& where, const std::string& agent_id = {});

} // namespace boyd::app
