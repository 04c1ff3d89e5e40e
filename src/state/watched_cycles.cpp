#include "boyd/state/versioned_store.hpp"

#include <algorithm>
#include <utility>

namespace boyd::state {

void versioned_store::watch(commit_info boundary) {
  std::erase_if(watched_, [&](const auto& c) { return c.trailers == boundary.trailers; });
  watched_.push_back(std::move(boundary));
  if (watched_.size() > watched_cycles)
    watched_.erase(watched_.begin());
}

/// Whether it stands: itself, or a copy of it, which is watched from then on.
result<bool> versioned_store::stands(repository& repo, commit_info& boundary) {
  auto kept = repo.is_kept(boundary.hash);
  if (!kept || *kept)
    return kept;
  auto copy =
      find_boundary(boundary.subject, boundary.trailers.front().second, boundary_search_restarted);
  if (!copy)
    return fail(std::move(copy.error()));
  if (*copy)
    boundary.hash = **copy;
  return copy->has_value();
}

result<std::vector<commit_info>> versioned_store::lost_cycles() {
  std::vector<commit_info> lost;
  const auto repo = repository_now();
  if (!repo)
    return fail(repo.error());
  const auto head = (*repo)->head();
  if (head && (watched_.empty() || (*head && *head == sound_head_)))
    return lost;
  auto failed = head ? std::optional<error>{} : head.error();
  for (auto& boundary : watched_) {
    if (failed)
      break;
    if (const auto standing = stands(**repo, boundary); !standing)
      failed = standing.error();
    else if (!*standing)
      lost.push_back(boundary);
  }
  if (failed) {
    notice(*failed);
    return fail(std::move(*failed));
  }
  std::erase_if(watched_, [&](const commit_info& c) {
    return std::ranges::count(lost, c.hash, &commit_info::hash) > 0;
  });
  sound_head_ = *head;
  return lost;
}

} // namespace boyd::state
