#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/run_usage.hpp"
#include "boyd/core/sandbox.hpp"
#include "boyd/exec/command_line.hpp"
#include "boyd/ports/process_runner.hpp"

#include <string>
#include <vector>

namespace boyd::exec {

/// What a run has to reach, whatever its settings say. Absolute paths; `~/` in the adapters' lists
/// is taken from the program's HOME.
struct sandbox_places {
  std::vector<std::string> writable; ///< its workspace, working directory, worktree
  std::vector<std::string> readable; ///< its prompt file
  /// What is kept from it: see hidden_from_agents.
  std::vector<std::string> hidden;
  /// What it may not write wherever it may write: see read_only_for_agents.
  std::vector<std::string> read_only{};
  /// Directories that are not writable as a whole, whatever the settings say.
  std::vector<std::string> closed{};
};

/// The node's home, its configuration, the files with keys and passwords that it names, and root's
/// own secrets of the system.
std::vector<std::string> hidden_from_agents(const config::configuration& c,
                                            const std::string& home);

/// The repositories of the kernels' homes (the node writes into them, and who changes them could
/// lead its writes to another place), what they are given to read (context/), and the kernels'
/// `protected_files`.
std::vector<std::string> read_only_for_agents(const config::configuration& c,
                                              const std::string& home);

/// Where the temporary directory of a run is: HOME/run/tmp/<dispatch>-<fence>.
std::string scratch_of(const run_identity& who);

/// Puts the sandbox into `process`, and TMPDIR, XDG_CACHE_HOME and npm's cache into its
/// environment. Which kind depends on the settings and on what the machine can do; what it cannot
/// is in the report. With mode `required` `refused` instead, in words that say what is missing and
/// what to do.
result<sandbox_report> confine(process_spec& process, const config::sandbox_settings& settings,
                               const sandbox_abilities& can, const sandbox_places& places,
                               const run_identity& who);

/// Begins to remove a run's temporary directory, by a program, so that no worker is held up by what
/// was piled up there. What cannot be removed now goes with the next start. Never blocks.
void remove_scratch(process_runner& processes, const std::string& scratch);

/// One line about a machine, for `boyd doctor` and `boyd status`.
std::string describe(const sandbox_abilities& can);

} // namespace boyd::exec
