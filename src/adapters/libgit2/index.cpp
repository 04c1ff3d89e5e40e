#include "git_internal.hpp"
#include "names_internal.hpp"

#include <git2/sys/repository.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <unistd.h>

namespace boyd::adapters::git {

namespace {

namespace fs = std::filesystem;

/// A file changed so shortly before it was read may change again within the same tick of the file
/// system's clock, unseen by its times; such an entry is written without a size, which makes git
/// and libgit2 compare contents.
constexpr std::int64_t settled_after_ns = 50'000'000;

/// So many entries get their size back at one writing of the index.
constexpr std::size_t most_settled = 16;

constexpr std::int64_t ns_per_second = 1'000'000'000;

std::int64_t nanoseconds(const timespec& t) {
  return static_cast<std::int64_t>(t.tv_sec) * ns_per_second + t.tv_nsec;
}

bool changed_just_now(const struct stat& info) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now) - nanoseconds(info.st_mtim) < settled_after_ns;
}

/// Git itself distrusts times of the second in which an index was written.
bool changed_before_this_second(const struct stat& info) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return !changed_just_now(info) && info.st_mtim.tv_sec < now.tv_sec;
}

git_index_time index_time(const timespec& t) {
  return {static_cast<std::int32_t>(t.tv_sec), static_cast<std::uint32_t>(t.tv_nsec)};
}

/// A path that no caller may give.
bool is_outside(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos || path.front() == '/')
    return true;
  const fs::path parts(path);
  return std::any_of(parts.begin(), parts.end(), [](const fs::path& part) {
    return part.empty() || part == "." || part == ".." || part == ".git";
  });
}

/// True when some directory of `path` below the work tree is a link: then the file is not in it.
bool goes_through_link(const std::string& work_tree, const std::string& path) {
  for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    struct stat info {};
    if (::lstat((work_tree + "/" + path.substr(0, end)).c_str(), &info) != 0 ||
        !S_ISDIR(info.st_mode))
      return true;
  }
  return false;
}

bool is_tracked(git_index* index, git_tree* head, const std::string& path) {
  if (index != nullptr && git_index_get_bypath(index, path.c_str(), 0) != nullptr)
    return true;
  if (head == nullptr)
    return false;
  entry_ptr entry;
  return fill(entry, [&](git_tree_entry** out) {
           return git_tree_entry_bypath(out, head, path.c_str());
         }) == 0;
}

std::uint32_t mode_of(const struct stat& info) {
  if (S_ISLNK(info.st_mode))
    return GIT_FILEMODE_LINK;
  return (info.st_mode & S_IXUSR) != 0 ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB;
}

git_index_entry entry_for(const struct stat& info, const git_oid& id) {
  git_index_entry e{};
  e.ctime = index_time(info.st_ctim);
  e.mtime = index_time(info.st_mtim);
  e.dev = static_cast<std::uint32_t>(info.st_dev);
  e.ino = static_cast<std::uint32_t>(info.st_ino);
  e.mode = mode_of(info);
  e.uid = info.st_uid;
  e.gid = info.st_gid;
  e.file_size = changed_just_now(info) ? 0 : static_cast<std::uint32_t>(info.st_size);
  e.id = id;
  return e;
}

/// Entries that the old index knew by time alone get no size: once the index is newer than they
/// are, their times prove nothing any more (git's "racily clean" entries).
result<void> forget_racy(git_index* index, std::int64_t index_seconds) {
  for (std::size_t i = 0; i < git_index_entrycount(index); ++i) {
    const git_index_entry* e = git_index_get_byindex(index, i);
    const bool racy = e->mtime.seconds >= index_seconds && e->file_size != 0;
    if (!racy || (e->mode & S_IFMT) == GIT_FILEMODE_COMMIT || git_index_entry_stage(e) != 0)
      continue;
    git_index_entry copy = *e;
    copy.file_size = 0;
    const std::string path = e->path;
    copy.path = path.c_str();
    if (const int rc = git_index_add(index, &copy); rc != 0)
      return fail(failure(rc, "cannot refresh the git index", path));
  }
  return {};
}

bool is_same(const git_index_entry* e, const git_oid& id, std::uint32_t mode) {
  return e != nullptr && e->mode == mode && git_oid_equal(&e->id, &id) != 0;
}

