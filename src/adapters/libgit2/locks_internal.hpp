#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <chrono>
#include <string>
#include <sys/types.h>
#include <utility>

/// Lock files as git uses them, and the removal of leftovers. The rules are in repository.hpp.
namespace boyd::adapters::git {

/// A bounded wait for somebody else's lock. Between the looks it sleeps for a few milliseconds:
/// git gives no event for the end of a lock.
class lock_wait {
 public:
  explicit lock_wait(milliseconds most) : deadline_(std::chrono::steady_clock::now() + most) {}

  /// Waits a moment; false when the time is over.
  bool again();

 private:
  std::chrono::steady_clock::time_point deadline_;
  milliseconds pause_{1};
};

/// A file, whatever its directory is called at the moment.
using lock_id = std::pair<dev_t, ino_t>;

/// `.git/index.lock`, held. Its content names the holder. Released by the destructor;
/// when the repository was moved away meanwhile, the file stays in it and recover_locks knows that
/// it is nobody's.
class index_lock {
 public:
  /// Waits for another holder at most `most`, removing a leftover lock; then `locked`.
  static result<index_lock> acquire(const std::string& work_tree, const std::string& git_dir,
                                    milliseconds most);

  index_lock(index_lock&& other) noexcept : path_(std::move(other.path_)), id_(other.id_) {
    other.path_.clear();
  }
  index_lock& operator=(index_lock&&) = delete;
  ~index_lock();

 private:
  index_lock(std::string path, lock_id id) : path_(std::move(path)), id_(id) {}

  std::string path_; ///< empty: moved from
  lock_id id_;
};

/// Removes and logs every leftover lock, temporary object and temporary pack. Cheap when there are
/// none; repeating it after a crash in the middle is safe, since index.lock goes last.
void recover_locks(const std::string& work_tree, const std::string& git_dir);

} // namespace boyd::adapters::git
