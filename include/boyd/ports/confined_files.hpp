#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// Files below a workspace, for the tools of agents: no path leads out of `root`, neither by "..",
/// nor by a symbolic link, nor by a mount that is changed meanwhile (openat2 with RESOLVE_BENEATH
/// and RESOLVE_NO_MAGICLINKS; without it, component by component with O_NOFOLLOW). `path` is
/// relative to `root` ("." is the root itself); an absolute one is taken when it begins with the
/// root's own path. Links that stay inside are followed for reading, never for writing. Blocking:
/// call from workers only. Threads: any.
///
/// Errors: `refused` for what leads out, names ".git" (any case, any depth) for writing, or has a
/// NUL; `not_found`; `invalid_argument` for what is no regular file or no directory;
/// `limit_exceeded`; `io_error`; `no_space`.
class confined_files {
 public:
  virtual ~confined_files() = default;

  struct text_part {
    std::string text;
    std::uint64_t size = 0; ///< of the whole file, bytes
  };
  /// At most `max_bytes` from `offset`.
  virtual result<text_part> read(const std::string& root, const std::string& path,
                                 std::uint64_t offset, std::size_t max_bytes) = 0;

  /// Replaces the file as a whole (a new file beside it, synced, renamed over it), or makes it,
  /// with the directories on its way; the mode of a file that was there stays. A hard link to a
  /// file elsewhere is broken by that, not written through.
  virtual result<void> write(const std::string& root, const std::string& path,
                             std::string_view content) = 0;

  struct entry {
    std::string name; ///< for `walk`: relative to the directory asked for
    file_kind kind = file_kind::missing;
    std::uint64_t size = 0;
  };
  /// Sorted by name; more than `most` entries: `limit_exceeded`.
  virtual result<std::vector<entry>> list(const std::string& root, const std::string& path,
                                          std::size_t most) = 0;
};

} // namespace boyd
