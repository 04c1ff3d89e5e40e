#include "worktree_internal.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace boyd::adapters::git {

namespace {

namespace fs = std::filesystem;

using tree_of_work = owned<git_worktree, git_worktree_free>;

constexpr mode_t private_folder = 0700;

std::string name_of(const std::string& path) {
  return fs::path(path).filename().string();
}

/// Notes are lines.
result<void> check(const worktree_order& order) {
  for (const auto* text : {&order.repo, &order.base, &order.path, &order.branch, &order.patch})
    if (text->empty() || text->find('\n') != std::string::npos ||
        text->find('\0') != std::string::npos)
      return fail(errc::invalid_argument, "not a valid worktree request", order.path);
  int valid = 0;
  if (git_reference_name_is_valid(&valid, ref_of(order).c_str()) != 0 || valid == 0)
    return fail(errc::invalid_argument, "not a valid branch name", order.branch);
  return {};
}

/// Held while git's own notes about worktrees and their branches change: libgit2 reads the other
/// worktrees when it adds one, and takes one that is just being removed for a conflict. One for
/// each repository, by the real path of its git directory (a repository and its worktrees share
/// one); as many as a process's configurations have named.
std::mutex& lock_of(git_repository* repo) {
  static std::mutex guard;
  static std::map<std::string, std::mutex> all;
  std::error_code failed;
  const fs::path path(git_repository_commondir(repo));
  auto real = fs::canonical(path, failed).string();
  const std::lock_guard lock(guard);
  return all[failed ? path.string() : std::move(real)];
}

result<repository_ptr> open_at(const std::string& path) {
  start_library();
  repository_ptr repo;
  const int rc = fill(repo, [&](auto** out) {
    return git::open_repository(out, path, GIT_REPOSITORY_OPEN_NO_SEARCH);
  });
  if (rc == GIT_ENOTFOUND)
    return fail(errc::not_found, "no git repository", path);
  if (rc != 0)
    return fail(failure(rc, "cannot open the git repository", path));
  if (git_repository_is_bare(repo.get()) != 0)
    return fail(errc::refused, "a bare repository has no work tree", path);
  return repo;
}

result<commit_ptr> commit_of(git_repository* repo, const worktree_order& order) {
  object_ptr object;
  commit_ptr commit;
  int rc =
      fill(object, [&](auto** out) { return git_revparse_single(out, repo, order.base.c_str()); });
  if (rc == 0)
    rc = fill(commit, [&](auto** out) {
      return git_object_peel(reinterpret_cast<git_object**>(out), object.get(), GIT_OBJECT_COMMIT);
    });
  if (rc == GIT_ENOTFOUND || rc == GIT_EINVALIDSPEC)
    return fail(errc::not_found, "no commit " + order.base, order.repo,
                "use a branch, a tag or a hash as `base`");
  if (rc != 0)
    return fail(failure(rc, "cannot read " + order.base, order.repo));
  return commit;
}

result<void> write_note(const worktree_order& order, const git_oid& base) {
  const auto path = note_of(order.path);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << order.repo << '\n' << hex(base) << '\n' << order.branch << '\n' << order.patch << '\n';
  out.close();
  if (!out)
    return fail(system_failure(errno, "cannot write the state of a worktree", path));
  return {};
}

result<void> add(git_repository* repo, const worktree_order& order, const git_commit* commit) {
  reference_ptr branch;
  int rc = fill(branch, [&](auto** out) {
    return git_reference_create(out, repo, ref_of(order).c_str(), git_commit_id(commit), 0,
                                "boyd: worktree of a run");
  });
  if (rc == GIT_EEXISTS)
    return fail(errc::conflict, "the branch already exists: " + order.branch, order.repo);
  if (rc != 0)
    return fail(failure(rc, "cannot create the branch " + order.branch, order.repo));
  git_worktree_add_options options = GIT_WORKTREE_ADD_OPTIONS_INIT;
  options.ref = branch.get();
  options.checkout_options.checkout_strategy = GIT_CHECKOUT_FORCE;
  tree_of_work made;
  rc = fill(made, [&](auto** out) {
    return git_worktree_add(out, repo, name_of(order.path).c_str(), order.path.c_str(), &options);
  });
  if (rc != 0)
    return fail(failure(rc, "cannot create a worktree", order.path, errc::io_error));
  return {};
}

/// Git's own notes about the worktree. Where they point is not looked at: a run could have changed
/// that.
void forget(git_repository* repo, const std::string& path) {
  tree_of_work found;
  if (fill(found,
           [&](auto** out) { return git_worktree_lookup(out, repo, name_of(path).c_str()); }) != 0)
    return;
  git_worktree_prune_options options = GIT_WORKTREE_PRUNE_OPTIONS_INIT;
  options.flags = GIT_WORKTREE_PRUNE_VALID | GIT_WORKTREE_PRUNE_LOCKED;
  git_worktree_prune(found.get(), &options);
}

/// A branch with commits stays; true then.
bool keep_or_remove_branch(git_repository* repo, const worktree_order& order, const git_oid& base) {
  reference_ptr branch;
  if (fill(branch,
           [&](auto** out) { return git_reference_lookup(out, repo, ref_of(order).c_str()); }) != 0)
    return false;
  const auto* at = git_reference_target(branch.get());
  if (at == nullptr || git_oid_equal(at, &base) == 0)
    return true;
  git_reference_delete(branch.get());
  return false;
}

} // namespace

