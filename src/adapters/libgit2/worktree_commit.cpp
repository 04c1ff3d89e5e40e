#include "worktree_internal.hpp"

#include <array>
#include <utility>

namespace boyd::adapters::git {

namespace {

/// Of changed files together. What is larger was made by mistake: a build, a download.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

/// Directories, other repositories in there and submodules are no files.
bool is_file(const git_diff_file& f) {
  return f.mode == GIT_FILEMODE_BLOB || f.mode == GIT_FILEMODE_BLOB_EXECUTABLE ||
         f.mode == GIT_FILEMODE_LINK;
}

int add_file(git_repository* repo, git_index* index, const git_diff_file& f) {
  git_index_entry entry{};
  entry.path = f.path;
  entry.mode = f.mode;
  const int rc =
      write_object([&] { return git_blob_create_from_workdir(&entry.id, repo, f.path); });
  return rc == 0 ? git_index_add(index, &entry) : rc;
}

/// The files that are gone first: one may have become a directory.
int apply(git_repository* repo, git_index* index, git_diff* diff) {
  for (const bool adds : {false, true})
    for (std::size_t i = 0; i < git_diff_num_deltas(diff); ++i) {
      const auto* delta = git_diff_get_delta(diff, i);
      int rc = 0;
      if (!adds && delta->status == GIT_DELTA_DELETED)
        rc = git_index_remove(index, delta->old_file.path, 0);
      else if (adds && delta->status != GIT_DELTA_DELETED && is_file(delta->new_file))
        rc = add_file(repo, index, delta->new_file);
      if (rc != 0)
        return rc;
    }
  return 0;
}

std::uint64_t bytes_of(git_diff* diff) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < git_diff_num_deltas(diff); ++i)
    sum += git_diff_get_delta(diff, i)->new_file.size;
  return sum;
}

/// What the run committed last, or what it began with.
git_oid tip_of(git_repository* repo, const worktree_order& order, const git_oid& base) {
  reference_ptr branch;
  const git_oid* tip = nullptr;
  if (fill(branch,
           [&](auto** out) { return git_reference_lookup(out, repo, ref_of(order).c_str()); }) == 0)
    tip = git_reference_target(branch.get());
  return tip != nullptr ? *tip : base;
}

int write_commit(git_repository* repo, git_index* index, const worktree_order& order,
                 const git_oid& base, git_oid& id) {
  git_oid tree_id{};
  tree_ptr tree;
  commit_ptr parent;
  signature_ptr who;
  const auto tip = tip_of(repo, order, base);
  int rc = write_object([&] { return git_index_write_tree_to(&tree_id, index, repo); });
  if (rc == 0)
    rc = fill(tree, [&](auto** out) { return git_tree_lookup(out, repo, &tree_id); });
  if (rc == 0)
    rc = fill(parent, [&](auto** out) { return git_commit_lookup(out, repo, &tip); });
  if (rc == 0)
    rc = fill(who, [&](auto** out) { return git_signature_now(out, "boyd", "boyd@localhost"); });
  if (rc != 0)
    return rc;
  const auto message = "Changes of the run " + order.branch + "\n";
  std::array<const git_commit*, 1> parents{parent.get()};
  return write_object([&] {
    return git_commit_create(&id, repo, nullptr, who.get(), who.get(), nullptr, message.c_str(),
                             tree.get(), 1, parents.data());
  });
}

} // namespace

result<void> commit_change(git_repository* repo, git_diff* diff, const worktree_order& order,
                           const git_oid& base) {
  if (const auto bytes = bytes_of(diff); bytes > most_bytes)
    return fail(errc::limit_exceeded,
                "the changed files have " + std::to_string(bytes >> 20U) + " MiB, more than 1 GiB",
                order.path, "list what a build or a download makes in .gitignore");
  // An index of its own: the repository's is a person's.
  index_ptr index;
  commit_ptr commit;
  tree_ptr tree;
  reference_ptr moved;
  git_oid id{};
  int rc = fill(index, [&](auto** out) { return git_index_new(out); });
  if (rc == 0)
    rc = fill(commit, [&](auto** out) { return git_commit_lookup(out, repo, &base); });
  if (rc == 0)
    rc = fill(tree, [&](auto** out) { return git_commit_tree(out, commit.get()); });
  if (rc == 0)
    rc = git_index_read_tree(index.get(), tree.get());
  if (rc == 0)
    rc = apply(repo, index.get(), diff);
  if (rc == 0)
    rc = write_commit(repo, index.get(), order, base, id);
  // By its name, not through it: the run may have made it lead to another branch.
  if (rc == 0)
    rc = fill(moved, [&](auto** out) {
      return git_reference_create(out, repo, ref_of(order).c_str(), &id, 1,
                                  "boyd: changes of a run");
    });
  if (rc != 0)
    return fail(failure(rc, "cannot keep the change on the branch " + order.branch, order.repo));
  return {};
}

} // namespace boyd::adapters::git
