#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/config/load.hpp"
#include "boyd/core/result.hpp"
#include "boyd/ports/process_runner.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::exec {

/// Who runs, for what, where. Every value is a name, a UUID, a number or an absolute path, so none
/// of them can begin with '-' and be read as a flag; `build_command` refuses one that does.
struct run_identity {
  std::string home;        ///< the node's home (BOYD_HOME), absolute
  std::string kernel_home; ///< HOME/kernel/<kernel_id>, absolute
  std::string kernel_id;
  std::string cycle_id;
  std::string agent_id;
  std::string dispatch_id;
  int attempt = 1;
  std::int64_t fence = 1; ///< of the claim: greater than that of every earlier run of the dispatch
  std::string session_id; ///< make_session_id(agent_id, run_id)
};

/// "kernel-<agent_id>-<run_id>" (docs/executors.md).
std::string make_session_id(std::string_view agent_id, std::string_view run_id);

/// A file the caller must write (0600, `content`) before the start and remove after the end.
struct prompt_file {
  std::string path; ///< HOME/run/prompts/<dispatch_id>-<attempt>.txt
  std::string content;
};

/// A command ready to start.
struct command_plan {
  process_spec process;
  /// Set when argv names {prompt_file}; stdin is then empty.
  std::optional<prompt_file> prompt;
};

/// What the working directory of a program must not lead out of, where agents may have made a link
/// of a part of its path: the kernel's home for one below that, else nothing.
std::string bound_of_directory(const std::string& directory, const run_identity& who);

/// The environment of a run, sorted by name, later rules over earlier ones:
///  1. let through when set: PATH (else `default_path`) HOME USER LOGNAME LANG LC_* TZ TMPDIR TERM
///     SHELL;
///  2. `env_pass` names, when set;
///  3. `env`;
///  4. BOYD_HOME BOYD_KERNEL_HOME BOYD_KERNEL_ID BOYD_CYCLE_ID BOYD_AGENT_ID BOYD_DISPATCH_ID
///     BOYD_ATTEMPT BOYD_FENCE BOYD_SESSION_ID, which nothing overrides.
/// `invalid_configuration` for a name that is empty or holds '=' or NUL.
result<std::vector<std::pair<std::string, std::string>>>
build_environment(const config::command_executor& command, const run_identity& who,
                  const config::environment_lookup& environment);

/// PATH of a run whose node has none.
inline constexpr std::string_view default_path = "/usr/local/bin:/usr/bin:/bin";

/// The process of one attempt. No shell unless `command.shell` is set (then /bin/sh -c). The prompt
/// goes to stdin, or to a file when an argument holds {prompt_file}. Replaced in argv, once and
/// without rescanning: {prompt_file} {session_id} {agent_id} {cycle_id} {dispatch_id} {kernel_id}
/// {attempt} {kernel_home} {home}; other {words} stay. The prompt itself is never an argument: it
/// could begin with '-', and arguments are visible to every user of the machine. In `shell:`
/// nothing is replaced (use $BOYD_… variables): text pasted into a script is an injection.
/// An empty cwd means the kernel's home.
result<command_plan> build_command(const config::command_executor& command, std::string prompt,
                                   const run_identity& who,
                                   const config::environment_lookup& environment);

/// The process of a `require: {command: …}` check: same directory, environment and placeholders
/// ({prompt_file} excepted), empty stdin.
result<process_spec> build_check(const std::vector<std::string>& argv,
                                 const config::command_executor& command, const run_identity& who,
                                 const config::environment_lookup& environment);

} // namespace boyd::exec
