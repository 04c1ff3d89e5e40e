#pragma once

#include "boyd/ports/worktrees.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace boyd::adapters {

/// Jobs that wait for the thread at most; beyond it `overloaded`.
inline constexpr std::size_t worktree_jobs = 256;
/// Left-over worktrees that one start removes at most.
inline constexpr std::size_t worktrees_at_start = 10'000;

/// Worktrees through libgit2: no hook runs, configuration of the machine and its people is not
/// read, and no filter but git's own for line endings is applied (large files that git-lfs keeps
/// elsewhere stay pointers). Beside each worktree a file `<path>.boyd` names its repository, base
/// and branch, so that one of a node that was killed can be removed. What is compared and removed
/// is what was ordered: a run that changed `.git` in its worktree leads nowhere else.
std::shared_ptr<worktrees> make_worktrees();

/// Removes what a killed node left in `directory` (worktrees and their notes), after keeping what
/// was changed as the patch it was to become. Returns how many. Call it while no run works there.
/// Blocking.
result<std::size_t> sweep_worktrees(const std::string& directory);

} // namespace boyd::adapters
