#include "git_internal.hpp"
#include "lost_internal.hpp"
#include "names_internal.hpp"

#include <climits>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace boyd::adapters::git {

namespace {

/// Of nested repositories the first ones are named.
constexpr std::size_t most_left_out = 16;

/// A path whose index entry differs from HEAD's, so that the index cannot vouch for the file.
struct head_side {
  git_oid id{};
  std::uint32_t mode = 0; ///< 0: not in HEAD
};

const char* path_of(const git_diff_delta* d) {
  return d->new_file.path != nullptr ? d->new_file.path : d->old_file.path;
}

bool is_submodule(const git_diff_delta* d) {
  return d->old_file.mode == GIT_FILEMODE_COMMIT || d->new_file.mode == GIT_FILEMODE_COMMIT;
}

/// libgit2 ends the name of a repository inside the work tree with '/' and looks no further.
bool is_nested_repository(const git_diff_delta* d) {
  const std::string_view path = path_of(d);
  return d->status == GIT_DELTA_UNTRACKED && path.ends_with('/');
}

git_diff_options diff_options() {
  git_diff_options o = GIT_DIFF_OPTIONS_INIT;
  // Directories are gone into, nested repositories are not: the fast way is about these alone, and
  // without it libgit2 hides one that has nothing in it but its `.git`.
  o.flags = GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS |
            GIT_DIFF_ENABLE_FAST_UNTRACKED_DIRS | GIT_DIFF_INCLUDE_TYPECHANGE |
            GIT_DIFF_IGNORE_SUBMODULES;
  return o;
}

result<std::map<std::string, head_side>> staged_by_others(const session& s, git_tree* head,
                                                          git_index* index) {
  git_diff_options options = diff_options();
  diff_ptr diff;
  const int rc = fill(diff, [&](git_diff** out) {
    return git_diff_tree_to_index(out, s.repo.get(), head, index, &options);
  });
  if (rc != 0)
    return fail(failure(rc, "cannot compare HEAD with the index", s.at->git_dir));
  std::map<std::string, head_side> out;
  for (std::size_t i = 0; i < git_diff_num_deltas(diff.get()); ++i) {
    const git_diff_delta* d = git_diff_get_delta(diff.get(), i);
    const git_index_entry* entry = git_index_get_bypath(index, path_of(d), 0);
    git_error_clear();
    if (is_submodule(d) || (entry != nullptr && is_left_alone(entry)))
      continue;
    const bool in_head = d->status != GIT_DELTA_ADDED && d->old_file.mode != 0;
    out[path_of(d)] = in_head ? head_side{d->old_file.id, d->old_file.mode} : head_side{};
  }
  return out;
}

bool cannot_be_read(const std::string& full) {
  return ::faccessat(AT_FDCWD, full.c_str(), R_OK, AT_EACCESS) != 0;
}

/// Why a path of which libgit2 sees no file is there all the same; empty: it is gone.
std::string still_there(const session& s, const std::string& path) {
  struct stat info {};
  if (::lstat((s.at->work_tree + "/" + path).c_str(), &info) != 0)
    return errno == ENOENT || errno == ENOTDIR
               ? std::string{}
               : std::string("cannot be read (") + std::strerror(errno) + ")";
  const bool usual = S_ISREG(info.st_mode) || S_ISLNK(info.st_mode) || S_ISDIR(info.st_mode);
  return usual ? std::string{} : "is a pipe, socket or device";
}

/// Takes out what no commit can have, and tells of it.
void take_out_refused(const session& s, std::map<std::string, change_kind>& found,
                      const std::set<std::string>& fixed) {
  std::erase_if(found, [&](const auto& each) {
    const auto& [path, kind] = each;
    struct stat info {};
    const std::string full = s.at->work_tree + "/" + path;
    if (kind == change_kind::deleted) {
      const auto why = still_there(s, path);
      if (!why.empty())
        s.notes->add(path,
                     why + " and keeps its last version in the history: remove it, or replace it");
      return !why.empty();
    }
    const bool link = ::lstat(full.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
    std::string why;
    if (is_refused_path(path, false))
      return true; // tell_of_unseen names it
    if (link && is_refused_path(path, true))
      why = refused_name_remark;
    else if (is_in_the_way(fixed, path))
      why = "has the place of a submodule, or of files outside the work tree (sparse checkout), "
            "and is not versioned: rename it";
    else if (!link && S_ISREG(info.st_mode) && cannot_be_read(full))
      why = "cannot be read, so its new content is not versioned: make it readable, or remove it";
    if (!why.empty())
      s.notes->add(path, why);
    return !why.empty();
  });
}

/// The blob id the file would get; `mode` 0 when there is no file.
result<head_side> file_side(const session& s, const std::string& path) {
  const std::string full = s.at->work_tree + "/" + path;
  struct stat info {};
  head_side side;
  if (::lstat(full.c_str(), &info) != 0 || (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)))
    return side;
  int rc = 0;
  if (S_ISLNK(info.st_mode)) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlink(full.c_str(), target.data(), target.size());
    if (length < 0)
      return side;
    rc = git_odb_hash(&side.id, target.data(), static_cast<std::size_t>(length), GIT_OBJECT_BLOB);
    side.mode = GIT_FILEMODE_LINK;
  } else {
    rc = git_repository_hashfile(&side.id, s.repo.get(), full.c_str(), GIT_OBJECT_BLOB,
                                 path.c_str());
    side.mode = (info.st_mode & S_IXUSR) != 0 ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB;
  }
  if (rc != 0 && (cannot_be_read(full) || ::lstat(full.c_str(), &info) != 0)) {
    git_error_clear();
    return side; // take_out_refused tells of it, unless it has vanished
  }
  if (rc != 0)
    return fail(failure(rc, "cannot read the file", full));
  return side;
}

