#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/worktrees.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Patches that runs left, for whoever applies them later. Blocking. Threads: any.
namespace boyd::adapters {

/// True when `patch`, which begins with `h`, has every byte that it had when it was made.
bool is_whole_patch(const patch_heading& h, std::string_view patch);

/// What a patch makes of one file.
struct patched_file {
  std::string path;
  unsigned mode_before = 0; ///< as git has it (0100644, 0100755, 0120000, …); 0: no file
  unsigned mode_after = 0;
  std::string before;
  std::string after;
};

/// The files of a patch, before and after it, by the commit `base` of the repository at exactly
/// this path. Errors: `not_found` (repository, commit), `conflict` when it does not fit that
/// commit, `invalid_argument` when it cannot be read or has not `files` files, as one that was cut.
result<std::vector<patched_file>> read_patched_files(const std::string& repo,
                                                     const std::string& base,
                                                     std::string_view patch, std::size_t files);

/// `ours` with what leads from `before` to `theirs`; nothing when both changed the same place, or
/// one of them is binary.
std::optional<std::string> merge_contents(std::string_view before, std::string_view ours,
                                          std::string_view theirs);

} // namespace boyd::adapters
