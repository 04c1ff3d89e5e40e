#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "spare_locks.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

/// Lock files as git uses them, and the removal of leftovers. The rules are in repository.hpp.
namespace boyd::adapters::git {

using lock_clock = std::chrono::steady_clock;

/// How long the locks of one repository are waited for, all of them together: a cycle takes the
/// index and the branch several times, and each of them may be held. Not thread-safe.
class lock_patience {
 public:
  /// `rest`: so long after it was spent, it is there again.
  lock_patience(milliseconds most, milliseconds rest) : most_(most), rest_(rest) {}

  /// The end of a wait that begins at `now`: of the first one, and of all that follow it.
  lock_clock::time_point until(lock_clock::time_point now);

  /// A commit has got through: whoever held a lock then is gone.
  void renew() { until_.reset(); }

 private:
  milliseconds most_;
  milliseconds rest_;
  std::optional<lock_clock::time_point> until_;
};

/// The branch of the repository `git_dir` has moved: its locks may be waited for anew.
void renew_patience(const std::string& git_dir);

/// A bounded wait for somebody else's lock in the repository `git_dir`; all the waits of this
/// process there share one patience of limits::repository_lock_wait. Between the looks it sleeps
/// for a few milliseconds: git gives no event for the end of a lock.
class lock_wait {
 public:
  lock_wait(std::string git_dir, milliseconds most) : git_dir_(std::move(git_dir)), most_(most) {}

  /// Waits a moment; false when the time is over.
  bool again();

 private:
  std::string git_dir_;
  milliseconds most_;
  std::optional<lock_clock::time_point> deadline_;
  milliseconds pause_{1};
};

/// `.git/index.lock`, held. Its content names the holder. Released by the destructor;
/// when the repository was moved away meanwhile, the file stays in it and recover_locks knows that
/// it is nobody's.
class index_lock {
 public:
  /// Waits for another holder at most `most`, removing a leftover lock; then `locked`.
  static result<index_lock> acquire(const std::string& work_tree, const std::string& git_dir,
                                    milliseconds most);

  index_lock(index_lock&& other) noexcept
      : git_dir_(std::exchange(other.git_dir_, {})), file_(std::move(other.file_)) {}
  index_lock& operator=(index_lock&&) = delete;
  ~index_lock();

 private:
  index_lock(std::string git_dir, spare_lock file)
      : git_dir_(std::move(git_dir)), file_(std::move(file)) {}

  std::string git_dir_; ///< empty: moved from
  spare_lock file_;     ///< whose second name is index.lock
};

/// Removes and logs every leftover lock, temporary object and temporary pack. Cheap when there are
/// none; repeating it after a crash in the middle is safe, since index.lock goes last.
void recover_locks(const std::string& work_tree, const std::string& git_dir);

} // namespace boyd::adapters::git
