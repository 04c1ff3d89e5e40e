#pragma once

#include "boyd/ports/worktrees.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace boyd::adapters {

/// Jobs that wait for the thread at most; beyond it `overloaded`.
inline constexpr std::size_t worktree_jobs = 256;
/// Left-over worktrees, with their notes, that one start removes at most.
inline constexpr std::size_t worktrees_at_start = 10'000;

/// Worktrees through libgit2: no hook runs, configuration of the machine and its people is not
/// read, and no filter but git's own for line endings is applied (large files that git-lfs keeps
/// elsewhere stay pointers). Beside each worktree a file `<path>.boyd` names its repository, base
/// and branch, so that one of a node that was killed can be removed. What is compared and removed
/// is what was ordered: a run that changed `.git` in its worktree leads nowhere else.
///
/// What stands in `left_over_in` now was left by a killed node: it is removed one by one on a
/// thread of its own, after what was changed is kept as the patch it was to become; how many is
/// logged. What the end cuts short is for the next start. Empty: nothing is. Call it while no run
/// works there.
std::shared_ptr<worktrees> make_worktrees(const std::string& left_over_in = {});

} // namespace boyd::adapters