/// Entries that were written without a size, because their files had just been changed, get theirs
/// back when the files have settled; else their contents would be compared at every look for ever.
result<void> settle_entries(const session& s, git_index* index) {
  std::size_t settled = 0;
  for (std::size_t i = 0; i < git_index_entrycount(index) && settled < most_settled; ++i) {
    const git_index_entry* e = git_index_get_byindex(index, i);
    struct stat info {};
    const std::string path = e->path;
    if (e->file_size != 0 || git_index_entry_stage(e) != 0 || is_left_alone(e) ||
        (e->flags_extended & GIT_INDEX_ENTRY_INTENT_TO_ADD) != 0 ||
        ::lstat((s.at->work_tree + "/" + path).c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_size == 0 || !changed_before_this_second(info))
      continue;
    git_oid id{};
    const bool same = git_repository_hashfile(&id, s.repo.get(), path.c_str(), GIT_OBJECT_BLOB,
                                              path.c_str()) == 0 &&
                      is_same(e, id, mode_of(info));
    git_error_clear();
    if (!same)
      continue;
    git_index_entry copy = entry_for(info, id);
    copy.path = path.c_str();
    if (const int rc = git_index_add(index, &copy); rc != 0)
      return fail(failure(rc, "cannot refresh the git index", path));
    ++settled;
  }
  return {};
}

/// True when the index has these contents for `paths` already: a commit of what has been staged a
/// moment ago.
bool says_already(git_index* index, const std::vector<prepared_path>& paths) {
  if (git_index_has_conflicts(index) != 0)
    return false;
  const bool same = std::all_of(paths.begin(), paths.end(), [&](const prepared_path& p) {
    const git_index_entry* e = git_index_get_bypath(index, p.path.c_str(), 0);
    return p.remove ? e == nullptr : is_same(e, p.entry.id, p.entry.mode);
  });
  git_error_clear();
  return same;
}

/// The blob of a file whose content the index has: then it need not be written once more. An object
/// that the index names is safe from a person's gc.
std::optional<git_oid> staged_blob(const session& s, git_index* index, const std::string& path,
                                   const struct stat& info) {
  const git_index_entry* e = git_index_get_bypath(index, path.c_str(), 0);
  // Times without nanoseconds are another git's. Of a file that changed since it is not even asked.
  const auto now = index_time(info.st_mtim);
  const bool may_be =
      S_ISREG(info.st_mode) && e != nullptr && e->mtime.seconds == now.seconds &&
      (e->mtime.nanoseconds == 0 || e->mtime.nanoseconds == now.nanoseconds) &&
      (e->file_size == 0 || e->file_size == static_cast<std::uint32_t>(info.st_size));
  git_oid id{};
  odb_ptr odb;
  const bool is =
      may_be &&
      git_repository_hashfile(&id, s.repo.get(), path.c_str(), GIT_OBJECT_BLOB, path.c_str()) ==
          0 &&
      is_same(e, id, mode_of(info)) &&
      fill(odb, [&](git_odb** out) { return git_repository_odb(out, s.repo.get()); }) == 0 &&
      git_odb_exists(odb.get(), &id) == 1;
  git_error_clear();
  return is ? std::optional(id) : std::nullopt;
}

bool is_sparse(const session& s) {
  config_ptr config;
  int on = 0;
  const bool found = fill(config,
                          [&](git_config** out) {
                            return git_repository_config_snapshot(out, s.repo.get());
                          }) == 0 &&
                     git_config_get_bool(&on, config.get(), "core.sparseCheckout") == 0;
  config_ptr own;
  const auto file = s.at->git_dir + "/config.worktree";
  if ((!found || on == 0) && ::access(file.c_str(), R_OK) == 0 &&
      fill(own, [&](git_config** out) { return git_config_open_ondisk(out, file.c_str()); }) == 0)
    git_config_get_bool(&on, own.get(), "core.sparseCheckout");
  git_error_clear();
  return on != 0;
}

/// An index that is made from HEAD knows nothing of a sparse checkout: there a missing file is one
/// that the person does not want to see, not a deleted one.
result<void> mark_sparse(const session& s, git_index* index) {
  if (!is_sparse(s))
    return {};
  for (std::size_t i = 0; i < git_index_entrycount(index); ++i) {
    const git_index_entry* e = git_index_get_byindex(index, i);
    struct stat info {};
    const std::string path = e->path;
    if (::lstat((s.at->work_tree + "/" + path).c_str(), &info) == 0)
      continue;
    git_index_entry copy = *e;
    copy.path = path.c_str();
    copy.flags |= GIT_INDEX_ENTRY_EXTENDED;
    copy.flags_extended |= GIT_INDEX_ENTRY_SKIP_WORKTREE;
    if (const int rc = git_index_add(index, &copy); rc != 0)
      return fail(failure(rc, "cannot create a git index", path));
  }
  return {};
}

} // namespace

