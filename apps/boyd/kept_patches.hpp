#pragma once

#include "boyd/core/home_layout.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/ports/ports.hpp"
#include "boyd/ports/worktrees.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The patches that runs in worktrees left in a home: files that say themselves what they are for.
/// Whether a node runs makes no difference to them. Blocking.
namespace boyd::app {

struct kept_patch {
  std::string dispatch_id;
  std::int64_t run = 0; ///< which one of the dispatch
  std::string agent_id;
  std::string file; ///< absolute
  utc_time made_at{};
  std::optional<utc_time> applied_at;
  /// Nothing: it was kept by a Boyd that did not write it yet.
  std::optional<patch_heading> heading;
};

/// Newest first.
result<std::vector<kept_patch>> list_patches(const home_layout& home, file_system& files);

/// The patch of a dispatch (its id or part of it, an agent's name, or "last"); of several runs the
/// newest that is not applied, or run number `run`. Errors: `not_found`, `invalid_argument` when
/// more than one dispatch fits.
result<kept_patch> find_patch(const std::vector<kept_patch>& all, const std::string& name,
                              const std::string& run);

/// The whole text.
result<std::string> read_patch(const kept_patch& p, file_system& files);

struct applied_patch {
  std::vector<std::string> changed; ///< paths
  std::vector<std::string> merged;  ///< of these, files that were not as at the base
  std::vector<std::string> same;    ///< that were as the patch wants them already
};

/// Changes the files of the repository's work tree as the patch wants it: all of them, or none and
/// the error `conflict`, which names the files. A file that differs from the patch's base keeps its
/// own changes where both do not meet. An application that a crash cut short is taken back, or
/// noted when it was whole. Errors besides: `refused` (the patch was cut), `locked` (another
/// application is under way), and those of the ports.
result<applied_patch> apply_patch(const kept_patch& p, const home_layout& home, const ports& with);

/// Removes it; the branch of the run stays.
result<void> discard_patch(const kept_patch& p, file_system& files);

} // namespace boyd::app
