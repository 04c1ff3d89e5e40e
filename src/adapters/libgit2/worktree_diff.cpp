#include "boyd/core/sha256.hpp"
#include "durable_internal.hpp"
#include "worktree_internal.hpp"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace boyd::adapters::git {

namespace {

using stats_ptr = owned<git_diff_stats, git_diff_stats_free>;

constexpr mode_t private_file = 0600;

/// A file that is larger is told as changed, without its content.
constexpr git_off_t largest_file = git_off_t{8} << 20;

struct patch_text {
  std::string kept;
  std::uint64_t bytes = 0; ///< of the whole
  bool cut = false;
};

/// Keeps whole lines until the patch is long enough.
int on_line(const git_diff_delta* delta, const git_diff_hunk*, const git_diff_line* line,
            void* to) {
  auto& out = *static_cast<patch_text*>(to);
  constexpr auto most = static_cast<git_object_size_t>(largest_file);
  out.cut = out.cut || delta->old_file.size > most || delta->new_file.size > most;
  const bool content = line->origin == GIT_DIFF_LINE_CONTEXT ||
                       line->origin == GIT_DIFF_LINE_ADDITION ||
                       line->origin == GIT_DIFF_LINE_DELETION;
  const auto length = line->content_len + (content ? 1U : 0U);
  out.bytes += length;
  out.cut = out.cut || out.bytes > patch_limit;
  if (out.bytes > patch_limit)
    return 0;
  if (content)
    out.kept += line->origin;
  out.kept.append(line->content, line->content_len);
  return 0;
}

result<void> write_patch(const std::string& path, std::string_view text) {
  std::error_code failed;
  const auto folder = std::filesystem::path(path).parent_path();
  if (std::filesystem::create_directories(folder, failed))
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failed);
  const unique_fd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, private_file));
  if (!fd)
    return fail(system_failure(errno, "cannot write the patch", path));
  while (!text.empty()) {
    const auto n = ::write(fd.get(), text.data(), text.size());
    if (n < 0 && errno != EINTR)
      return fail(system_failure(errno, "cannot write the patch", path));
    if (n > 0)
      text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(fd.get()) != 0)
    return fail(system_failure(errno, "cannot write the patch", path));
  return {};
}

result<diff_ptr> differences(git_repository* repo, const git_oid& base, const std::string& path) {
  commit_ptr commit;
  tree_ptr tree;
  int rc = fill(commit, [&](auto** out) { return git_commit_lookup(out, repo, &base); });
  if (rc == 0)
    rc = fill(tree, [&](auto** out) { return git_commit_tree(out, commit.get()); });
  if (rc != 0)
    return fail(failure(rc, "cannot read the base commit of the worktree", hex(base)));
  git_diff_options options = GIT_DIFF_OPTIONS_INIT;
  options.flags = GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS |
                  GIT_DIFF_SHOW_UNTRACKED_CONTENT | GIT_DIFF_SHOW_BINARY;
  options.ignore_submodules = GIT_SUBMODULE_IGNORE_ALL;
  options.max_size = largest_file;
  diff_ptr diff;
  rc = fill(diff,
            [&](auto** out) { return git_diff_tree_to_workdir(out, repo, tree.get(), &options); });
  if (rc != 0)
    return fail(failure(rc, "cannot compare the worktree", path));
  return diff;
}

} // namespace

result<worktree_change> compare_worktree(git_repository* repo, const worktree_order& order,
                                         const git_oid& base) {
  // The repository's own object with another work tree: `.git` in there, which a run could have
  // changed, is not read.
  if (const int rc = git_repository_set_workdir(repo, order.path.c_str(), 0); rc != 0)
    return fail(failure(rc, "cannot use the worktree", order.path));
  auto diff = differences(repo, base, order.path);
  if (!diff)
    return fail(std::move(diff.error()));
  worktree_change change;
  change.files = git_diff_num_deltas(diff->get());
  if (change.files == 0) {
    ::unlink(order.patch.c_str()); // of an earlier attempt
    return change;
  }
  stats_ptr stats;
  if (fill(stats, [&](auto** to) { return git_diff_get_stats(to, diff->get()); }) == 0) {
    change.added = git_diff_stats_insertions(stats.get());
    change.removed = git_diff_stats_deletions(stats.get());
  }
  patch_text text;
  if (const int rc = git_diff_print(diff->get(), GIT_DIFF_FORMAT_PATCH, on_line, &text); rc != 0)
    return fail(failure(rc, "cannot write the worktree's changes", order.path));
  change.cut = text.cut;
  if (text.cut)
    if (const auto kept = commit_change(repo, diff->get(), order, base); !kept)
      change.not_on_branch = to_string(kept.error());
  const auto patch = to_text(patch_heading{order.repo, hex(base), order.branch, change.files,
                                           change.added, change.removed, text.bytes,
                                           text.cut ? std::string() : sha256_hex(text.kept),
                                           text.cut && change.not_on_branch.empty()}) +
                     text.kept;
  if (auto written = write_patch(order.patch, patch); !written)
    return fail(std::move(written.error()));
  change.patch_bytes = patch.size();
  change.has_secret = order.holds_secret && order.holds_secret(patch);
  return change;
}

} // namespace boyd::adapters::git
