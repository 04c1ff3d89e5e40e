#pragma once

#include "cli_store.hpp"

namespace boyd::app {

/// `boyd explain` and `boyd replay`.
void add_explain_verbs(CLI::App& app, arguments& args, const verb_maker& verb);

} // namespace boyd::app