result<index_ptr> read_index(const session& s, const std::string& index_path, bool* rebuilt) {
  struct stat info {};
  index_ptr index;
  *rebuilt = false;
  const bool usable = ::stat(index_path.c_str(), &info) == 0 && info.st_size > 0;
  if (usable &&
      fill(index, [&](git_index** out) { return git_index_open(out, index_path.c_str()); }) == 0)
    return index;
  *rebuilt = true;
  git_error_clear();
  if (const int rc = fill(index, [](git_index** out) { return git_index_new(out); }); rc != 0)
    return fail(failure(rc, "cannot create a git index", index_path));
  auto head = head_tree(s);
  if (!head)
    return fail(std::move(head.error()));
  if (*head)
    if (const int rc = git_index_read_tree(index.get(), head->get()); rc != 0)
      return fail(failure(rc, "cannot read HEAD's tree", index_path));
  if (auto marked = mark_sparse(s, index.get()); !marked)
    return fail(std::move(marked.error()));
  if (info.st_size > 0)
    s.notes->add(".git/index", "cannot be read; the next commit creates it again from HEAD. Staged "
                               "changes are lost, files are not");
  // libgit2 looks for attributes in the repository's own index too, and fails on a torn one.
  git_repository_set_index(s.repo.get(), index.get());
  return index;
}

namespace {

/// Asks libgit2 itself, too: a single name must not stop a commit.
bool may_be_added(const session& s, const std::string& path, std::uint32_t mode,
                  const std::set<std::string>& fixed) {
  if (is_in_the_way(fixed, path))
    return false; // changes() tells of it
  index_ptr scratch;
  git_index_entry entry{};
  entry.path = path.c_str();
  entry.mode = mode;
  const bool taken = !is_refused_path(path, mode == GIT_FILEMODE_LINK) &&
                     fill(scratch, [](git_index** out) { return git_index_new(out); }) == 0 &&
                     git_index_add(scratch.get(), &entry) == 0;
  git_error_clear();
  if (!taken && !is_refused_path(path, false))
    s.notes->add(path, refused_name_remark);
  return taken;
}

} // namespace

result<std::vector<prepared_path>> prepare(const session& s, const std::vector<path_change>& paths,
                                           staged_first look) {
  bool rebuilt = false;
  auto index = read_index(s, s.at->git_dir + "/index", &rebuilt);
  if (!index)
    return fail(std::move(index.error()));
  const auto fixed = fixed_paths(index->get());
  std::vector<prepared_path> out;
  if (s.filtered != nullptr)
    s.filtered->clear();
  for (const auto& change : paths) {
    if (is_outside(change.path))
      return fail(errc::invalid_argument, "not a path inside the work tree", change.path);
    const auto* known = git_index_get_bypath(index->get(), change.path.c_str(), 0);
    git_error_clear();
    if (known != nullptr && is_left_alone(known))
      continue;
    if (s.filter != nullptr)
      if (auto name = (*s.filter)(change.path); name != change.path) {
        s.filtered->push_back(std::move(name));
        continue;
      }
    struct stat info {};
    const std::string full = s.at->work_tree + "/" + change.path;
    const bool missing = goes_through_link(s.at->work_tree, change.path) ||
                         ::lstat(full.c_str(), &info) != 0 ||
                         (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode));
    if (missing) {
      if (change.kind == change_kind::deleted)
        out.push_back({change.path, true, {}});
      continue;
    }
    if (!may_be_added(s, change.path, mode_of(info), fixed))
      continue;
    int ignored = 0;
    git_ignore_path_is_ignored(&ignored, s.repo.get(), change.path.c_str());
    if (ignored == 1) {
      const auto head = head_tree(s);
      if (!head)
        return fail(head.error());
      if (!is_tracked(index->get(), head->get(), change.path))
        continue;
    }
    auto filtered = filtered_blob(s, change.path, info);
    if (!filtered)
      return fail(std::move(filtered.error()));
    if (*filtered) {
      s.filtered->push_back(change.path);
      out.push_back({change.path, false, entry_for(info, **filtered)});
      // Never taken for the file's content: without a size contents are compared.
      out.back().entry.file_size = 0;
      continue;
    }
    if (const auto id = look == staged_first::yes ? staged_blob(s, index->get(), change.path, info)
                                                  : std::nullopt) {
      out.push_back({change.path, false, entry_for(info, *id)});
      continue;
    }
    git_oid id{};
    if (const int rc = write_object(
            [&] { return git_blob_create_from_workdir(&id, s.repo.get(), change.path.c_str()); });
        rc != 0) {
      const error why = failure(rc, "cannot store a version of the file", full);
      struct stat now {};
      if (::lstat(full.c_str(), &now) != 0 && (errno == ENOENT || errno == ENOTDIR))
        continue; // it has vanished: for the next commit
      if (S_ISREG(now.st_mode) && ::faccessat(AT_FDCWD, full.c_str(), R_OK, AT_EACCESS) == 0)
        return fail(why);
      s.notes->add(
          change.path,
          "cannot be read, so its new content is not versioned: make it readable, or remove it");
      continue;
    }
    out.push_back({change.path, false, entry_for(info, id)});
  }
  return out;
}

