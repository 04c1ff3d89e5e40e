#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/ports/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// Files below a workspace, for the tools of agents: no path leads out of `root`, neither by "..",
/// nor by a symbolic link, nor by a directory that is exchanged for a link meanwhile (openat2 with
/// RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS; without it, part by part with O_NOFOLLOW). `root` is
/// absolute. `path` is relative to it ("." is the root itself); an absolute one is taken when it
/// begins with the root's own path (core/workspace_path.hpp). Links that stay inside are followed
/// for reading, never for writing. Below the node's home less is allowed, see `why_home_forbids`.
/// Blocking: call from workers only. Threads: any.
///
/// Errors: `refused` for what leads out, what `why_unwritable` or `why_home_forbids` name, and what
/// is read-only; `not_found`; `invalid_argument` for what is no regular file or no directory;
/// `limit_exceeded`; `io_error`; `no_space`. Their `where` is the path as it was given.
class confined_files {
 public:
  virtual ~confined_files() = default;

  struct text_part {
    std::string text;
    std::uint64_t size = 0; ///< of the whole file, bytes
    std::string where;      ///< what was read, relative to the root, links resolved
  };
  /// At most `max_bytes` from `offset`.
  virtual result<text_part> read(const std::string& root, const std::string& path,
                                 std::uint64_t offset, std::size_t max_bytes) = 0;

  /// Replaces the file as a whole (a new file beside it, synced, renamed over it), or makes it,
  /// with the directories on its way; the permissions of a file that was there stay, without those
  /// that change the user. A kill at any moment leaves the old content or the new, and at most a
  /// file called `.<name>.boyd-tmp-<digits>`. A hard link to a file elsewhere is broken by that,
  /// not written through.
  virtual result<void> write(const std::string& root, const std::string& path,
                             std::string_view content) = 0;
  /// The largest file whose content is looked at before it is replaced, bytes.
  static constexpr std::uint64_t compared_bytes = std::uint64_t{64} << 20;
  /// Gets the content of what would be replaced; nullptr: nothing stands there.
  using may_replace = std::function<bool(const std::string* content)>;
  /// As `write`, if `may` says so of what stands there just before the rename; otherwise
  /// `conflict`, and it stays; `limit_exceeded` for more than `compared_bytes`.
  virtual result<void> write_over(const std::string& root, const std::string& path,
                                  std::string_view content, const may_replace& may) = 0;

  struct entry {
    std::string name;
    file_kind kind = file_kind::missing; ///< links are told, not followed
    std::uint64_t size = 0;
  };
  struct listing {
    std::vector<entry> entries; ///< sorted by name, the first `most`
    std::size_t total = 0;      ///< entries of the directory
    std::string where;          ///< as in text_part
  };
  virtual result<listing> list(const std::string& root, const std::string& path,
                               std::size_t most) = 0;

  struct place {
    file_kind kind = file_kind::missing; ///< never missing or a link
    std::uint64_t size = 0;
    std::string absolute; ///< without links
    std::string where;    ///< as in text_part
  };
  /// Where a path leads now.
  virtual result<place> find(const std::string& root, const std::string& path) = 0;

  struct walk_limits {
    std::size_t entries = 50'000;                      ///< looked at, directories included
    std::size_t depth = 32;                            ///< directories below the first
    std::uint64_t file_bytes = std::uint64_t{8} << 20; ///< larger files are passed over
    std::uint64_t bytes = std::uint64_t{256} << 20;    ///< read in all
    milliseconds time = 10s;
  };
  struct walk_end {
    std::size_t files = 0; ///< read
    std::uint64_t bytes = 0;
    std::size_t too_large = 0;  ///< passed over
    std::size_t unreadable = 0; ///< passed over: no permission, an error, gone meanwhile
    std::string cut;            ///< which limit ended it early; empty: none
  };
  /// Asked before a file is read; `where` is relative to the root.
  using wanted_file = std::function<bool(const std::string& where)>;
  /// Gets a file; false: enough.
  using visit_file = std::function<bool(const std::string& where, std::string_view text)>;
  /// Every regular file at or below `path`, directories in the order of their names. Links found on
  /// the way and git's own directories are passed over.
  virtual result<walk_end> walk(const std::string& root, const std::string& path,
                                const walk_limits& limits, const wanted_file& wanted,
                                const visit_file& visit) = 0;
};

} // namespace boyd
