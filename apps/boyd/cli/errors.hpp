#pragma once

#include "boyd/core/result.hpp"

#include <optional>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace boyd::app {

/// CLI11 only says that something was not expected; a slip in a verb deserves its nearest name.
/// Nothing: every word that stands for a verb is one.
std::optional<error> check_verbs(const CLI::App& app, int argc, const char* const* argv);

/// CLI11's finding, with the way to the verb's own help.
error usage_error(const CLI::App& app, const CLI::ParseError& e);

} // namespace boyd::app
