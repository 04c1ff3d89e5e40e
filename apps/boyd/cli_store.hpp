#pragma once

#include "arguments.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <functional>
#include <string>

namespace boyd::app {

/// Adds a verb to its parent: name, help, example.
using verb_maker =
    std::function<CLI::App*(CLI::App&, const std::string&, const std::string&, const std::string&)>;

/// `boyd store` and its verbs.
void add_store_verbs(CLI::App& app, arguments& args, const verb_maker& verb);

} // namespace boyd::app
