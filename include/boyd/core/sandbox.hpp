#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What keeps a child process in: a description that travels with the request to start it
/// (process_spec). Data alone, so that it is the same in simulation.
namespace boyd {

/// How a program's files are confined.
enum class sandbox_kind : std::uint8_t {
  limits,     ///< not at all: limits of resources, no new privileges, and what seccomp can do
  landlock,   ///< by Landlock: what is not granted is refused
  bubblewrap, ///< by bubblewrap: what is not granted is not there
};

/// What a machine can do, found out once.
struct sandbox_abilities {
  int landlock_abi = 0;           ///< 0: the kernel has none, or it is switched off
  bool seccomp = false;           ///< system calls can be filtered
  std::string bubblewrap;         ///< the program; empty: not usable
  std::string bubblewrap_problem; ///< why not; empty when it is
  bool root = false;              ///< the node runs as root: some limits do not count
  /// A program can have mounts of its own, so that a directory in one that it may write is
  /// read-only for it under Landlock, too.
  bool own_mounts = false;

  bool operator==(const sandbox_abilities&) const = default;
};

/// Limits of one process (setrlimit); 0: as the node has them. A core file is never written.
struct sandbox_limits {
  std::uint64_t memory = 0;    ///< RLIMIT_DATA, bytes: what it writes to, not what it reserves
  std::uint64_t file_size = 0; ///< RLIMIT_FSIZE, bytes of one file
  std::uint64_t processes = 0; ///< RLIMIT_NPROC, of all of the user's; root is not bound by it
  std::uint64_t open_files = 0;
  std::uint64_t cpu_seconds = 0; ///< of one process

  bool operator==(const sandbox_limits&) const = default;
};

/// Paths are absolute; one that is not there grants nothing.
struct sandbox_spec {
  sandbox_kind kind = sandbox_kind::limits;
  std::vector<std::string> writable; ///< files, and directories with all that is in them
  std::vector<std::string> readable; ///< may be read and executed
  /// Neither, unless a path of the two lists lies below it: where a granted directory has one of
  /// these in it, what lies beside it is granted instead of the directory.
  std::vector<std::string> hidden;
  /// May be read, not written, in whatever writable directory they lie; bubblewrap and
  /// `own_mounts`.
  std::vector<std::string> read_only;
  std::string scratch;       ///< a directory that is made for it, writable; empty: none
  bool network = true;       ///< false: no sockets but pairs
  bool unix_sockets = false; ///< false: it makes no local sockets, and so reaches none
  /// TCP ports that it may connect to, when there are any (Landlock's ABI 4 and later).
  std::vector<std::uint16_t> ports;
  sandbox_limits limits;
  int landlock_abi = 0;    ///< for `landlock`: what may be asked of the kernel
  bool own_mounts = false; ///< for `landlock`: `read_only` is kept by mounts
  std::string bubblewrap;  ///< for `bubblewrap`: the program

  bool operator==(const sandbox_spec&) const = default;
};

} // namespace boyd
