#include "boyd/core/limits.hpp"
#include "git_internal.hpp"
#include "inside_internal.hpp"
#include "locks_internal.hpp"
#include "lost_internal.hpp"

#include <climits>
#include <spdlog/spdlog.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace boyd::adapters::git {

namespace {

namespace fs = std::filesystem;

constexpr mode_t private_directory = 0700;

/// What is never versioned: temporary files of atomic writes and the backups of files.
constexpr std::string_view exclude_mark = "# kept by boyd";
constexpr std::string_view exclude_lines = "# kept by boyd\n.*.boyd-tmp-*\n*.bak\n";

constexpr std::size_t exclude_bytes = 1u << 20;

result<std::string> canonical(const std::string& path) {
  std::error_code ec;
  const fs::path real = fs::canonical(path, ec);
  if (ec)
    return fail(errc::repository_unavailable, "cannot find the directory: " + ec.message(), path);
  return real.string();
}

bool sync_path(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  const bool ok = ::fsync(fd) == 0;
  ::close(fd);
  return ok;
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

/// Also true when the place cannot be looked into: in doubt a repository is not overlooked.
bool is_directory(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0)
    return S_ISDIR(info.st_mode);
  return errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
}

/// Has the directories of a repository, or a work tree's link to them. HEAD does not matter: a
/// repository that lost it is damaged, and still somebody's.
bool is_repository(const std::string& dir) {
  return exists(dir + "/commondir") ||
         (is_directory(dir + "/objects") && is_directory(dir + "/refs"));
}

/// The directory that a `.git` file names ("gitdir: PATH"); empty: it names none.
std::string named_by(const fs::path& file) {
  constexpr std::string_view key = "gitdir: ";
  std::string text(key.size() + PATH_MAX, '\0');
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return {};
  const auto n = ::read(fd, text.data(), text.size());
  ::close(fd);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
    text.pop_back();
  if (text.rfind(key, 0) != 0 || text.size() == key.size() || text.find('\0') != std::string::npos)
    return {};
  return (file.parent_path() / text.substr(key.size())).string();
}

/// As git sees it: an empty `.git`, or a file that names no repository, makes no work tree.
bool is_work_tree(const fs::path& dir) {
  const fs::path git = dir / ".git";
  if (is_directory(git.string()))
    return is_repository(git.string());
  const std::string elsewhere = named_by(git);
  return !elsewhere.empty() && is_directory(elsewhere) && is_repository(elsewhere);
}

/// The nearest directory above `path` that is a work tree or a repository; empty: none.
std::string outer_repository(const std::string& path) {
  for (fs::path dir = fs::path(path).parent_path();; dir = dir.parent_path()) {
    if (is_work_tree(dir))
      return dir.string();
    if (exists((dir / "HEAD").string()) && is_repository(dir.string()))
      return dir.string();
    if (dir == dir.root_path())
      return {};
  }
}

/// docs/state-and-history.md: a directory inside another work tree is refused unless ignored there.
result<void> check_surroundings(const std::string& path) {
  const std::string outer = outer_repository(path);
  if (outer.empty())
    return {};
  const std::string next = "add it to " + outer + "/.gitignore or choose another place";
  repository_ptr repo;
  const int rc = fill(repo, [&](git_repository** out) {
    return open_repository(out, outer, GIT_REPOSITORY_OPEN_NO_SEARCH);
  });
  int ignored = 0;
  if (rc == 0 && git_repository_is_bare(repo.get()) == 0) {
    const std::string inside = fs::path(path).lexically_relative(outer).string();
    if (git_ignore_path_is_ignored(&ignored, repo.get(), inside.c_str()) == 0 && ignored == 1)
      return {};
  }
  return fail(errc::refused, "the directory is inside another git work tree, " + outer, path, next);
}

/// `.git` must be a directory of its own, see repository.hpp.
result<struct stat> check_git_dir(const std::string& git_dir) {
  struct stat info {};
  if (::lstat(git_dir.c_str(), &info) != 0)
    return fail(errc::repository_unavailable, "no git repository", git_dir,
                "restore it, or stop the node and create a new one: boyd init");
  if (!S_ISDIR(info.st_mode))
    return fail(errc::refused, ".git is not a separate directory", git_dir,
                "move it away, then create a new one: boyd init");
  if (exists(git_dir + "/commondir"))
    return fail(errc::refused, "the repository shares the objects of another one (commondir)",
                git_dir, "use a separate repository");
  return info;
}

result<void> set_missing(git_config* config, const char* key, const std::string& value) {
  owned<git_config_entry, git_config_entry_free> entry;
  const int rc =
      fill(entry, [&](git_config_entry** out) { return git_config_get_entry(out, config, key); });
  if (rc == 0)
    return {};
  if (rc != GIT_ENOTFOUND)
    return fail(failure(rc, "cannot read the repository's configuration", key));
  if (const int set = git_config_set_string(config, key, value.c_str()); set != 0)
    return fail(failure(set, "cannot write the repository's configuration", key));
  return {};
}

/// The repository's own configuration: git run beside the node must see the same bytes (autocrlf),
/// sign nothing, and leave packing to the node. What a person has set is kept.
result<void> configure(git_repository* repo, const git_identity& who) {
  config_ptr config;
  const int rc = fill(config, [&](git_config** out) { return git_repository_config(out, repo); });
  if (rc != 0)
    return fail(failure(rc, "cannot open the repository's configuration", {}));
  const std::array<std::pair<const char*, std::string>, 6> values{{{"user.name", who.name},
                                                                   {"user.email", who.email},
                                                                   {"commit.gpgsign", "false"},
                                                                   {"tag.gpgsign", "false"},
                                                                   {"gc.auto", "0"},
                                                                   {"core.autocrlf", "false"}}};
  for (const auto& [key, value] : values)
    if (auto set = set_missing(config.get(), key, value); !set)
      return set;
  return {};
}

result<void> write_exclude(const std::string& git_dir) {
  const std::string path = git_dir + "/info/exclude";
  std::string text;
  if (std::ifstream in(path, std::ios::binary); in) {
    text.resize(exclude_bytes);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
  }
  if (text.find(exclude_mark) != std::string::npos)
    return {};
  if (!text.empty() && text.back() != '\n')
    text += '\n';
  text += exclude_lines;
  std::error_code ec;
  fs::create_directories(git_dir + "/info", ec);
  const std::string draft = git_dir + "/boyd-exclude";
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out || !sync_path(draft) || ::rename(draft.c_str(), path.c_str()) != 0)
    return fail(system_failure(errno, "cannot write the exclude file", path));
  return {};
}

