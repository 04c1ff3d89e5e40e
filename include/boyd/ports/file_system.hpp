#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

enum class file_kind : std::uint8_t { missing, regular, directory, symlink, other };

struct file_info {
  file_kind kind = file_kind::missing;
  std::uint64_t size = 0;
  std::uint64_t inode = 0; ///< with `device`, tells whether a path still names the same file
  std::uint64_t device = 0;
  utc_time modified{};
  unsigned mode = 0; ///< permission bits
};

/// An open file. Closing is the destructor's; it does not sync.
class open_file {
 public:
  virtual ~open_file() = default;

  /// Appends at the current end. May write less than given (a full disk): the count is returned,
  /// and the caller must truncate back or go on.
  virtual result<std::size_t> write(std::string_view bytes) = 0;

  /// A hint that sync() follows: what is written may begin its way to the disk, so that files that
  /// are synced one after the other wait together. What comes of it is found by sync().
  virtual void begin_sync() {}

  /// fsync. After an error the file must not be trusted or retried on this handle (FAULTS.md).
  virtual result<void> sync() = 0;

  virtual result<void> truncate(std::uint64_t size) = 0;

  /// Writes bytes that are already there over themselves (`offset + bytes.size()` within the file),
  /// all of them or an error: the next sync then brings them to the disk, whatever became of them
  /// at an earlier sync that failed. A crash in the middle changes nothing, because old and new are
  /// the same.
  virtual result<void> rewrite(std::uint64_t offset, std::string_view bytes) = 0;

  virtual result<std::uint64_t> size() = 0;

  /// At most `max_bytes` from `offset` on, as `file_system::read_part`; takes no descriptor, so
  /// that there is always one for it.
  virtual result<std::string> read_part(std::uint64_t offset, std::size_t max_bytes) = 0;
};

enum class open_mode : std::uint8_t {
  create_new, ///< fails when the path exists
  append,     ///< creates when missing
};

/// Files as Boyd uses them: every step of an atomic write is visible, so that simulation can tear
/// it. Paths are absolute. Files are made 0600 and directories 0700. Symbolic links in the last
/// component are never followed for writing. Blocking: call from workers only. Threads: any.
class file_system {
 public:
  virtual ~file_system() = default;

  /// The whole content; `limit_exceeded` when it is larger than `max_bytes`.
  virtual result<std::string> read(const std::string& path, std::size_t max_bytes) = 0;
  /// The same of `file`, a relative path without "..", below the directory `root`: for files that
  /// somebody else may have put there. `refused` when a symbolic link is on the way from `root` to
  /// it, or is the file itself; `root` may lie behind one.
  virtual result<std::string> read_below(const std::string& root, const std::string& file,
                                         std::size_t max_bytes) = 0;
  /// At most `max_bytes` from `offset` on: fewer at the end of the file, none behind it.
  virtual result<std::string> read_part(const std::string& path, std::uint64_t offset,
                                        std::size_t max_bytes) = 0;
  /// `kind == missing` is not an error.
  virtual result<file_info> stat(const std::string& path) = 0;
  virtual result<std::unique_ptr<open_file>> open(const std::string& path, open_mode mode) = 0;
  /// Atomic replacement.
  virtual result<void> rename(const std::string& from, const std::string& to) = 0;
  /// Removes a file, a link or an empty directory.
  virtual result<void> unlink(const std::string& path) = 0;
  /// fsync of the directory itself: makes names durable.
  virtual result<void> sync_directory(const std::string& path) = 0;
  /// Makes the directory and its parents (0700).
  virtual result<void> make_directories(const std::string& path) = 0;
  /// Names (not paths) in the directory, sorted.
  virtual result<std::vector<std::string>> list(const std::string& path) = 0;
};

} // namespace boyd