std::string ref_of(const worktree_order& order) {
  return "refs/heads/" + order.branch;
}

std::string note_of(const std::string& path) {
  return path + ".boyd";
}

result<void> remove_tree(const std::string& path) {
  std::error_code failed;
  fs::remove_all(path, failed);
  if (!failed)
    return {};
  // Some tools leave directories that nobody may write to.
  std::error_code ignored;
  auto at = fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied,
                                             ignored);
  fs::permissions(path, fs::perms::owner_all, fs::perm_options::add, ignored);
  for (; !ignored && at != fs::recursive_directory_iterator(); at.increment(ignored))
    if (at->symlink_status(ignored).type() == fs::file_type::directory)
      fs::permissions(at->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
  failed.clear();
  fs::remove_all(path, failed);
  if (failed)
    return fail(system_failure(failed.value(), "cannot remove a worktree", path));
  return {};
}

result<worktree_made> make_worktree(const worktree_order& order) {
  if (auto ok = check(order); !ok)
    return fail(std::move(ok.error()));
  auto repo = open_at(order.repo);
  if (!repo)
    return fail(std::move(repo.error()));
  auto commit = commit_of(repo->get(), order);
  if (!commit)
    return fail(std::move(commit.error()));
  const auto base = *git_commit_id(commit->get());
  std::error_code failed;
  if (fs::exists(fs::symlink_status(order.path, failed)))
    return fail(errc::conflict, "the path of the worktree is already in use", order.path);
  const auto folder = fs::path(order.path).parent_path();
  if (fs::create_directories(folder, failed))
    ::chmod(folder.c_str(), private_folder);
  if (auto noted = write_note(order, base); !noted)
    return fail(std::move(noted.error()));
  const std::lock_guard lock(lock_of(repo->get()));
  if (auto added = add(repo->get(), order, commit->get()); !added) {
    (void)remove_tree(order.path);
    forget(repo->get(), order.path);
    if (added.error().code != errc::conflict)
      keep_or_remove_branch(repo->get(), order, base);
    fs::remove(note_of(order.path), failed);
    return fail(std::move(added.error()));
  }
  ::chmod(order.path.c_str(), private_folder);
  return worktree_made{hex(base), references_of(repo->get())};
}

result<worktree_change> close_worktree(const worktree_order& order, const std::string& base) {
  if (auto ok = check(order); !ok)
    return fail(std::move(ok.error()));
  git_oid id{};
  auto repo = open_at(order.repo);
  result<worktree_change> change = fail(errc::invalid_argument, "not a commit's hash", base);
  if (!repo)
    change = fail(repo.error());
  else if (git_oid_fromstr(&id, base.c_str()) == 0)
    change = compare_worktree(repo->get(), order, id);
  if (repo && change && order.references)
    if (const auto now = references_of(repo->get()))
      tell_moved(*order.references, *now, *change);
  const auto removed = remove_tree(order.path);
  if (repo) {
    const std::lock_guard lock(lock_of(repo->get()));
    forget(repo->get(), order.path);
    const bool stays = keep_or_remove_branch(repo->get(), order, id);
    if (change)
      change->has_commits = stays;
  }
  std::error_code failed;
  if (removed)
    fs::remove(note_of(order.path), failed);
  return change;
}

std::optional<std::string> read_regular(const std::string& path, std::size_t most) {
  const unique_fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct ::stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  std::string text(most, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const auto n = ::read(file.get(), text.data() + filled, text.size() - filled);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    filled += static_cast<std::size_t>(n);
  }
  text.resize(filled);
  return text;
}

} // namespace boyd::adapters::git