/// Compares the file with HEAD directly.
result<void> compare(const session& s, const std::string& path, const head_side& head,
                     std::map<std::string, change_kind>& out) {
  const auto file = file_side(s, path);
  if (!file)
    return fail(file.error());
  if (head.mode == 0 && file->mode == 0)
    return {};
  if (head.mode == 0)
    out[path] = change_kind::added;
  else if (file->mode == 0)
    out[path] = change_kind::deleted;
  else if (head.mode != file->mode || git_oid_equal(&head.id, &file->id) == 0)
    out[path] = change_kind::modified;
  return {};
}

void take_delta(const git_diff_delta* d, const std::map<std::string, head_side>& staged,
                std::map<std::string, change_kind>& out) {
  const std::string path = path_of(d);
  // A path with a final '/' is a nested repository.
  if (is_submodule(d) || path.empty() || path.back() == '/' || staged.count(path) != 0)
    return;
  switch (d->status) {
  case GIT_DELTA_UNTRACKED:
  case GIT_DELTA_ADDED:
    out[path] = change_kind::added;
    break;
  case GIT_DELTA_DELETED:
    out[path] = change_kind::deleted;
    break;
  case GIT_DELTA_MODIFIED:
  case GIT_DELTA_TYPECHANGE:
    out[path] = change_kind::modified;
    break;
  default:
    break;
  }
}

} // namespace

bool is_left_alone(const git_index_entry* e) {
  return (e->flags & GIT_INDEX_ENTRY_VALID) != 0 ||
         (e->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) != 0;
}

std::set<std::string> fixed_paths(git_index* index) {
  std::set<std::string> out;
  for (std::size_t i = 0; i < git_index_entrycount(index); ++i)
    if (const auto* e = git_index_get_byindex(index, i);
        e->mode == GIT_FILEMODE_COMMIT || is_left_alone(e))
      out.insert(e->path);
  return out;
}

bool is_in_the_way(const std::set<std::string>& fixed, const std::string& path) {
  if (fixed.empty())
    return false;
  for (auto end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1))
    if (fixed.contains(path.substr(0, end)))
      return true;
  const auto below = fixed.lower_bound(path + "/");
  return below != fixed.end() && below->starts_with(path + "/");
}

namespace {

int leave_alone(const git_diff*, const git_diff_delta* d, const char*, void* index) {
  const auto* e = git_index_get_bypath(static_cast<git_index*>(index), path_of(d), 0);
  git_error_clear();
  return e != nullptr && is_left_alone(e) ? 1 : 0;
}

} // namespace

