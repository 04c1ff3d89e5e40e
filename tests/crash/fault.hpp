#pragma once

#include "crash/control_block.hpp"
#include "support/shared_block.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace boyd::crash {

/// Where homes and disks are made. A kill or an error at a call asks nothing of the disk below, and
/// in memory a point takes two thirds of the time; TMPDIR names another place.
std::filesystem::path fast_place();

/// What one run meets.
struct fault {
  action what = action::none;
  std::uint64_t at = 0; ///< the I/O call, from 1; 0: only count
  bool for_ever = false;
  std::uint32_t kinds = kind::all;
  std::uint32_t cut_flags = 0; ///< of EXT4_IOC_SHUTDOWN
  bool lies = false;           ///< the disk says that it has synced, and has not
  std::string mount{};
};

/// The preload shim as a test holds it: arms it, reads its count, ends its fault. One at a time.
class shim {
 public:
  /// Arms it for the next program and returns the environment that the program needs. `below`: the
  /// directory whose calls count, as the kernel names it (no links in it).
  std::map<std::string, std::string> arm(const std::string& below, const fault& f);

  std::uint64_t calls() const { return block_->calls; }
  bool struck() const { return block_->fired != 0; }
  /// How often a lasting fault struck.
  std::uint32_t fired() const { return block_->fired; }
  /// The call that was struck first, for messages.
  std::string where() const { return block_->struck.data(); }
  /// Nothing meets the fault any more: a program's helper process may outlive it for a moment, and
  /// must not strike when nobody looks.
  void disarm() { block_->at = 0; }
  /// An armed "for ever" ends now: the disk has room again.
  void end_fault() { block_->over = 1; }

 private:
  test::shared_block<control_block> block_;
};

} // namespace boyd::crash
