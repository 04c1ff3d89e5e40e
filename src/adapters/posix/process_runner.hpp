#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/process_runner.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace boyd::adapters {

struct process_runner_options {
  /// A descriptor that the process host keeps open until every child is gone: the home's lock, so
  /// that a new node cannot take the home while a child of the old one lives. Not owned; -1: none.
  int inherit_descriptor = -1;
  /// The soft limit of open files that children get; 0: this process's own.
  std::uint64_t open_files = 0;
  /// The program that is executed as the process host. It must link this adapter: the host starts
  /// before its main() (see process_host.hpp).
  std::string executable = "/proc/self/exe";
  /// Between pings of the host while something runs; six times as long while nothing does. A host
  /// that has answered none of three is ended.
  milliseconds host_ping{5'000};
};

/// The real process runner: one thread with epoll over all pipes, and one process host (see
/// process_host.hpp) that is the parent of all children. `spawn_failed` when the host cannot be
/// started.
///
/// * The number of threads does not depend on the number of processes; three descriptors each.
/// * Children see BOYD_RUN=<nonce>-<handle> in addition to their environment: by it descendants
/// that
///   left the process group are found and ended with their run.
/// * When a descriptor, memory or process limit is reached, on_exit says started == false with that
///   errno: transient.
/// * A host that lives but does not answer for 15 s, while something runs, is ended.
/// * When the host dies, its processes are reported as ended by SIGKILL; the host is started again
///   at the next start(), not more often than a backoff allows (limits::backoff_base doubling to
///   limits::backoff_cap); until then starts fail with EAGAIN.
/// * The destructor ends what runs (SIGKILL), reports each through on_exit, and waits for the host
///   (bounded). It must not be called from a callback.
result<std::shared_ptr<process_runner>> make_process_runner(const process_runner_options& options);

} // namespace boyd::adapters
