#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace boyd {

/// What stands at a path of a work tree.
struct tree_entry {
  file_kind kind = file_kind::missing; ///< links are told, not followed
  unsigned mode = 0;                   ///< permission bits
  std::uint64_t links = 0;             ///< names of the same file
  std::string content;                 ///< of a regular file
};

/// Changes of somebody's files that can be taken back exactly. Nothing is overwritten: a file is
/// exchanged with, or moved from or to, a *staged* one, which lies in a directory of Boyd's on the
/// same file system. So the file that was there (content, mode, times, all of it) stays whole until
/// it is put back or removed, and at any moment one of the two names has it. `root` is absolute;
/// `path` is relative to it, without "." and ".."; `staged` is absolute. No symbolic link on the
/// way from `root` to `path` is followed: `refused`. Blocking: call from workers only. Threads:
/// any.
///
/// Errors: `not_found`, `already_exists` (moves never replace), `refused`, `invalid_argument` (the
/// file system cannot exchange files), `limit_exceeded`, `no_space`, `io_error`.
class work_tree {
 public:
  virtual ~work_tree() = default;

  /// `missing` is not an error; `limit_exceeded` for a content of more than `max_bytes`.
  virtual result<tree_entry> look(const std::string& root, const std::string& path,
                                  std::size_t max_bytes) = 0;
  /// Of a staged file.
  virtual result<tree_entry> look_staged(const std::string& staged, std::size_t max_bytes) = 0;

  /// Makes a new file with this content and mode, synced.
  virtual result<void> stage(const std::string& staged, std::string_view content,
                             unsigned mode) = 0;

  /// The two change places at once.
  virtual result<void> exchange(const std::string& root, const std::string& path,
                                const std::string& staged) = 0;
  /// From the staged place to `path`, where nothing may be.
  virtual result<void> move_in(const std::string& root, const std::string& path,
                               const std::string& staged) = 0;
  /// From `path` to the staged place, where nothing may be.
  virtual result<void> move_out(const std::string& root, const std::string& path,
                                const std::string& staged) = 0;

  /// Makes one directory (0755); `already_exists` is an error.
  virtual result<void> make_directory(const std::string& root, const std::string& path) = 0;
  /// Removes it when it is empty; one with something in it stays, which is no error.
  virtual result<void> remove_directory(const std::string& root, const std::string& path) = 0;

  /// Makes the names in the directory of `path` durable.
  virtual result<void> sync_directory_of(const std::string& root, const std::string& path) = 0;
};

} // namespace boyd
