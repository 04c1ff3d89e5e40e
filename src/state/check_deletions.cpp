#include "boyd/core/limits.hpp"
#include "boyd/state/versioned_store.hpp"

#include <algorithm>

namespace boyd::state {

namespace {

/// More than limits::mass_deletion_share of the tracked files would go.
bool is_mass_deletion(std::size_t deleted, std::size_t tracked) {
  return static_cast<double>(deleted) > static_cast<double>(tracked) * limits::mass_deletion_share;
}

} // namespace

result<void> check_deletions(repository& repo, const std::vector<path_change>& changes,
                             const std::string& path) {
  const auto deleted = static_cast<std::size_t>(
      std::count_if(changes.begin(), changes.end(),
                    [](const path_change& c) { return c.kind == change_kind::deleted; }));
  if (deleted == 0)
    return {};
  const auto tracked = repo.tracked_files();
  if (!tracked)
    return fail(tracked.error());
  if (!is_mass_deletion(deleted, *tracked))
    return {};
  return fail(errc::refused,
              "the commit would delete " + std::to_string(deleted) + " of " +
                  std::to_string(*tracked) + " tracked files",
              path,
              "restore them there with `git checkout HEAD -- .`, or, if intended, commit by hand: "
              "`git add -A && git commit`");
}

} // namespace boyd::state
