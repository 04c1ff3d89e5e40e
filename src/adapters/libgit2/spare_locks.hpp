#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace boyd::adapters::git {

/// A file, whatever its directory is called at the moment.
using lock_id = std::pair<dev_t, ino_t>;

/// A file `.git/boyd-lock-…` that names this process. `index.lock` is a second name of it while the
/// lock is held, and afterwards it waits for the next one.
struct spare_lock {
  std::string path;
  lock_id id;
};

/// The spare files of this process, all its threads together. Each lock used to be a file of its
/// own; a file system that does not give the inode of a removed file out again for a while (ext4
/// without a journal: a minute) looks past all of them whenever it makes a file. A process that
/// was killed leaves its spare files to recover_locks, whose rules are in repository.hpp.
class spare_locks {
 public:
  /// A file that nobody uses, made if there is none; an errno value or 0.
  int take(const std::string& git_dir, spare_lock& spare);

  /// It is not used any more, and keeps its name.
  void give_back(const std::string& git_dir, spare_lock spare);

  /// Removes the file, or what is left of it.
  void drop(const spare_lock& spare);

  /// Removes the files that wait in `git_dir`.
  void drop_all(const std::string& git_dir);

  /// Whether this process made the file and has not dropped it.
  bool knows(const lock_id& id);

 private:
  /// A forked process has other locks than the one it comes from.
  void forget_parents();
  int make(const std::string& git_dir, spare_lock& spare);

  std::mutex mutex_;
  pid_t owner_ = 0;
  std::map<std::string, std::vector<spare_lock>> waiting_; ///< by git_dir
  std::set<lock_id> known_;
};

/// Those of this process.
spare_locks& spares();

} // namespace boyd::adapters::git
