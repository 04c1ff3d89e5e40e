#include "boyd/core/limits.hpp"
#include "git_internal.hpp"
#include "locks_internal.hpp"
#include "lost_internal.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <sys/statvfs.h>
#include <utility>

namespace boyd::adapters::git {

namespace {

/// A disk with less room than this takes no commit: bytes.
constexpr std::uint64_t least_room = std::uint64_t{64} << 10;

/// Refuses to touch index or HEAD while a person is in the middle of something.
result<void> check_nothing_in_progress(const session& s) {
  const int state = git_repository_state(s.repo.get());
  if (state == GIT_REPOSITORY_STATE_NONE)
    return {};
  const char* what = "an operation";
  switch (state) {
  case GIT_REPOSITORY_STATE_MERGE:
    what = "a merge";
    break;
  case GIT_REPOSITORY_STATE_REVERT:
  case GIT_REPOSITORY_STATE_REVERT_SEQUENCE:
    what = "a revert";
    break;
  case GIT_REPOSITORY_STATE_CHERRYPICK:
  case GIT_REPOSITORY_STATE_CHERRYPICK_SEQUENCE:
    what = "a cherry-pick";
    break;
  case GIT_REPOSITORY_STATE_BISECT:
    what = "a bisect";
    break;
  case GIT_REPOSITORY_STATE_REBASE:
  case GIT_REPOSITORY_STATE_REBASE_INTERACTIVE:
  case GIT_REPOSITORY_STATE_REBASE_MERGE:
    what = "a rebase";
    break;
  default:
    break;
  }
  return fail(errc::conflict, std::string("unfinished git operation: ") + what, s.at->work_tree,
              "finish or abort it with git");
}

/// What HEAD was when a commit began.
struct head_state {
  std::string branch; ///< full ref name; empty: detached
  reference_ptr ref;  ///< the direct reference to move; null: unborn
  commit_ptr commit;  ///< null: unborn
};

result<head_state> read_head(const session& s) {
  head_state h;
  reference_ptr head;
  int rc = fill(
      head, [&](git_reference** out) { return git_reference_lookup(out, s.repo.get(), "HEAD"); });
  if (rc != 0)
    return fail(failure(rc, "cannot read HEAD", s.at->git_dir));
  if (git_reference_type(head.get()) == GIT_REFERENCE_DIRECT) {
    h.ref = std::move(head);
  } else {
    h.branch = git_reference_symbolic_target(head.get());
    rc = fill(h.ref, [&](git_reference** out) {
      return git_reference_lookup(out, s.repo.get(), h.branch.c_str());
    });
    if (rc == GIT_ENOTFOUND) {
      git_error_clear();
      if (auto unborn = check_unborn(s, h.branch); !unborn)
        return fail(std::move(unborn.error()));
      return h;
    }
    if (rc != 0)
      return fail(failure(rc, "cannot read the branch", h.branch));
  }
  rc = fill(h.commit, [&](git_commit** out) {
    return git_commit_lookup(out, s.repo.get(), git_reference_target(h.ref.get()));
  });
  if (rc != 0)
    return fail(failure(rc, "cannot read HEAD's commit", s.at->git_dir));
  return h;
}

/// The tree of HEAD with `paths` put in; nothing when it equals HEAD's, unless `even_empty`.
result<std::optional<git_oid>> build_tree(const session& s, const head_state& h,
                                          const std::vector<prepared_path>& paths,
                                          bool even_empty) {
  index_ptr index;
  tree_ptr base;
  int rc = fill(index, [](git_index** out) { return git_index_new(out); });
  if (rc == 0 && h.commit)
    rc = fill(base, [&](git_tree** out) { return git_commit_tree(out, h.commit.get()); });
  if (rc == 0 && base)
    rc = git_index_read_tree(index.get(), base.get());
  if (rc != 0)
    return fail(failure(rc, "cannot read HEAD's tree", s.at->git_dir));
  if (auto done = apply(index.get(), paths); !done)
    return fail(std::move(done.error()));
  if (!even_empty && !base && git_index_entrycount(index.get()) == 0)
    return std::nullopt;
  git_oid id{};
  rc = write_object([&] { return git_index_write_tree_to(&id, index.get(), s.repo.get()); });
  if (rc != 0)
    return fail(failure(rc, "cannot write a tree", s.at->git_dir));
  if (!even_empty && base && git_oid_equal(&id, git_tree_id(base.get())) != 0)
    return std::nullopt;
  return id;
}

/// `parent`: null for the first commit of all.
result<git_oid> write_commit(const session& s, const git_commit* parent, const git_oid& tree_id,
                             const std::string& message, utc_time when) {
  signature_ptr who;
  tree_ptr tree;
  const auto at = std::chrono::floor<seconds>(when).time_since_epoch().count();
  int rc = fill(who, [&](git_signature** out) {
    return git_signature_new(out, s.at->who.name.c_str(), s.at->who.email.c_str(), at, 0);
  });
  if (rc == 0)
    rc = fill(tree, [&](git_tree** out) { return git_tree_lookup(out, s.repo.get(), &tree_id); });
  git_oid id{};
  if (rc == 0) {
    std::array<const git_commit*, 1> parents{parent};
    rc = write_object([&] {
      return git_commit_create(&id, s.repo.get(), nullptr, who.get(), who.get(), nullptr,
                               message.c_str(), tree.get(), parent != nullptr ? 1 : 0,
                               parents.data());
    });
  }
  if (rc != 0)
    return fail(failure(rc, "cannot write a commit", s.at->git_dir));
  return id;
}

/// Brings what is new to the disk, in this order: the bytes of objects, index and (when there is
/// one) of the ref's lock file, together; the objects' names; the index, which may name them now.
/// The ref, which makes a commit of it, comes after all of it. `beside`: as object_batch::name.
result<void> make_durable(const session& s, index_draft& index, const ref_move* ref,
                          const std::string& beside = {}) {
  sync_group group;
  if (auto written = s.objects->write(s.at->git_dir, group); !written)
    return written;
  index.add_to(group);
  if (ref != nullptr)
    ref->add_to(group);
  if (const int code = group.sync(); code != 0)
    return fail(system_failure(code, "cannot sync new objects", group.failed()));
  if (auto named = s.objects->name(s.at->git_dir, beside, s.at->unsynced); !named)
    return named;
  return index.publish(s);
}

/// How far the last step came: libgit2's code, or why it was not taken.
struct head_moved {
  int rc = 0;
  std::optional<error> not_tried;
};

/// What is to be committed: one commit, or two of which the ref moves over both at once.
struct wanted {
  const std::string& message;
  utc_time when;
  bool even_empty = false;
  const earlier_version* version = nullptr; ///< null: one commit
  const std::string* earlier_message = nullptr;
};

/// Moves what HEAD pointed at to `id`, only if it has not moved, when all else is durable.
head_moved move_head(const session& s, const head_state& h, index_draft& index, const git_oid& id,
                     const wanted& what) {
  const std::string note = "commit: " + what.message.substr(0, what.message.find('\n'));
  const std::string beside = what.version != nullptr ? s.at->work_tree : std::string{};
  std::optional<ref_move> move;
  if (h.ref) {
    move.emplace(s, git_reference_name(h.ref.get()));
    if (const int rc = move->prepare(*git_reference_target(h.ref.get()), id); rc != 0)
      return {rc, {}};
  }
  if (auto durable = make_durable(s, index, move ? &*move : nullptr, beside); !durable)
    return {0, std::move(durable.error())};
  // Asked again with the branch's lock in hand: who has begun meanwhile may have noted where the
  // branch was, and would put it back to there (`git rebase --abort`).
  if (auto free = check_nothing_in_progress(s); !free)
    return {0, std::move(free.error())};
  if (move)
    return {move->finish(note), {}};
  reference_ptr made;
  return {fill(made,
               [&](git_reference** out) {
                 return git_reference_create(out, s.repo.get(), h.branch.c_str(), &id, 0,
                                             note.c_str());
               }),
          {}};
}

bool head_is(const session& s, const git_oid& id) {
  const auto head = read_head(s);
  return head && head->commit && git_oid_equal(git_commit_id(head->commit.get()), &id) != 0;
}

bool was_moved_by_others(int rc) {
  return rc == GIT_EMODIFIED || rc == GIT_EEXISTS || rc == GIT_ENOTFOUND;
}

/// libgit2 refuses an object that it cannot find at this moment as a branch's target. It has just
/// been written: a person's `git gc` moves objects about, and another attempt finds it.
bool was_not_found_yet() {
  const auto* last = git_error_last();
  return last != nullptr && last->klass == GIT_ERROR_REFERENCE;
}

enum class attempt_end { done, moved, not_found, ref_locked };

struct attempt {
  attempt_end end = attempt_end::done;
  std::optional<commit_pair> made; ///< of one commit: the later
};

/// What a blob holds; nothing when it cannot be had, or is too large to be worked on.
std::optional<std::string> text_of(const session& s, const git_oid& id) {
  blob_ptr blob;
  const int rc =
      fill(blob, [&](git_blob** out) { return git_blob_lookup(out, s.repo.get(), &id); });
  git_error_clear();
  if (rc != 0 || static_cast<std::size_t>(git_blob_rawsize(blob.get())) > filtered_bytes)
    return std::nullopt;
  const auto* const bytes = static_cast<const char*>(git_blob_rawcontent(blob.get()));
  return std::string(bytes, static_cast<std::size_t>(git_blob_rawsize(blob.get())));
}

std::string text_at_head(const session& s, const head_state& h, const std::string& path) {
  tree_ptr tree;
  entry_ptr entry;
  if (!h.commit ||
      fill(tree, [&](git_tree** out) { return git_commit_tree(out, h.commit.get()); }) != 0 ||
      fill(entry, [&](git_tree_entry** out) {
        return git_tree_entry_bypath(out, tree.get(), path.c_str());
      }) != 0)
    return {};
  return text_of(s, *git_tree_entry_id(entry.get())).value_or(std::string{});
}

/// `paths` as the earlier one of two commits is to have them.
result<std::vector<prepared_path>> earlier_paths(const session& s, const head_state& h,
                                                 std::vector<prepared_path> paths,
                                                 const earlier_version& version) {
  const auto path = std::ranges::find(paths, version.path, &prepared_path::path);
  if (path == paths.end() || path->remove || path->entry.mode == GIT_FILEMODE_LINK)
    return paths;
  const auto later = text_of(s, path->entry.id);
  if (!later)
    return paths;
  const auto text = version.text(text_at_head(s, h, version.path), *later);
  if (const int rc = write_object([&] {
        return git_blob_create_from_buffer(&path->entry.id, s.repo.get(), text.data(), text.size());
      });
      rc != 0)
    return fail(failure(rc, "cannot store a version of the file", version.path));
  return paths;
}

/// The earlier one of two commits.
result<commit_ptr> write_earlier(const session& s, const head_state& h,
                                 const std::vector<prepared_path>& paths, const wanted& what) {
  auto before = earlier_paths(s, h, paths, *what.version);
  if (!before)
    return fail(std::move(before.error()));
  auto tree = build_tree(s, h, *before, true);
  if (!tree)
    return fail(std::move(tree.error()));
  auto id = write_commit(s, h.commit.get(), **tree, *what.earlier_message, what.when);
  if (!id)
    return fail(std::move(id.error()));
  commit_ptr commit;
  const int rc =
      fill(commit, [&](git_commit** out) { return git_commit_lookup(out, s.repo.get(), &*id); });
  if (rc != 0)
    return fail(failure(rc, "cannot read a new commit", s.at->git_dir));
  return commit;
}

result<attempt> try_commit(const session& s, const std::vector<prepared_path>& paths,
                           index_draft& index, const wanted& what) {
  auto head = read_head(s);
  if (!head)
    return fail(std::move(head.error()));
  result<commit_ptr> earlier;
  if (what.version != nullptr)
    earlier = write_earlier(s, *head, paths, what);
  if (!earlier)
    return fail(std::move(earlier.error()));
  auto tree = build_tree(s, *head, paths, what.even_empty);
  if (!tree)
    return fail(std::move(tree.error()));
  if (!*tree)
    return attempt{};
  const git_commit* const parent = *earlier ? earlier->get() : head->commit.get();
  auto id = write_commit(s, parent, **tree, what.message, what.when);
  if (!id)
    return fail(std::move(id.error()));
  commit_pair pair{*earlier ? hex(*git_commit_id(earlier->get())) : std::string{}, hex(*id)};
  if (head->commit)
    pair.parent = hex(*git_commit_id(head->commit.get()));
  const attempt made{attempt_end::done, std::move(pair)};
  const auto [rc, not_tried] = move_head(s, *head, index, *id, what);
  if (not_tried)
    return fail(*not_tried);
  if (rc == 0)
    return made;
  const bool not_found = was_not_found_yet();
  const error why = failure(rc, "cannot move the branch", head->branch);
  if (rc == GIT_ELOCKED)
    return attempt{attempt_end::ref_locked, {}};
  if (was_moved_by_others(rc))
    return attempt{attempt_end::moved, {}};
  if (!head_is(s, *id)) {
    if (not_found)
      return attempt{attempt_end::not_found, {}};
    return fail(why);
  }
  // It has moved: not to be made twice, and not to be believed either before it is on the disk.
  doubt_ref(s, head->ref ? git_reference_name(head->ref.get()) : head->branch);
  if (auto sure = settle_doubt(s); !sure)
    return fail(std::move(sure.error()));
  spdlog::warn("{}; HEAD has already moved to {}, which has been written again", to_string(why),
               hex(*id));
  return made;
}

} // namespace

result<commit_ptr> head_commit(const session& s) {
  auto head = read_head(s);
  if (!head)
    return fail(std::move(head.error()));
  return std::move(head->commit);
}

result<tree_ptr> head_tree(const session& s) {
  auto commit = head_commit(s);
  if (!commit)
    return fail(std::move(commit.error()));
  tree_ptr tree;
  if (!*commit)
    return tree;
  const int rc = fill(tree, [&](git_tree** out) { return git_commit_tree(out, commit->get()); });
  if (rc != 0)
    return fail(failure(rc, "cannot read HEAD's tree", s.at->git_dir));
  return tree;
}

namespace {

/// Objects that nothing has come of do not wait for the next commit.
class batch_end {
 public:
  explicit batch_end(const session& s) : s_(s) {}
  batch_end(const batch_end&) = delete;
  batch_end& operator=(const batch_end&) = delete;
  ~batch_end() { s_.objects->forget(); }

