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

struct patch_file {
  unique_fd fd;
  std::uint64_t bytes = 0;
  bool cut = false;
  int error = 0;
};

bool write_all(patch_file& out, const char* data, std::size_t size) {
  while (size > 0) {
    const auto n = ::write(out.fd.get(), data, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      out.error = errno;
      return false;
    }
    out.bytes += static_cast<std::uint64_t>(n);
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

/// Whole lines until the patch is long enough.
int on_line(const git_diff_delta*, const git_diff_hunk*, const git_diff_line* line, void* to) {
  auto& out = *static_cast<patch_file*>(to);
  const bool content = line->origin == GIT_DIFF_LINE_CONTEXT ||
                       line->origin == GIT_DIFF_LINE_ADDITION ||
                       line->origin == GIT_DIFF_LINE_DELETION;
  if (out.bytes + line->content_len + 1 > patch_limit) {
    out.cut = true;
    return GIT_EUSER;
  }
  const bool written = (!content || write_all(out, &line->origin, 1)) &&
                       write_all(out, line->content, line->content_len);
  return written ? 0 : GIT_EUSER;
}

result<patch_file> open_patch(const std::string& path) {
  std::error_code failed;
  const auto folder = std::filesystem::path(path).parent_path();
  if (std::filesystem::create_directories(folder, failed))
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failed);
  patch_file out;
  out.fd = unique_fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, private_file));
  if (out.fd.get() < 0)
    return fail(system_failure(errno, "cannot write the patch", path));
  return out;
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
  auto out = open_patch(order.patch);
  if (!out)
    return fail(std::move(out.error()));
  const auto heading = to_text(patch_heading{order.repo, hex(base), order.branch, change.files,
                                             change.added, change.removed});
  write_all(*out, heading.data(), heading.size());
  const int rc = git_diff_print(diff->get(), GIT_DIFF_FORMAT_PATCH, on_line, &*out);
  if (out->error != 0)
    return fail(system_failure(out->error, "cannot write the patch", order.patch));
  if (rc != 0 && !out->cut)
    return fail(failure(rc, "cannot write the worktree's changes", order.path));
  if (::fsync(out->fd.get()) != 0)
    return fail(system_failure(errno, "cannot write the patch", order.patch));
  change.patch_bytes = out->bytes;
  change.cut = out->cut;
  change.has_secret =
      order.holds_secret &&
      order.holds_secret(
          read_regular(order.patch, static_cast<std::size_t>(out->bytes)).value_or(""));
  return change;
}

} // namespace boyd::adapters::git
