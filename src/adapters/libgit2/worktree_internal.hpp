#pragma once

#include "boyd/ports/worktrees.hpp"
#include "git_internal.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

/// The work behind worktrees.hpp; blocking.
namespace boyd::adapters::git {

result<worktree_made> make_worktree(const worktree_order& order);
result<worktree_change> close_worktree(const worktree_order& order, const std::string& base);

/// Writes what changed between `base` and the files at `order.path` into `order.patch`.
result<worktree_change> compare_worktree(git_repository* repo, const worktree_order& order,
                                         const git_oid& base);

/// All of a worktree's change as one commit on the branch of its run. `limit_exceeded` when it is
/// too large even for that.
result<void> commit_change(git_repository* repo, git_diff* diff, const worktree_order& order,
                           const git_oid& base);

/// The branch of a run.
std::string ref_of(const worktree_order& order);

/// The references of a repository but the branches of runs; null: they cannot be read, or are too
/// many.
std::shared_ptr<const reference_list> references_of(git_repository* repo);

/// What is another one in `after`, into `change`.
void tell_moved(const reference_list& before, const reference_list& after, worktree_change& change);

/// A directory and all below it, whatever its permissions; links are not followed.
result<void> remove_tree(const std::string& path);

/// The first `most` bytes of a regular file; nothing when it is none (where notes and patches are
/// there may stand anything, a pipe that would block its reader for ever, too) or cannot be opened.
std::optional<std::string> read_regular(const std::string& path, std::size_t most);

/// Where the note about a worktree is.
std::string note_of(const std::string& path);

} // namespace boyd::adapters::git