result<void> apply(git_index* index, const std::vector<prepared_path>& paths) {
  for (const auto& p : paths) {
    int rc = 0;
    if (p.remove) {
      rc = git_index_remove(index, p.path.c_str(), 0);
      rc = rc == GIT_ENOTFOUND ? 0 : rc;
    } else {
      git_index_entry entry = p.entry;
      entry.path = p.path.c_str();
      rc = git_index_add(index, &entry);
    }
    if (rc != 0)
      return fail(failure(rc, "cannot stage", p.path));
  }
  git_error_clear();
  return {};
}

namespace {

/// The entries of the index `live` with `paths` put in, opened under the name `draft`; null when
/// they are in it already.
result<index_ptr> draft_entries(const session& s, const std::string& live, const std::string& draft,
                                const std::vector<prepared_path>& paths) {
  std::error_code ec;
  struct stat info {};
  // The draft is replaced as a whole when it is written, never changed: a second name will do.
  const bool copied = ::stat(live.c_str(), &info) == 0 && info.st_size > 0 &&
                      (::link(live.c_str(), draft.c_str()) == 0 ||
                       fs::copy_file(live, draft, fs::copy_options::overwrite_existing, ec));
  bool rebuilt = false;
  auto index = read_index(s, draft, &rebuilt);
  if (!index)
    return index;
  if (rebuilt) {
    if (copied)
      spdlog::warn("the git index {} cannot be read; creating it again from HEAD", live);
    fs::remove(draft, ec);
    index_ptr fresh;
    if (const int rc =
            fill(fresh, [&](git_index** out) { return git_index_open(out, draft.c_str()); });
        rc != 0)
      return fail(failure(rc, "cannot create a git index", draft));
    auto head = head_tree(s);
    if (!head)
      return fail(std::move(head.error()));
    if (*head)
      git_index_read_tree(fresh.get(), head->get());
    if (auto marked = mark_sparse(s, fresh.get()); !marked)
      return fail(std::move(marked.error()));
    *index = std::move(fresh);
  } else if (copied && says_already(index->get(), paths)) {
    fs::remove(draft, ec);
    return index_ptr{};
  }
  if (auto done = apply(index->get(), paths); !done)
    return fail(std::move(done.error()));
  if (copied)
    if (auto done = forget_racy(index->get(), info.st_mtim.tv_sec); !done)
      return fail(std::move(done.error()));
  if (auto done = settle_entries(s, index->get()); !done)
    return fail(std::move(done.error()));
  return index;
}

} // namespace

result<index_draft> index_draft::make(const session& s, const std::vector<prepared_path>& paths) {
  const std::string live = s.at->git_dir + "/index";
  index_draft draft;
  draft.path_ = s.at->git_dir + "/boyd-index";
  std::error_code ec;
  fs::remove(draft.path_, ec);
  fs::remove(draft.path_ + ".lock", ec);
  auto index = draft_entries(s, live, draft.path_, paths);
  if (!index)
    return fail(std::move(index.error()));
  if (!*index)
    return draft;
  if (const int rc = git_index_write(index->get()); rc != 0)
    return fail(failure(rc, "cannot write the git index", draft.path_));
  draft.file_.reset(::open(draft.path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!draft.file_)
    return fail(system_failure(errno, "cannot write the git index", draft.path_));
  return draft;
}

void index_draft::add_to(sync_group& group) const {
  if (is_news())
    group.add(file_.get(), path_);
}

result<void> index_draft::publish(const session& s) {
  const std::string live = s.at->git_dir + "/index";
  if (is_news() && ::rename(path_.c_str(), live.c_str()) != 0)
    return fail(system_failure(errno, "cannot replace the git index", live));
  file_.reset();
  return {};
}

} // namespace boyd::adapters::git
