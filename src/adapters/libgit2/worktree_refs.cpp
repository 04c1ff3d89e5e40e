#include "worktree_internal.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace boyd::adapters::git {

namespace {

using iterator_ptr = owned<git_reference_iterator, git_reference_iterator_free>;

/// Branches of runs: others than the one that is looked at come and go meanwhile.
constexpr std::string_view of_runs = "refs/heads/boyd/";
/// Of a repository with more references none are compared.
constexpr std::size_t most_references = 100'000;

std::string target_of(const git_reference* reference) {
  if (git_reference_type(reference) == GIT_REFERENCE_SYMBOLIC)
    return git_reference_symbolic_target(reference);
  const auto* id = git_reference_target(reference);
  return id == nullptr ? std::string() : hex(*id);
}

} // namespace

std::shared_ptr<const reference_list> references_of(git_repository* repo) {
  iterator_ptr all;
  if (fill(all, [&](auto** out) { return git_reference_iterator_new(out, repo); }) != 0)
    return nullptr;
  auto list = std::make_shared<reference_list>();
  for (;;) {
    reference_ptr one;
    const int rc = fill(one, [&](auto** out) { return git_reference_next(out, all.get()); });
    if (rc == GIT_ITEROVER)
      return list;
    if (rc != 0 || list->size() == most_references)
      return nullptr;
    std::string name = git_reference_name(one.get());
    if (!name.starts_with(of_runs))
      list->emplace(std::move(name), target_of(one.get()));
  }
}

void tell_moved(const reference_list& before, const reference_list& after,
                worktree_change& change) {
  const auto tell = [&](const std::string& name) {
    ++change.moved;
    if (change.moved_references.size() < moved_references_named)
      change.moved_references.push_back(name);
  };
  for (const auto& [name, target] : after) {
    const auto was = before.find(name);
    if (was == before.end() || was->second != target)
      tell(name);
  }
  for (const auto& [name, target] : before)
    if (!after.contains(name))
      tell(name);
}

} // namespace boyd::adapters::git
