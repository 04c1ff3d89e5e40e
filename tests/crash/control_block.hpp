#pragma once

#include <array>
#include <atomic>
#include <cstdint>

/// What the preload shim and the test that arms it share: a small file that both map. Plain memory,
/// so that a fault can be armed, watched and ended while the program runs.
namespace boyd::crash {

/// The environment variable that names the file.
inline constexpr const char* control_variable = "BOYD_CRASH_CONTROL";

/// Kinds of calls; a mask chooses which are counted.
namespace kind {
inline constexpr std::uint32_t open = 1;  ///< open that makes or empties a file, mkstemp
inline constexpr std::uint32_t write = 2; ///< write, pwrite, writev, copy_file_range
inline constexpr std::uint32_t sync = 4;  ///< fsync, fdatasync, msync
inline constexpr std::uint32_t name = 8;  ///< rename, unlink, mkdir, rmdir, link, symlink
inline constexpr std::uint32_t size = 16; ///< truncate, fallocate
inline constexpr std::uint32_t all = 31;  ///< what changes the disk
inline constexpr std::uint32_t read = 32; ///< read, pread, readv, preadv
inline constexpr std::uint32_t hint = 64; ///< sync_file_range, on which nothing depends
} // namespace kind

/// What happens instead of the call.
enum class action : std::uint32_t {
  none,
  kill,       ///< SIGKILL to the calling process
  kill_group, ///< SIGKILL to its process group
  cut,        ///< the file system at `mount` loses its power, then as kill_group
  eio,        ///< the call fails with EIO
  enospc,     ///< the call fails with ENOSPC
  shorten,    ///< half of the bytes are written (writes of two bytes or more)
};

inline constexpr std::size_t longest_path = 512;

struct control_block {
  std::atomic<std::uint64_t> calls;     ///< counted so far
  std::atomic<std::uint64_t> at;        ///< the call, from 1, that meets the fault; 0: none does
  std::atomic<std::uint32_t> what;      ///< an `action`
  std::atomic<std::uint32_t> kinds;     ///< mask of `kind`
  std::atomic<std::uint32_t> for_ever;  ///< every counted call from `at` on, until `over`
  std::atomic<std::uint32_t> over;      ///< the fault has ended
  std::atomic<std::uint32_t> fired;     ///< how often it struck
  std::atomic<std::uint32_t> cut_flags; ///< of EXT4_IOC_SHUTDOWN
  std::atomic<std::uint32_t> cutting;   ///< the power goes, or is gone
  std::atomic<std::uint32_t> lies;      ///< fsync and fdatasync say yes and do nothing
  /// The file whose fsync failed with EIO, and the bytes that are not on the disk by it. A kernel
  /// takes its pages for clean then: a further fsync says yes and does nothing until these bytes
  /// have been written again, from the first on, or the file has been cut short of them.
  std::atomic<std::uint64_t> unsynced_inode;
  std::atomic<std::uint64_t> unsynced_from;
  std::atomic<std::uint64_t> unsynced_to;
  std::atomic<std::int32_t> leader; ///< the first process with the shim; leads a group of its own
  std::array<char, longest_path>
      below; ///< only paths below this directory count; no '/' at its end
  std::array<char, longest_path> mount;  ///< the file system to cut
  std::array<char, longest_path> struck; ///< the first call struck: "name path"
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

} // namespace boyd::crash
