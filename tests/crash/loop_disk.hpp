#pragma once

#include "crash/fault.hpp"
#include "support/temp_dir.hpp"

#include <cstdint>
#include <string>

namespace boyd::crash {

/// EXT4_GOING_FLAGS_LOGFLUSH: the journal still reaches the disk; NOLOGFLUSH: nothing does.
inline constexpr std::uint32_t log_flush = 1;
inline constexpr std::uint32_t no_log_flush = 2;

/// An ext4 file system of its own on a loop device, whose power a test can cut: what was not
/// written through is then gone, as FAULTS.md measured. Needs root.
class loop_disk {
 public:
  /// Why it cannot be had on this machine; empty when it can.
  static std::string why_not();

  /// Throws when it cannot be made.
  loop_disk();
  ~loop_disk();
  loop_disk(const loop_disk&) = delete;
  loop_disk& operator=(const loop_disk&) = delete;

  /// Where it is mounted.
  std::string path() const { return directory_.file("disk"); }

  /// Cuts its power now. `flags`: of EXT4_IOC_SHUTDOWN.
  void cut(std::uint32_t flags) const;

  /// After a cut: off, and on again; the journal is replayed. Waits for the last process to leave.
  void restart();

 private:
  void mount() const;
  void date_locks_before_boot() const;
  bool unmount() const;
  bool is_free() const;

  test::temp_dir directory_{fast_place()};
  std::string device_;
};

} // namespace boyd::crash
