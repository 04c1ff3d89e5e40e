#pragma once

#include "boyd/core/limits.hpp"
#include "boyd/core/sandbox.hpp"

#include <cstddef>
#include <cstdint>

/// What the node and the process host say to each other over a SOCK_SEQPACKET pair. Both are the
/// same program, so the layout needs no version.
namespace boyd::adapters::wire {

/// The host's descriptors after its start.
inline constexpr int control_fd = 3;
inline constexpr int lock_fd = 4;

/// Node → host. `spawn` carries four descriptors (SCM_RIGHTS): the payload (a memfd, so that argv
/// and environment have no size limit here) and the child's stdin, stdout, stderr.
struct request {
  enum class kind_t : std::uint32_t { spawn = 1, signal = 2, ping = 3 };
  kind_t kind = kind_t::spawn;
  std::int32_t signal = 0;
  std::uint64_t handle = 0;
};
inline constexpr std::size_t spawn_descriptors = 4;

/// The part of a sandbox_spec that is no text.
struct sandbox_head {
  std::uint32_t present = 0;
  sandbox_kind kind = sandbox_kind::limits;
  bool network = true;
  bool unix_sockets = false;
  bool own_mounts = false;
  std::int32_t landlock_abi = 0;
  sandbox_limits limits;
  std::uint32_t writable_count = 0;
  std::uint32_t readable_count = 0;
  std::uint32_t hidden_count = 0;
  std::uint32_t read_only_count = 0;
  std::uint32_t port_count = 0;
};

/// Begins the payload; followed by NUL-terminated strings: the directory, argv, environment; with a
/// sandbox its scratch directory, bubblewrap, the four lists of paths and the ports in figures.
struct payload_head {
  std::uint64_t max_open_files = 0;
  std::uint64_t max_processes = 0;
  std::int32_t umask = -1; ///< negative: inherited
  std::uint32_t argument_count = 0;
  std::uint32_t environment_count = 0;
  sandbox_head sandbox;
};

/// What could not be done between fork and exec.
enum class spawn_step : std::uint32_t {
  receive = 1,
  fork,
  descriptors,
  limits,
  directory,
  sandbox,
  exec,
  bubblewrap ///< it ended without having executed the program; its own words are on stderr
};

/// Host → node, once per spawn: the process could not start, or it ended and nothing of its run is
/// left; and once per ping.
struct reply {
  enum class kind_t : std::uint32_t { failed = 1, exited = 2, pong = 3 };
  kind_t kind = kind_t::exited;
  spawn_step step = spawn_step::exec;
  std::uint64_t handle = 0;
  std::int32_t error_number = 0;
  std::int32_t wait_status = 0; ///< as from wait4
  std::int64_t wall_ms = 0;
  std::int64_t user_ms = 0;
  std::int64_t system_ms = 0;
  std::int64_t max_rss_kb = 0;
};

/// How long the host waits for killed remains of a run before it reports the end all the same.
inline constexpr milliseconds cleanup_bound = limits::term_grace;

/// The name of the variable that marks a run's processes.
inline constexpr const char* run_variable = "BOYD_RUN";

} // namespace boyd::adapters::wire
