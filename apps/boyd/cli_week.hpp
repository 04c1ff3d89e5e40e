#pragma once

#include "cli_store.hpp"

namespace boyd::app {

/// `boyd logs`, `next`, `reload`, `patches`, `backup` and `restore`.
void add_week_verbs(CLI::App& app, arguments& args, const verb_maker& verb);

/// `boyd agents add` and `rm`.
void add_agent_edits(CLI::App& agents, arguments& args, const verb_maker& verb);

} // namespace boyd::app