 private:
  const session& s_;
};

} // namespace

result<void> stage(const session& s, const std::vector<path_change>& paths) {
  const batch_end end(s);
  if (auto free = check_nothing_in_progress(s); !free)
    return free;
  auto prepared = prepare(s, paths, staged_first::no);
  if (!prepared)
    return fail(std::move(prepared.error()));
  if (prepared->empty())
    return {};
  auto lock = index_lock::acquire(s.at->work_tree, s.at->git_dir, limits::repository_lock_wait);
  if (!lock)
    return fail(std::move(lock.error()));
  auto index = index_draft::make(s, *prepared);
  if (!index)
    return fail(std::move(index.error()));
  return make_durable(s, *index, nullptr);
}

namespace {

/// libgit2 1.5 takes no notice when an object's last bytes find no room, and stumbles later over
/// what is not there: a disk without room is then what has to be told.
error blame_disk(const session& s, error why) {
  struct ::statvfs disk {};
  if (why.code == errc::no_space || why.code == errc::locked || why.code == errc::conflict ||
      ::statvfs(s.at->git_dir.c_str(), &disk) != 0 || disk.f_bavail * disk.f_frsize > least_room)
    return why;
  return {errc::no_space, "the disk is full; cannot commit: " + why.what, s.at->git_dir,
          "free some space; the files are unchanged, and the next commit includes them"};
}

result<std::optional<commit_pair>>
commit_to_disk(const session& s, const std::vector<path_change>& paths, const wanted& what) {
  const batch_end end(s);
  auto prepared = prepare(s, paths, staged_first::yes);
  if (!prepared)
    return fail(std::move(prepared.error()));
  if (prepared->empty() && !what.even_empty)
    return std::nullopt;
  auto lock = index_lock::acquire(s.at->work_tree, s.at->git_dir, limits::repository_lock_wait);
  if (!lock)
    return fail(std::move(lock.error()));
  if (auto free = check_nothing_in_progress(s); !free)
    return fail(std::move(free.error()));
  auto index = prepared->empty() ? result<index_draft>{} : index_draft::make(s, *prepared);
  if (!index)
    return fail(std::move(index.error()));
  lock_wait wait(s.at->git_dir, limits::repository_lock_wait);
  bool not_found = false;
  for (int moved = 0; moved < limits::commit_attempts;) {
    const auto blobs = s.objects->size();
    auto tried = try_commit(s, *prepared, *index, what);
    if (!tried)
      return fail(std::move(tried.error()));
    if (tried->end == attempt_end::done) {
      renew_patience(s.at->git_dir);
      return tried->made;
    }
    // Whatever follows, the change is staged. The tree and the commit are made anew.
    s.objects->forget(blobs);
    if (auto staged = make_durable(s, *index, nullptr); !staged)
      return fail(std::move(staged.error()));
    not_found = tried->end == attempt_end::not_found;
    if (not_found || tried->end == attempt_end::moved) {
      ++moved;
      continue;
    }
    recover_locks(s.at->work_tree, s.at->git_dir);
    if (!wait.again())
      return fail(errc::locked, "another process has locked the branch", s.at->git_dir,
                  "wait for it to end; a leftover lock is removed after one minute");
  }
  if (not_found)
    return fail(errc::io_error, "objects written for the commit are missing in the repository",
                s.at->git_dir, "check the disk; the next commit includes the files");
  return fail(errc::conflict, "HEAD moved at every attempt to commit", s.at->work_tree,
              "the files stay staged; the next commit includes them");
}

} // namespace

result<std::optional<std::string>> commit(const session& s, const std::vector<path_change>& paths,
                                          const std::string& message, utc_time when) {
  auto made = commit_to_disk(s, paths, {message, when, paths.empty()});
  if (!made)
    return fail(blame_disk(s, std::move(made.error())));
  return *made ? std::optional((*made)->later) : std::nullopt;
}

result<commit_pair> commit_two(const session& s, const std::vector<path_change>& paths,
                               const earlier_version& version, const std::string& earlier_message,
                               const std::string& later_message, utc_time when) {
  auto made = commit_to_disk(s, paths, {later_message, when, true, &version, &earlier_message});
  if (!made)
    return fail(blame_disk(s, std::move(made.error())));
  return **made;
}

} // namespace boyd::adapters::git