/// libgit2 syncs objects and refs, not the files an initialisation makes.
void sync_new_repository(const std::string& work_tree) {
  const std::string git_dir = work_tree + "/.git";
  for (const char* name :
       {"/HEAD", "/config", "/info/exclude", "/info", "/objects", "/refs/heads", "/refs", ""})
    if (!sync_path(git_dir + name))
      spdlog::warn("cannot sync {}{}", git_dir, name);
  sync_path(work_tree);
}

result<void> make_repository(const std::string& work_tree, const git_identity& who) {
  git_repository_init_options options = GIT_REPOSITORY_INIT_OPTIONS_INIT;
  const std::string git_dir = work_tree + "/.git";
  options.flags = GIT_REPOSITORY_INIT_NO_DOTGIT_DIR | GIT_REPOSITORY_INIT_MKDIR;
  options.workdir_path = work_tree.c_str();
  options.initial_head = "main";
  if (::mkdir(git_dir.c_str(), private_directory) != 0 && errno != EEXIST)
    return fail(system_failure(errno, "cannot create the directory", git_dir));
  // Marks every lock file that libgit2 makes meanwhile as ours: a start after a crash removes them.
  const auto lock = index_lock::acquire(work_tree, git_dir, limits::repository_lock_wait);
  if (!lock)
    return fail(lock.error());
  repository_ptr repo;
  const int rc = fill(repo, [&](git_repository** out) {
    return git_repository_init_ext(out, git_dir.c_str(), &options);
  });
  if (rc != 0)
    return fail(failure(rc, "cannot create a git repository", work_tree));
  ::chmod(git_dir.c_str(), private_directory);
  if (auto made = configure(repo.get(), who); !made)
    return made;
  if (auto made = write_exclude(git_dir); !made)
    return made;
  sync_new_repository(work_tree);
  return {};
}

