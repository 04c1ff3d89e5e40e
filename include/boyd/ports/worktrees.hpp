#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// Longest patch that is kept of a run.
inline constexpr std::uint64_t patch_limit = std::uint64_t{16} << 20;

/// Moved references that are told by name; the rest is counted.
inline constexpr std::size_t moved_references_named = 16;

/// What a patch says of itself in its first lines, which programs that apply patches pass over.
struct patch_heading {
  std::string repository; ///< absolute
  std::string base;       ///< hash of the commit that it was made from
  std::string branch;     ///< of the run
  std::size_t files = 0;
  std::size_t added = 0;   ///< lines
  std::size_t removed = 0; ///< lines
  std::uint64_t bytes = 0; ///< of the whole patch, without this heading
  /// SHA-256 of the whole patch, without this heading. Empty: it was cut, and is no patch.
  std::string hash{};
  bool on_branch = false; ///< of a cut one: the branch has all of the change, as a commit
};
std::string to_text(const patch_heading& h);
/// Error `invalid_argument` for a text that does not begin with all of it.
result<patch_heading> read_patch_heading(std::string_view patch);

/// What references lead to (a hash, or another reference), by name.
using reference_list = std::map<std::string, std::string>;

/// A git worktree for one run.
struct worktree_order {
  std::string repo;   ///< somebody's repository; absolute, not bare
  std::string base;   ///< a revision of it
  std::string path;   ///< where the worktree comes to stand; absolute, its parent is Boyd's
  std::string branch; ///< that is checked out there; made anew
  std::string patch;  ///< file that takes what was changed, under a patch_heading; absolute
  /// Asked about the whole patch, on the thread that wrote it; empty: nobody wants to know.
  std::function<bool(const std::string& patch)> holds_secret{};
  /// As worktree_made has them, for close(); null: they are not compared.
  std::shared_ptr<const reference_list> references{};
};

struct worktree_made {
  std::string base; ///< hash of the commit
  /// Of the repository, without branches of runs; null where there are too many.
  std::shared_ptr<const reference_list> references{};
};

/// What a run changed, files that git does not know yet included, ignored ones not.
struct worktree_change {
  std::size_t files = 0;
  std::size_t added = 0;   ///< lines
  std::size_t removed = 0; ///< lines
  std::uint64_t patch_bytes = 0;
  /// The patch is longer than patch_limit, or lacks a file that is too large for one.
  bool cut = false;
  /// Of a cut one: why the branch does not have all of the change. Empty: it has.
  std::string not_on_branch{};
  bool has_commits = false; ///< the branch has commits and stays; else it is removed
  bool has_secret = false;  ///< as worktree_order::holds_secret said
  /// References that are not what they were before, made or gone, by the run or by others.
  std::size_t moved = 0;
  std::vector<std::string> moved_references{}; ///< the first of them
};

/// Worktrees of repositories that belong to somebody, for runs that must not meet each other. Not
/// blocking: the work is done in order on a thread of its own, which calls `done` once. A bounded
/// queue: `overloaded` beyond it. Threads: any.
class worktrees {
 public:
  virtual ~worktrees() = default;

  /// Makes the branch and the worktree. Errors: `not_found` (repository, revision), `refused`
  /// (bare, owned by another user), `conflict` (branch or path taken), `no_space`, `io_error`.
  virtual void make(worktree_order order, std::function<void(result<worktree_made>)> done) = 0;

  /// Compares the worktree with `base` (a hash), writes the patch (none when nothing changed) and
  /// removes the worktree. Where it cannot be compared it is removed all the same.
  virtual void close(worktree_order order, std::string base,
                     std::function<void(result<worktree_change>)> done) = 0;
};

} // namespace boyd
