#pragma once

#include "cli_store.hpp"

namespace boyd::app {

/// `boyd skills` and its verbs.
void add_skill_verbs(CLI::App& app, arguments& args, const verb_maker& verb);

} // namespace boyd::app
