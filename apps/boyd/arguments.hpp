#pragma once

#include <cstddef>
#include <string>

namespace boyd::app {

/// The command line after parsing; an option that was not given is empty or zero.
struct arguments {
  std::string verb; ///< "cycle", "dispatches show", …

  // everywhere
  std::string home;   ///< --home; see home_of
  std::string config; ///< --config
  bool json = false;
  bool no_color = false;
  bool verbose = false;

  // of single verbs
  std::string id;       ///< dispatches show|retry|cancel
  std::string agent;    ///< --agent, or the positional of why
  std::string kernel;   ///< --kernel
  std::string cycle;    ///< --cycle
  std::string status;   ///< --status
  std::string at;       ///< --at
  std::string from;     ///< state diff FROM; init --from FILE
  std::string to;       ///< state diff TO
  std::string path;     ///< --path
  std::string before;   ///< --before
  std::string reason;   ///< --reason
  std::string shell;    ///< completion SHELL
  std::string name;     ///< init --name
  std::string schedule; ///< init --schedule
  std::size_t limit = 0;
  bool no_input = false;
  bool watch = false;
  bool prompts = false;
  bool markdown = false;
};

} // namespace boyd::app
