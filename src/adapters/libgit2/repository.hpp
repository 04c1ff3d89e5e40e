#pragma once

#include "boyd/ports/repository.hpp"

#include <memory>

namespace boyd::adapters {

/// Git repositories through libgit2; no `git` program is needed and no hook ever runs.
///
/// Configuration of the machine and of its people (system, XDG, global) and GIT_* variables are
/// never read; a repository that belongs to another user is refused (libgit2's owner check).
/// `.git` must be a real directory of its own: no link, no gitlink file, no shared common
/// directory, no work tree elsewhere. Before every use each name below it that is read or written
/// must be a directory or a regular file, and the format one that can be read
/// (inside_internal.hpp). A branch that is gone while the repository has commits is
/// `repository_unavailable`, with the command that brings it back (lost_internal.hpp).
///
/// **Locks.** While it changes the index or a ref, the adapter holds `.git/index.lock`, as git
/// does, and the file names its holder (pid, start time, boot, pid namespace). It is a second name
/// of a file `.git/boyd-lock-…`, which stays for the next lock and goes when the repository is
/// closed; one of a process that has ended is removed by the next opening. Index updates are
/// read, changed and replaced under it, so nothing that a person stages meanwhile is lost; the
/// index is replaced before the ref moves, so a crash leaves a change staged, never reverted. At
/// `init` and `open`, and while waiting for a held lock, a leftover lock is removed and logged when
///  1. it is an index.lock of Boyd whose process has ended, or of this process, which has given it
///     up (at once); ref locks that are not older than such an index.lock were made by the same
///     attempt and go with it; or
///  2. any other lock: it was made before the machine started, or is older than
///     limits::stale_lock_age, and in both cases no process has it open and no live git process
///     works in this repository (git closes index.lock while an editor is open).
/// Everything else is alive: it is waited for, then `locked`. All the locks of a repository share
/// one `limits::repository_lock_wait`, which is given anew by a commit or after
/// limits::stale_lock_age: several locks, or one that is met at every step of a cycle, cost it
/// once. Temporary objects and packs follow rule 2.
///
/// **Commits** go to whatever HEAD points at: a person who checked out another branch, or detached
/// HEAD, gets the node's commits there. Everything that is new is on the disk, names included,
/// before the ref moves, and the ref before the call returns. It moves by compare-and-swap,
/// repeated on the new HEAD at most `limits::commit_attempts` times, then `conflict`. During a
/// merge, rebase, cherry-pick, revert or bisect, `stage` and `commit` answer `conflict`. A path
/// given as added or modified that has vanished meanwhile is left for the next commit; one given as
/// deleted that exists again is committed as it is. Nested repositories and special files are not
/// tracked.
///
/// **Errors**: `repository_unavailable` when the repository is missing, broken, or not the one that
/// was opened (moved away); `locked`, `conflict`, `refused` (inside another work tree, foreign
/// owner), `no_space`, `not_found` (revision, path), `invalid_argument` (a path outside).
///
/// Calls that come within two seconds share one opening of the repository, each looking whether the
/// repository still stands there; refs are read anew by each, packs when an object is missing.
/// Threads: the provider any; a repository one.
std::shared_ptr<repository_provider> make_git_repositories();

/// Whether `path`, which need not exist yet, may become a repository: `refused` when it lies inside
/// another work tree that does not ignore it. Nothing is written.
result<void> check_place_of_repository(const std::string& path);

} // namespace boyd::adapters
