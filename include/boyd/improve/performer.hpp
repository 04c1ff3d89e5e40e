#pragma once

#include "boyd/core/result.hpp"
#include "boyd/improve/cycle_core.hpp"
#include "boyd/improve/cycle_state.hpp"
#include "boyd/improve/settings.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/confined_files.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/repository.hpp"
#include "boyd/ports/work_tree.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace boyd::improve {

struct command_order {
  std::vector<std::string> argv;
  std::string cwd;
  std::string input;
  milliseconds timeout{0};
  std::vector<std::pair<std::string, std::string>> environment{}; ///< beside what all get
  /// To be called about once a second while it runs, on any one thread.
  std::function<void()> while_waiting{};
};

struct agent_order {
  std::string name;
  std::string prompt;
  std::function<void()> while_waiting{}; ///< as in command_order
};

struct command_end {
  bool started = true;
  std::string start_error;
  int exit_code = -1; ///< -1: a signal ended it
  bool timed_out = false;
  std::string out;
  std::string err;
  std::uint64_t cut = 0; ///< bytes of output that were not kept
};

/// Who holds the lock of a repository.
struct lock_holder {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0; ///< tells a reused pid from the holder
  std::string nonce;             ///< of one holding
  std::string boot_id;           ///< of the machine's start; empty: not known
};

/// The outside world of a cycle.
struct improve_ports {
  clock_port& clock;
  file_system& files;
  confined_files& inside;
  work_tree& tree;
  repository_provider& repositories;
  /// Runs a program to its end. Blocking.
  std::function<command_end(const command_order&)> run;
  /// The n-th answer of a script executor (in turn), or why there is none.
  std::function<result<answer_end>(std::int64_t n)> scripted;
  /// Asks an agent of `executors`, by its name. Blocking.
  std::function<answer_end(const agent_order&)> agent;
  lock_holder self;
  std::function<bool(const lock_holder&)> lives;
  /// One line about what is being done, for a person who waits. May be empty.
  std::function<void(const std::string&)> tell;
  /// Asked before each step: true ends the cycle here; a resume goes on with it. May be empty.
  std::function<bool()> interrupted;
};

/// What `boyd improve` was told.
struct improve_order {
  std::string root; ///< of the repository, absolute, without links
  improve_settings settings;
  cycle_options options;
  bool resume = false;
  /// An interrupted cycle is gone on with, one whose patch waits for a person stays as it is; else
  /// another one begins.
  bool resume_open = false;
  std::string guidance; ///< what an operator adds to each task; may be empty
};

/// Runs one cycle to its end and returns its state. Errors: `locked` (another cycle works on the
/// repository), `conflict` (an interrupted one has to be resumed), `refused` (nothing to resume),
/// `cancelled` (interrupted; the cycle stays open), `io_error`, `no_space`, `corrupt`. After an
/// error of writing the cycle stays open, too. Blocking.
result<cycle_state> run_cycle(const improve_order& order, const improve_ports& ports);

/// Takes a paused or quarantined task up again (improve::take_up) and returns its id. Errors as
/// those of take_up and run_cycle.
result<std::string> retry_task(const improve_order& order, const improve_ports& ports,
                               const std::string& task);

/// The home's log has these ends of cycles (cycle_state::untold) now. Errors as those of run_cycle.
result<void> mark_told(const improve_order& order, const improve_ports& ports,
                       const std::vector<std::string>& told);

/// Directory of what people read of a cycle: report.json, candidates.json, patch.diff. Pure.
std::string directory_of(const std::string& root, const improve_settings& settings,
                         const std::string& cycle_id);

/// The newest state; `not_found`: no cycle has run.
result<cycle_state> latest_state(const std::string& root, const improve_settings& settings,
                                 file_system& files);

/// Of a lock whose holder does not renew it.
inline constexpr milliseconds lock_ttl{600'000};

} // namespace boyd::improve
