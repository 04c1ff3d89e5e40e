#pragma once

#include "../arguments.hpp"
#include "boyd/core/result.hpp"

#include <string>
#include <vector>

namespace boyd::app {

/// One option or flag, as completion and help know it.
struct cli_option {
  std::vector<std::string> names; ///< with their dashes
  std::string help;
  bool takes_value = false;
  /// What its value names, for `boyd complete`: agents, kernels, providers, servers, runs,
  /// approvals; "files" for paths; empty: something else.
  std::string kind;
  std::vector<std::string> choices;
};

/// One verb with what it takes; the root has an empty name.
struct cli_verb {
  std::string name;
  std::string help;
  std::vector<cli_option> options;
  std::vector<std::string> positional_choices;
  std::string positional_kind; ///< as cli_option::kind, of the first positional
  std::vector<cli_verb> verbs;
};

/// What the command line asks for.
struct cli_outcome {
  enum class kind_t { run, print } kind = kind_t::run;
  arguments args;
  std::string text; ///< to print: help
};

/// Reads the command line. Error `invalid_argument` with the nearest verb for a slip; the outcome's
/// `args` are then not known, so `wants_json` looks for --json by itself.
result<cli_outcome> parse_command_line(int argc, const char* const* argv);

/// True when --json stands anywhere among the arguments.
bool wants_json(int argc, const char* const* argv);

/// The whole tree of verbs, for completion.
cli_verb describe_command_line();

} // namespace boyd::app
