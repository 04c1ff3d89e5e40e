#pragma once

#include "cli_store.hpp"

namespace boyd::app {

/// `boyd improve` and its verbs.
void add_improve_verb(CLI::App& app, arguments& args, const verb_maker& verb);

} // namespace boyd::app
