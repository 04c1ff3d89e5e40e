#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/repository.hpp"
#include "object_batch_internal.hpp"
#include "remarks_internal.hpp"

#include <git2.h>
#if __has_include(<git2/sys/errors.h>)
#include <git2/sys/errors.h> // newer versions declare git_error_clear here
#endif

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

/// What the adapter's files share; the only header that sees libgit2.
namespace boyd::adapters::git {

/// Frees a libgit2 object.
template <auto Free>
struct free_with {
  template <class T>
  void operator()(T* p) const noexcept {
    Free(p);
  }
};

template <class T, auto Free>
using owned = std::unique_ptr<T, free_with<Free>>;

/// Opens like git_repository_open_ext, without a search. A repository of format 1 or newer is kept
/// when it is closed, and given out again, blank, while its configuration and its place are the
/// same: libgit2 checks the extensions of such a one at every opening, and loses 20 KiB for every
/// key of its configuration (pcre2_match_data in git_regexp_match). From any thread.
/// kept_repositories.cpp
int open_repository(git_repository** out, const std::string& path, unsigned flags);
void close_repository(git_repository* repo);

using repository_ptr = owned<git_repository, close_repository>;
using index_ptr = owned<git_index, git_index_free>;
using tree_ptr = owned<git_tree, git_tree_free>;
using commit_ptr = owned<git_commit, git_commit_free>;
using object_ptr = owned<git_object, git_object_free>;
using reference_ptr = owned<git_reference, git_reference_free>;
using signature_ptr = owned<git_signature, git_signature_free>;
using diff_ptr = owned<git_diff, git_diff_free>;
using walk_ptr = owned<git_revwalk, git_revwalk_free>;
using odb_ptr = owned<git_odb, git_odb_free>;
using odb_object_ptr = owned<git_odb_object, git_odb_object_free>;
using builder_ptr = owned<git_packbuilder, git_packbuilder_free>;
using config_ptr = owned<git_config, git_config_free>;
using entry_ptr = owned<git_tree_entry, git_tree_entry_free>;
using blob_ptr = owned<git_blob, git_blob_free>;

/// Fills an owning pointer from a C function with an out parameter; returns the function's code.
template <class Owned, class F>
int fill(Owned& out, F&& make) {
  typename Owned::pointer raw = nullptr;
  const int rc = make(&raw);
  out.reset(raw);
  return rc;
}

/// Writes an object by `write`, a libgit2 call. A person's `git gc` removes empty directories of
/// objects, perhaps between libgit2's making one and using it: so it is tried again, which is safe
/// because an object's name is its content.
template <class Write>
int write_object(Write write) {
  constexpr int attempts = 4;
  int rc = write();
  for (int i = 1; rc != 0 && i < attempts; ++i)
    rc = write();
  return rc;
}

/// Where an opened repository is, and which one it was.
struct location {
  std::string work_tree; ///< canonical, without a trailing '/'
  std::string git_dir;   ///< work_tree + "/.git"
  dev_t device = 0;      ///< of git_dir, to notice that it was exchanged
  ino_t inode = 0;
  git_identity who;
  /// Directories of objects in which names were made that are not known to be durable. A commit
  /// that finds such an object there does not write it once more, so they outlive an opening.
  mutable std::vector<std::string> unsynced{};
};

/// One opening of the repository, for a few calls of the port.
struct session {
  repository_ptr repo;
  const location* at = nullptr;
  object_batch* objects = nullptr;              ///< the new ones; belongs to `repo`
  const content_filter* filter = nullptr;       ///< repository::filter_contents; null: none
  std::vector<std::string>* filtered = nullptr; ///< repository::filtered, when there is a filter
  remarks* notes = nullptr;                     ///< repository::remarks; belongs to the repository
};

/// Starts libgit2 once: no configuration from outside the repository, fsync on.
void start_library();

/// The error of a libgit2 call that returned `rc`, with libgit2's own words. What has no better
/// code becomes `otherwise`.
error failure(int rc, std::string_view doing, const std::string& where,
              errc otherwise = errc::repository_unavailable);

/// The error of a system call.
error system_failure(int code, std::string_view doing, const std::string& where);

std::string hex(const git_oid& id);

/// Whether the repository of `at` still stands where it stood.
bool is_there(const location& at);

/// Opens it for a few calls; `repository_unavailable` when it is not the one of `at` any more.
result<session> open_session(const location& at, remarks& notes);

/// Checks the directory, its `.git` and its surroundings, and removes leftover locks.
result<location> locate(const std::string& path, const git_identity& who);

/// See check_place_of_repository.
result<void> check_place(const std::string& path);

/// Makes what is missing of the repository; see the port.
result<void> create(const std::string& path, const git_identity& who);

/// HEAD's commit; null in an unborn branch.
result<commit_ptr> head_commit(const session& s);

/// HEAD's tree; null in an unborn branch.
result<tree_ptr> head_tree(const session& s);

/// The repository's index as it is on disk; one rebuilt from HEAD in memory when it is missing,
/// torn or unreadable.
result<index_ptr> read_index(const session& s, const std::string& index_path, bool* rebuilt);

/// Whether the index's entry stays as it is in HEAD, whatever stands in the work tree: a person has
/// marked it (`git update-index --skip-worktree`, `--assume-unchanged`, a sparse checkout).
bool is_left_alone(const git_index_entry* e);

/// Paths of entries that are left alone, and of gitlinks: no file may take their place.
std::set<std::string> fixed_paths(git_index* index);

/// Whether a file at `path` would push one of `fixed` out of the tree.
bool is_in_the_way(const std::set<std::string>& fixed, const std::string& path);

/// Takes what cannot be read out of `index` (in memory) and out of what libgit2 looks at until
/// git_ignore_clear_internal_rules, and tells of it; false when all can be read.
bool set_aside_unreadable(const session& s, git_index* index);

inline constexpr const char* refused_name_remark =
    "has a name that git does not accept and is not versioned: rename it";
inline constexpr const char* special_file_remark =
    "is a pipe, socket or device and is not versioned: remove it, or list it in .gitignore";

/// Tells of files that libgit2 passes over in silence: names that are .git on another file system,
/// and special files. Bounded; what lies in a directory that is left out is not told.
void tell_of_unseen(const session& s);

/// Compares the files with `index`, without entries that are left alone. What cannot be read is set
/// aside: out of `index`, too.
result<diff_ptr> compare_files(const session& s, git_index* index, git_diff_options options);

// -- changes and commits --
/// `left_out`: nested repositories that are not ignored, as repository::left_out names them.
result<std::vector<path_change>> changes(const session& s, std::vector<std::string>& left_out);
result<std::size_t> tracked_files(const session& s);
result<std::vector<std::string>> tracked_paths(const session& s);
result<bool> ignores(const session& s, const std::string& path);
result<void> stage(const session& s, const std::vector<path_change>& paths);
result<std::optional<std::string>> commit(const session& s, const std::vector<path_change>& paths,
                                          const std::string& message, utc_time when);
result<commit_pair> commit_two(const session& s, const std::vector<path_change>& paths,
                               const earlier_version& version, const std::string& earlier_message,
                               const std::string& later_message, utc_time when);

/// A direct ref that is about to move, durably, as git does it. Unlike libgit2 it does not sync the
/// reflog, which is for people to look at and proves nothing: four syncs less.
class ref_move {
 public:
  /// `name`: in full. Nothing is touched yet.
  ref_move(const session& s, std::string name);
  ref_move(const ref_move&) = delete;
  ref_move& operator=(const ref_move&) = delete;
  /// Gives the lock up unless the ref has moved.
  ~ref_move();

