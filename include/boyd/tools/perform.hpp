#pragma once

#include "boyd/config/models.hpp"
#include "boyd/core/time.hpp"
#include "boyd/ports/confined_files.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/process_runner.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/policy.hpp"
#include "boyd/tools/result_text.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boyd::tools {

/// Under what a call was let through. It is looked at again where a link leads elsewhere inside the
/// workspace, and for each file of a search.
struct permission {
  config::action_policy policy;
  std::vector<std::string> tools;
  int rule = 0; ///< of the decision about the call itself; what it lets through is not asked again
  /// Of a file that is written: the SHA-256 of what a person's word was about; empty: of no file.
  /// Something else that stands there by now is not replaced.
  std::optional<std::string> before{};
};

/// Carries out a call of a file tool below `workspace` (absolute). Blocking, at most for some tens
/// of seconds on a disk that answers: call from a worker. Everything that goes wrong is an outcome
/// with `is_error`, in words for the model. Threads: any.
///
/// read_file: at most `tool_result_bytes`, whole lines; says what is missing and how to go on. A
/// binary file is described. search_text reads files that neither a rule about search_text nor one
/// about read_file denies, and says what it passed over.
tool_outcome perform(const file_call& call, const std::string& workspace,
                     const permission& permission, const result_place& place,
                     confined_files& inside, file_system& files);

/// A command ready to start.
struct command_request {
  process_spec process;
  milliseconds timeout{0};
};

/// The process of a call. `environment`: exactly what the command gets (exec::build_environment).
/// Its directory is below `workspace` by name; what a command does there its sandbox decides, not
/// its directory. `most`: the run's remaining time, not less than a millisecond.
result<command_request> command_of(const run_command_call& call, const std::string& workspace,
                                   std::vector<std::pair<std::string, std::string>> environment,
                                   milliseconds most);

/// How a command ended, for the model: its exit code or signal, then its output (already capped, by
/// exec::output_keeper, with the missing bytes said).
std::string command_text(const process_exit& end, std::string_view output, bool timed_out);

} // namespace boyd::tools