/// An existing repository is brought to what `make_repository` would have left, in case a crash
/// came between its steps.
result<void> complete(const std::string& work_tree, const git_identity& who) {
  const std::string git_dir = work_tree + "/.git";
  repository_ptr repo;
  const int rc = fill(repo, [&](git_repository** out) {
    return open_repository(out, git_dir,
                           GIT_REPOSITORY_OPEN_NO_SEARCH | GIT_REPOSITORY_OPEN_NO_DOTGIT);
  });
  if (rc != 0)
    return fail(failure(rc, "cannot open the git repository", git_dir));
  // As in make_repository; a person's git at work in it is no reason to fail.
  const auto lock = index_lock::acquire(work_tree, git_dir, milliseconds{0});
  if (auto made = configure(repo.get(), who); !made)
    return made;
  return write_exclude(git_dir);
}

} // namespace

bool is_there(const location& at) {
  struct stat info {};
  return ::lstat(at.git_dir.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_dev == at.device && info.st_ino == at.inode;
}

result<session> open_session(const location& at, remarks& notes) {
  if (!is_there(at))
    return fail(errc::repository_unavailable, "the git repository was removed or replaced",
                at.git_dir, "restore it; Boyd then opens it again by itself");
  if (auto inside = check_inside(at.git_dir); !inside)
    return fail(std::move(inside.error()));
  session s;
  s.at = &at;
  s.notes = &notes;
  const int rc = fill(s.repo, [&](git_repository** out) {
    return open_repository(out, at.git_dir,
                           GIT_REPOSITORY_OPEN_NO_SEARCH | GIT_REPOSITORY_OPEN_NO_DOTGIT);
  });
  if (rc != 0)
    return fail(cannot_open(failure(rc, "cannot open the git repository", at.git_dir), at));
  // Only when it is another one: libgit2 1.5 leaks the path when it is already set.
  const char* const standing = git_repository_workdir(s.repo.get());
  if (standing == nullptr || standing != at.work_tree + "/")
    if (const int set = git_repository_set_workdir(s.repo.get(), at.work_tree.c_str(), 0); set != 0)
      return fail(failure(set, "cannot use the work tree", at.work_tree));
  git_repository_set_ident(s.repo.get(), at.who.name.c_str(), at.who.email.c_str());
  if (const int attached = object_batch::attach(s.repo.get(), &s.objects); attached != 0)
    return fail(failure(attached, "cannot open the objects", at.git_dir));
  return s;
}

result<location> locate(const std::string& path, const git_identity& who) {
  auto work_tree = canonical(path);
  if (!work_tree)
    return fail(std::move(work_tree.error()));
  const std::string git_dir = *work_tree + "/.git";
  const auto info = check_git_dir(git_dir);
  if (!info)
    return fail(info.error());
  if (auto alone = check_surroundings(*work_tree); !alone)
    return fail(std::move(alone.error()));
  if (auto inside = check_inside(git_dir); !inside)
    return fail(std::move(inside.error()));
  recover_locks(*work_tree, git_dir);
  location at{*work_tree, git_dir, info->st_dev, info->st_ino, who};
  remarks unheard;
  auto opened = open_session(at, unheard);
  if (!opened)
    return fail(std::move(opened.error()));
  if (auto whole = settle_branch(*opened); !whole)
    return fail(std::move(whole.error()));
  return at;
}

result<void> check_place(const std::string& path) {
  std::error_code ec;
  const fs::path real = fs::weakly_canonical(path, ec);
  if (ec)
    return fail(errc::io_error, "cannot find the directory: " + ec.message(), path);
  return check_surroundings(real.string());
}

result<void> create(const std::string& path, const git_identity& who) {
  const bool was_there = exists(path);
  if (!was_there && ::mkdir(path.c_str(), private_directory) != 0)
    return fail(system_failure(errno, "cannot create the directory", path));
  auto work_tree = canonical(path);
  if (!work_tree)
    return fail(std::move(work_tree.error()));
  if (auto alone = check_surroundings(*work_tree); !alone) {
    if (!was_there)
      ::rmdir(path.c_str());
    return alone;
  }
  const std::string git_dir = *work_tree + "/.git";
  if (!exists(git_dir))
    return make_repository(*work_tree, who);
  if (const auto own = check_git_dir(git_dir); !own)
    return fail(own.error());
  if (auto inside = check_inside(git_dir); !inside)
    return inside;
  recover_locks(*work_tree, git_dir);
  const bool begun = exists(git_dir + "/HEAD") && exists(git_dir + "/objects") &&
                     exists(git_dir + "/refs") && exists(git_dir + "/config");
  if (!begun)
    return make_repository(*work_tree, who);
  return complete(*work_tree, who);
}

} // namespace boyd::adapters::git
