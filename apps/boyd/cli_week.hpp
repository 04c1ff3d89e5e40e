#pragma once

#include "cli_store.hpp"

namespace boyd::app {

/// `boyd logs`, `next`, `reload`, `backup` and `restore`.
void add_week_verbs(CLI::App& app, arguments& args, const verb_maker& verb);

} // namespace boyd::app
