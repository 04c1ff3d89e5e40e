#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace boyd::bench {

/// The commits of the repository at `path`, oldest first.
result<std::vector<std::string>> commits_of(const std::string& path);

/// Makes the commits `commits` of the repository `from` once more with the `git` command, in a new
/// repository `to` (its folder is made): for each the same files are put in place, unmeasured, then
/// `git add` and `git commit` run, with everything fsynced. Returns the milliseconds of each pair.
result<std::vector<double>> replay_with_git(const std::string& from, const std::string& to,
                                            const std::vector<std::string>& commits);

} // namespace boyd::bench
