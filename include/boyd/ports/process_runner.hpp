#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/sandbox.hpp"
#include "boyd/core/time.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd {

/// A program to start. No shell is involved.
struct process_spec {
  std::vector<std::string> argv; ///< argv[0] is looked up in the child's PATH when it has no '/';
                                 ///< a relative one with '/' is taken from `cwd`
  std::string cwd;               ///< absolute
  /// `cwd` must lie in this directory, links resolved, at the moment when the process begins;
  /// empty: anywhere. Otherwise it does not start.
  std::string cwd_within;
  std::vector<std::pair<std::string, std::string>> environment; ///< exactly this, nothing inherited
  std::string input;                ///< written to stdin, which is then closed
  bool input_stays = false;         ///< stdin stays open after `input`: see process_runner::write
  std::uint64_t max_open_files = 0; ///< RLIMIT_NOFILE; 0: inherited
  std::uint64_t max_processes = 0;  ///< RLIMIT_NPROC; 0: inherited
  std::optional<unsigned> umask;    ///< nothing: inherited
  /// What it and everything that it starts is kept in; null: nothing. A program whose sandbox
  /// cannot be made is not started.
  std::shared_ptr<const sandbox_spec> sandbox{};
};

/// How a process ended.
struct process_exit {
  bool started = true;     ///< false: it could not be executed, see `start_error`
  std::string start_error; ///< e.g. "exec ./report.sh: No such file or directory"
  int start_errno = 0;
  bool own_limits = false; ///< not started: what its own limits and sandbox left it did not do
  int exit_code = -1;      ///< when it exited by itself
  int signal = 0;          ///< when a signal ended it
  milliseconds wall{0};
  milliseconds user{0};
  milliseconds system{0};
  std::int64_t max_rss_kb = 0;
  /// It was ended because the helper process behind the runner died, and others with it: whose
  /// doing that was is not known.
  bool host_lost = false;
};

enum class output_stream : std::uint8_t { out, err };

/// Callbacks of one process, called from the runner's own thread, in order; they must not block.
/// `on_exit` comes once, last, after both pipes are drained or were abandoned (a daemon that keeps
/// them open is given `limits::term_grace` at most), and after the whole process group is gone.
struct process_events {
  std::function<void(output_stream, std::string_view)> on_output;
  std::function<void(const process_exit&)> on_exit;
};

using process_handle = std::uint64_t;

/// How the helper process behind a runner is doing: the one that forks what is started.
struct process_host_status {
  bool has_host = false;  ///< false: this runner starts without a helper
  bool alive = true;      ///< false: it died, and the next start makes a new one
  int restarts = 0;       ///< new ones since the runner was made
  std::string last_error; ///< of the newest death or failed restart; empty: none yet
  std::string problem;    ///< why nothing can be started just now; empty: all is well
};

/// What may wait to be written to the stdin of one process, bytes.
inline constexpr std::size_t process_input_bytes = 16u << 20;

/// Starts and watches child processes. Each runs in its own process group; nothing stays alive
/// when the node dies. Non-blocking. Threads: any.
class process_runner {
 public:
  virtual ~process_runner() = default;

  /// Takes the process in; every failure to start is reported through `on_exit`.
  virtual result<process_handle> start(process_spec spec, process_events events) = 0;

  /// Adds to the stdin of a process that was started with `input_stays`; written when it reads.
  /// Errors: `overloaded` when more than process_input_bytes wait, nothing is added then;
  /// `not_found` for a process that has ended or was started without. What a process does not read
  /// before it ends is dropped.
  virtual result<void> write(process_handle /*handle*/, std::string_view /*bytes*/) {
    return fail(errc::refused, "this runner's processes take no further input");
  }

  /// Closes that stdin when all of it is written. Otherwise ignored.
  virtual void close_input(process_handle /*handle*/) {}

  /// Sends `signal` to the whole group (and to descendants that left it, when it is SIGKILL). An
  /// unknown or ended handle is ignored.
  virtual void signal(process_handle handle, int signal) = 0;

  /// Processes started and not ended.
  virtual std::size_t running() const = 0;

  /// False: this one has ended, and `on_exit` was called or is about to be. For whoever doubts that
  /// the report will come. A runner that does not know says true.
  virtual bool runs(process_handle /*handle*/) const { return true; }

  /// For `boyd status`.
  virtual process_host_status host() const { return {}; }

  /// Which sandboxes it can make; found out when it was made.
  virtual sandbox_abilities sandbox() const { return {}; }
};

} // namespace boyd
