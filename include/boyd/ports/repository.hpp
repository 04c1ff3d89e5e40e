#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

struct git_identity {
  std::string name = "boyd";
  std::string email = "kernel@boyd.local";
};

struct commit_info {
  std::string hash; ///< 40 hexadecimal characters
  utc_time time{};
  std::string subject;
  std::vector<std::pair<std::string, std::string>> trailers; ///< in order
};

enum class change_kind : std::uint8_t { added, modified, deleted };

struct path_change {
  std::string path; ///< relative to the work tree, with '/'
  change_kind kind = change_kind::modified;

  bool operator==(const path_change&) const = default;
};

/// What the history keeps of a text: the same, or the same without what must not be kept.
using content_filter = std::function<std::string(std::string)>;
/// Larger files are not filtered.
inline constexpr std::size_t filtered_bytes = 16u << 20;

/// One file as an earlier commit is to have it: from what HEAD has of it (empty: nothing) and what
/// the later commit has.
struct earlier_version {
  std::string path;
  std::function<std::string(const std::string& at_head, const std::string& later)> text;
};

/// The hashes of two commits that were made together.
struct commit_pair {
  std::string earlier;
  std::string later;
  std::optional<std::string> parent{}; ///< of the earlier one; nothing in an unborn branch
};

/// One git repository that Boyd owns (docs/state-and-history.md). Opened by exact path, never
/// searched upwards; GIT_DIR and the like are ignored; no hook runs; objects, refs and packs are
/// fsynced. Blocking: call from workers only. Not thread-safe: one object per worker.
class repository {
 public:
  virtual ~repository() = default;

  /// What differs from HEAD in the work tree (untracked files included, ignored files not).
  virtual result<std::vector<path_change>> changes() = 0;

  /// What the newest call of changes() left out, though it is not ignored: directories that are git
  /// repositories of their own, with a final '/'.
  virtual std::vector<std::string> left_out() const { return {}; }

  /// Other things that people should know, a sentence each: files that the newest changes() or the
  /// commits since could not take (a name that git refuses, no permission to read, a pipe in the
  /// place of a file), and oddities of the repository that do not stop a commit.
  virtual std::vector<std::string> remarks() const { return {}; }

  /// From now on contents, targets of links and paths pass `filter` on their way into the
  /// repository, as with git's own clean filters; the files stay as they are. A path that the
  /// filter would change is left out. Files of more than filtered_bytes are stored as they are.
  virtual void filter_contents(content_filter filter) { (void)filter; }

  /// Files of which the newest stage() or commit() with them stored something else than they hold,
  /// and paths, filtered, that were left out.
  virtual std::vector<std::string> filtered() const { return {}; }

  /// Number of files tracked by HEAD.
  virtual result<std::size_t> tracked_files() = 0;

  /// Paths of files that git knows, sorted: those of the index, without submodules.
  virtual result<std::vector<std::string>> tracked_paths() = 0;

  /// Whether git would leave out a file of this path, which it does not know: a .gitignore file, or
  /// git's own settings, name it or a directory on its way.
  virtual result<bool> ignores(const std::string& path) = 0;

  /// Adds or removes exactly these paths in the index.
  virtual result<void> stage(const std::vector<path_change>& paths) = 0;

  /// Commits exactly these paths (staging them) on top of HEAD; the message carries its trailers
  /// already. Returns the commit's hash, or nothing when the tree equals HEAD's. Without any path
  /// the commit is meant to be empty: HEAD's own tree once more (`git commit --allow-empty`). When
  /// the last step fails after HEAD has moved, HEAD is read again and the new commit is reported.
  virtual result<std::optional<std::string>> commit(const std::vector<path_change>& paths,
                                                    const std::string& message, utc_time when) = 0;

  /// Two commits on top of HEAD in one step: both are there afterwards, or none is. The later one
  /// has exactly these paths, as commit() would; the earlier one, its parent, has them too, but for
  /// `version`, when that path is a file among them. Either may be empty. When it returns, the
  /// names of the files in the work tree's own directory are durable as well. An error after HEAD
  /// has moved is treated as in commit().
  virtual result<commit_pair> commit_two(const std::vector<path_change>& paths,
                                         const earlier_version& version,
                                         const std::string& earlier_message,
                                         const std::string& later_message, utc_time when) = 0;

  /// The newest `n` commits that touch `path` (empty: all commits), newest first.
  virtual result<std::vector<commit_info>> history(const std::string& path, std::size_t n) = 0;

  /// Unified diff from commit `a` to commit `b` (hashes or revision expressions); an empty `b`
  /// means the work tree.
  virtual result<std::string> diff(const std::string& a, const std::string& b) = 0;

  /// The content of `path` in commit `revision`.
  virtual result<std::string> read_at(const std::string& revision, const std::string& path) = 0;

  /// The newest commit not later than `t`; `not_found` when there is none.
  virtual result<std::string> commit_at(utc_time t) = 0;

  /// The hash of HEAD's commit; nothing in an unborn branch.
  virtual result<std::optional<std::string>> head() = 0;

  /// Whether HEAD, a branch (a remote's too) or a tag has that commit in its history. What is in
  /// none goes with the next `git gc`, or has gone already.
  virtual result<bool> is_kept(const std::string& hash) = 0;

  /// Loose objects that are not packed yet.
  virtual result<std::size_t> loose_objects() = 0;

  /// Packs loose objects into one new pack and removes the loose copies; returns how many.
  virtual result<std::size_t> pack() = 0;
};

/// A git repository of somebody's, by what stays the same in all of its clones and worktrees.
struct git_project {
  std::string root_commit; ///< hash of the first commit of HEAD's line
  std::string inside; ///< the directory that was asked about, below the work tree; may be empty

  bool operator==(const git_project&) const = default;
};

/// Makes and opens repositories; one per process. Threads: any.
class repository_provider {
 public:
  virtual ~repository_provider() = default;

  /// Makes the repository when it is missing (branch `main`, owner's identity in its own config);
  /// idempotent. Refuses a directory inside another work tree unless that one ignores it. Removes
  /// lock files whose owner is provably gone or that are older than limits::stale_lock_age.
  virtual result<std::unique_ptr<repository>> init(const std::string& path,
                                                   const git_identity& who) = 0;

  /// Opens an existing repository under the same rules; `repository_unavailable` otherwise.
  virtual result<std::unique_ptr<repository>> open(const std::string& path,
                                                   const git_identity& who) = 0;

  /// The repository whose work tree has this directory, whoever it belongs to. Nothing: there is
  /// none, it has no commit, or it cannot be read. As slow as its history is long.
  virtual std::optional<git_project> project_of(const std::string& /*directory*/) {
    return std::nullopt;
  }
};

} // namespace boyd
