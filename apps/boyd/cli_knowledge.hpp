#pragma once

#include "cli_store.hpp"

namespace boyd::app {

/// `boyd kg` with its verbs, and `boyd graph`.
void add_knowledge_verbs(CLI::App& app, arguments& args, const verb_maker& verb);

} // namespace boyd::app
