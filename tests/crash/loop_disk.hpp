#pragma once

#include "support/temp_dir.hpp"

#include <string>

namespace boyd::crash {

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

  /// After a cut: off, and on again; the journal is replayed. Waits for the last process to leave.
  void restart();

 private:
  void mount() const;
  void date_locks_before_boot() const;
  bool unmount() const;
  bool is_free() const;

  test::temp_dir directory_;
  std::string device_;
};

} // namespace boyd::crash
