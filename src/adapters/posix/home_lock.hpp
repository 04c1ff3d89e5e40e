#pragma once

#include "../unique_fd.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace boyd::adapters {

/// How long `home_lock::acquire` waits for the helpers of a dead owner to finish cleaning up.
inline constexpr milliseconds home_lock_patience = 10s;

/// Who holds a home, as HOME/run/lock says.
struct lock_owner {
  std::int64_t pid = 0;
  utc_time started_at{};
  std::string node_id;
  /// The owner's start in kernel clock ticks since boot (/proc/PID/stat, field 22): tells a reused
  /// pid from the owner. 0: not known.
  std::uint64_t start_ticks = 0;

  bool operator==(const lock_owner&) const = default;
};

/// `start_ticks` of this process.
std::uint64_t own_start_ticks();

/// True while the very process that `owner` describes runs.
bool is_alive(const lock_owner& owner);

/// The machine's start and the process namespace of this process, which pids belong to; empty: not
/// known.
std::string boot_mark();

/// The same of a process with that boot_mark(): none outlives its machine's start. Of another
/// namespace nobody can tell, so it counts as alive.
bool is_alive(const lock_owner& owner, const std::string& mark);

/// The exclusive right to run a node on a home: an flock on HOME/run/lock, whose content names the
/// owner. Held until the last descriptor of it is closed: a child process that inherited
/// `descriptor()` keeps the home locked until it has cleaned up. The home itself is locked as well,
/// by this process alone: somebody may remove the file of a node that runs. Move-only. Threads: one
/// at a time.
class home_lock {
 public:
  /// Takes the lock for this process and records {pid, started_at, node_id}. `home` must exist.
  /// Errors: `locked` when a living process holds it (its pid and start time are in the text);
  /// when the recorded owner is dead but the lock is still held, waits up to `patience` first.
  /// `refused` for a home or lock that is a symbolic link, belongs to another user, or lies on a
  /// read-only or network file system (flock is not reliable there). `io_error` otherwise.
  static result<home_lock> acquire(const std::string& home, utc_time started_at,
                                   const std::string& node_id,
                                   milliseconds patience = home_lock_patience);

  /// The locked descriptor, close-on-exec; owned by this object, whose end closes it without
  /// unlocking what a child inherited.
  int descriptor() const noexcept { return fd_.get(); }

  /// Another home stands at the path: a directory that is not the locked one and has a lock of its
  /// own. What is written there by name is somebody else's. False while there is none.
  bool is_replaced() const;

  /// What is recorded of this process.
  utc_time started_at() const noexcept { return started_at_; }

 private:
  home_lock(unique_fd fd, unique_fd home, std::string path, utc_time started_at) noexcept
      : fd_(std::move(fd)), home_(std::move(home)), path_(std::move(path)),
        started_at_(started_at) {}
  unique_fd fd_;
  unique_fd home_;
  std::string path_; ///< of the home
  utc_time started_at_;
};

/// Whether statfs' `f_type` is that of a file system on which other machines may work, and flock
/// and rename are not what they are on a local disk: NFS, SMB, AFS, Coda.
bool is_network_file_system(long type) noexcept;

/// Who holds `home` now; nothing when nobody does. For `boyd status` and `boyd doctor`.
result<std::optional<lock_owner>> read_home_owner(const std::string& home);

} // namespace boyd::adapters