  /// Takes the ref's lock file and writes `to` into it: libgit2's code, GIT_ELOCKED when somebody
  /// holds it, GIT_EMODIFIED when the ref is not at `from`. While it is held nobody moves the ref.
  int prepare(const git_oid& from, const git_oid& to);

  /// The lock file, which must be synced before finish().
  void add_to(sync_group& group) const { group.add(file_.get(), lock_); }

  /// Moves the ref; durable when it is 0.
  int finish(const std::string& note);

  /// See settle_doubt.
  int write_again();

 private:
  int take();
  int write_lock();
  int put_in_place();
  int create() const;

  const session& s_;
  std::string name_;
  std::string path_;
  std::string lock_;
  unique_fd file_;
  bool held_ = false;
  git_oid from_{};
  git_oid to_{};
};

/// `name` has moved, and nobody knows whether on the disk. Remembered for the process, by
/// repository: an error makes its user open it anew. Threads: any.
void doubt_ref(const session& s, const std::string& name);

/// Whoever asks for or makes commits must not believe a doubtful ref before this has succeeded. It
/// is written once more as it stands, into a new file, and that is synced: after a failed fsync a
/// later one that succeeds says nothing of what the first one was to write (the kernel tells of an
/// error once), and the name may have been lost with it. `io_error`, `no_space`, or `locked`.
result<void> settle_doubt(const session& s);

// -- reading --
result<std::vector<commit_info>> history(const session& s, const std::string& path, std::size_t n);
result<std::string> diff(const session& s, const std::string& a, const std::string& b);
result<std::string> read_at(const session& s, const std::string& revision, const std::string& path);
result<std::string> commit_at(const session& s, utc_time t);
result<bool> is_kept(const session& s, const std::string& hash);

// -- packing --
result<std::size_t> loose_objects(const session& s);
result<std::size_t> pack(const session& s);

/// A file's new content, made before the index is locked.
struct prepared_path {
  std::string path;
  bool remove = false;
  git_index_entry entry{}; ///< `entry.path` points into `path` only while it is used
};

/// Whether contents that the index has are looked for before blobs are written: for a commit, whose
/// files have mostly been staged.
enum class staged_first : bool { no, yes };

/// The blob of what `s.filter` leaves of a file; nothing when the file may be stored as it is.
result<std::optional<git_oid>> filtered_blob(const session& s, const std::string& path,
                                             const struct stat& info);

/// Writes blobs for `paths`; what is ignored, vanished or not a file is left out.
result<std::vector<prepared_path>> prepare(const session& s, const std::vector<path_change>& paths,
                                           staged_first look);

/// A new index file beside the one in use. The index lock must be held as long as it lives.
class index_draft {
 public:
  index_draft() = default;

  /// The index with `paths` put in, not yet durable.
  static result<index_draft> make(const session& s, const std::vector<prepared_path>& paths);

  /// False: the index says so already.
  bool is_news() const noexcept { return static_cast<bool>(file_); }

  void add_to(sync_group& group) const;

  /// Replaces the index; the draft must have been synced, and its objects must be durable.
  result<void> publish(const session& s);

 private:
  std::string path_;
  unique_fd file_;
};

/// Puts `paths` into an index in memory.
result<void> apply(git_index* index, const std::vector<prepared_path>& paths);

} // namespace boyd::adapters::git
