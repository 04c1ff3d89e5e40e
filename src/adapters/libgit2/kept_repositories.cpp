#include "git_internal.hpp"

#include <git2/sys/repository.h>

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <mutex>

namespace boyd::adapters::git {

namespace {

/// As many repositories as a node works with at once, and some.
constexpr std::size_t most_kept = 16;

/// What an opening depends on: where the path leads, and the configuration that was checked.
std::vector<std::int64_t> stamp_of(const std::string& path, git_repository* repo) {
  const std::string own = git_repository_path(repo);
  const std::string common = git_repository_commondir(repo);
  std::vector<std::int64_t> all;
  for (const auto& name : {path, path + "/.git", own + "commondir", own + "gitdir",
                           own + "config.worktree", common + "config"}) {
    struct stat info {};
    if (::lstat(name.c_str(), &info) != 0)
      info = {};
    // A directory changes with each file in it.
    const bool file = !S_ISDIR(info.st_mode);
    for (const std::int64_t n :
         {static_cast<std::int64_t>(info.st_dev), static_cast<std::int64_t>(info.st_ino),
          file ? static_cast<std::int64_t>(info.st_ctim.tv_sec) : 0,
          file ? static_cast<std::int64_t>(info.st_ctim.tv_nsec) : 0})
      all.push_back(n);
  }
  return all;
}

struct opening {
  std::string path;
  unsigned flags = 0;
  std::vector<std::int64_t> stamp;
};

struct kept_repository {
  git_repository* repo = nullptr;
  opening from;
};

struct shelf {
  std::mutex guard;
  std::map<git_repository*, opening> lent; ///< that will be kept when they come back
  std::list<kept_repository> kept;         ///< the one that came back last is the first
};

shelf& repositories() {
  static auto* const all = new shelf; // until the process ends, like libgit2 itself
  return *all;
}

bool has_checked_extensions(git_repository* repo) {
  config_ptr config;
  std::int32_t version = 0;
  return fill(config,
              [&](git_config** out) { return git_repository_config_snapshot(out, repo); }) == 0 &&
         git_config_get_int32(&version, config.get(), "core.repositoryformatversion") == 0 &&
         version > 0;
}

git_repository* take_kept(const std::string& path, unsigned flags) {
  auto& all = repositories();
  const std::lock_guard lock(all.guard);
  const auto it = std::ranges::find_if(all.kept, [&](const kept_repository& k) {
    return k.from.path == path && k.from.flags == flags;
  });
  if (it == all.kept.end())
    return nullptr;
  auto k = std::move(*it);
  all.kept.erase(it);
  if (stamp_of(path, k.repo) != k.from.stamp) {
    git_repository_free(k.repo);
    return nullptr;
  }
  git_repository__cleanup(k.repo);
  all.lent.emplace(k.repo, std::move(k.from));
  return k.repo;
}

} // namespace

int open_repository(git_repository** out, const std::string& path, unsigned flags) {
  if ((*out = take_kept(path, flags)) != nullptr)
    return 0;
  const int rc = git_repository_open_ext(out, path.c_str(), flags, nullptr);
  if (rc != 0 || !has_checked_extensions(*out))
    return rc;
  auto& all = repositories();
  const std::lock_guard lock(all.guard);
  all.lent.emplace(*out, opening{path, flags, stamp_of(path, *out)});
  return 0;
}

void close_repository(git_repository* repo) {
  auto& all = repositories();
  std::unique_lock lock(all.guard);
  auto lent = all.lent.extract(repo);
  if (lent.empty()) {
    lock.unlock();
    return git_repository_free(repo);
  }
  // What it holds open, such as packs, is not kept.
  git_repository__cleanup(repo);
  all.kept.push_front({repo, std::move(lent.mapped())});
  if (all.kept.size() > most_kept) {
    git_repository_free(all.kept.back().repo);
    all.kept.pop_back();
  }
}

} // namespace boyd::adapters::git
