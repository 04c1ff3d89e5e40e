#pragma once

#include "boyd/config/agent_cli.hpp"
#include "boyd/exec/command_line.hpp"

#include <string>

namespace boyd::exec {

/// What changes from run to run of one agent CLI.
struct cli_run {
  std::string prompt;
  std::string session;      ///< to go on with; empty: a new one
  std::string directory;    ///< the worktree; empty: the executor's `cwd`, else the kernel's home
  std::string permission{}; ///< instead of the executor's; may be empty
};

/// The process of one attempt. The adapter's argv with its placeholders replaced, once and without
/// rescanning: {model} {permission} {session} {workspace} {prompt_file}, and those of
/// build_command. An argument, or a group of them, with a placeholder that has no value is left
/// out. `invalid_configuration` when a value would be read as a flag: it begins with '-' and its
/// placeholder begins the argument. Environment: build_environment's, over the adapter's `env`.
result<command_plan> build_agent_command(const config::agent_cli_executor& cli, cli_run run,
                                         const run_identity& who,
                                         const config::environment_lookup& environment);

/// The executor's part that its checks share: directory and environment.
config::command_executor checks_of(const config::agent_cli_executor& cli, const cli_run& run);

} // namespace boyd::exec