result<diff_ptr> compare_files(const session& s, git_index* index, git_diff_options options) {
  constexpr int attempts = 4;
  options.notify_cb = leave_alone;
  options.payload = index;
  diff_ptr diff;
  for (int i = 0;; ++i) {
    const int rc = fill(diff, [&](git_diff** out) {
      return git_diff_index_to_workdir(out, s.repo.get(), index, &options);
    });
    if (rc == 0)
      break;
    auto why = failure(rc, "cannot compare the index with the files", s.at->work_tree);
    // A file that vanished while it was read is gone at the next look.
    set_aside_unreadable(s, index);
    if (i + 1 == attempts) {
      git_ignore_clear_internal_rules(s.repo.get());
      return fail(std::move(why));
    }
  }
  git_ignore_clear_internal_rules(s.repo.get());
  return diff;
}

result<std::vector<path_change>> changes(const session& s, std::vector<std::string>& left_out) {
  left_out.clear();
  s.notes->clear();
  auto head = head_tree(s);
  if (!head)
    return fail(std::move(head.error()));
  bool rebuilt = false;
  auto index = read_index(s, s.at->git_dir + "/index", &rebuilt);
  if (!index)
    return fail(std::move(index.error()));
  auto staged = staged_by_others(s, head->get(), index->get());
  if (!staged)
    return fail(std::move(staged.error()));
  const auto fixed = fixed_paths(index->get());
  auto diff = compare_files(s, index->get(), diff_options());
  if (!diff)
    return fail(std::move(diff.error()));
  std::map<std::string, change_kind> found;
  for (std::size_t i = 0; i < git_diff_num_deltas(diff->get()); ++i) {
    const git_diff_delta* d = git_diff_get_delta(diff->get(), i);
    take_delta(d, *staged, found);
    if (is_nested_repository(d) && left_out.size() < most_left_out)
      left_out.emplace_back(path_of(d));
  }
  for (const auto& [path, side] : *staged)
    if (auto compared = compare(s, path, side, found); !compared)
      return fail(std::move(compared.error()));
  tell_of_unseen(s);
  tell_of_branches(s);
  take_out_refused(s, found, fixed);
  std::vector<path_change> out;
  out.reserve(found.size());
  for (const auto& [path, kind] : found)
    out.push_back({path, kind});
  return out;
}

result<std::size_t> tracked_files(const session& s) {
  auto head = head_tree(s);
  if (!head)
    return fail(std::move(head.error()));
  if (!*head)
    return std::size_t{0};
  index_ptr index;
  int rc = fill(index, [](git_index** out) { return git_index_new(out); });
  if (rc == 0)
    rc = git_index_read_tree(index.get(), head->get());
  if (rc != 0)
    return fail(failure(rc, "cannot read HEAD's tree", s.at->git_dir));
  bool rebuilt = false;
  const auto live = read_index(s, s.at->git_dir + "/index", &rebuilt);
  if (!live)
    return fail(live.error());
  std::size_t tracked = 0;
  for (std::size_t i = 0; i < git_index_entrycount(index.get()); ++i) {
    const auto* e =
        git_index_get_bypath(live->get(), git_index_get_byindex(index.get(), i)->path, 0);
    tracked += e != nullptr && is_left_alone(e) ? 0U : 1U;
  }
  git_error_clear();
  return tracked;
}

result<std::vector<std::string>> tracked_paths(const session& s) {
  bool rebuilt = false;
  const auto index = read_index(s, s.at->git_dir + "/index", &rebuilt);
  if (!index)
    return fail(index.error());
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < git_index_entrycount(index->get()); ++i)
    if (const auto* e = git_index_get_byindex(index->get(), i); e->mode != GIT_FILEMODE_COMMIT)
      paths.emplace_back(e->path);
  // A merge that is not settled has a path several times.
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

result<bool> ignores(const session& s, const std::string& path) {
  int ignored = 0;
  if (const int rc = git_ignore_path_is_ignored(&ignored, s.repo.get(), path.c_str()); rc != 0)
    return fail(failure(rc, "cannot read what git ignores", path));
  return ignored != 0;
}

} // namespace boyd::adapters::git
