#include "spare_locks.hpp"

#include "processes_internal.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace boyd::adapters::git {

int spare_locks::take(const std::string& git_dir, spare_lock& spare) {
  const std::lock_guard guard(mutex_);
  forget_parents();
  auto& free = waiting_[git_dir];
  while (!free.empty()) {
    spare = std::move(free.back());
    free.pop_back();
    // The age of a lock tells how it is judged, so it begins now. Fails when somebody has tidied
    // up, or another repository stands there.
    if (::utimensat(AT_FDCWD, spare.path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0)
      return 0;
    known_.erase(spare.id);
  }
  return make(git_dir, spare);
}

int spare_locks::make(const std::string& git_dir, spare_lock& spare) {
  spare.path = git_dir + "/boyd-lock-XXXXXX";
  const int fd = ::mkstemp(spare.path.data());
  if (fd < 0)
    return errno;
  const std::string mark = own_mark();
  struct stat info {};
  int code = ::fstat(fd, &info) == 0 ? 0 : errno;
  spare.id = {info.st_dev, info.st_ino};
  if (code == 0) {
    // Before the file says whose it is: one with our mark that is not known is nobody's.
    known_.insert(spare.id);
    errno = 0;
    if (::write(fd, mark.data(), mark.size()) != static_cast<ssize_t>(mark.size()))
      code = errno != 0 ? errno : ENOSPC;
  }
  ::close(fd);
  if (code != 0) {
    ::unlink(spare.path.c_str());
    known_.erase(spare.id);
  }
  return code;
}

void spare_locks::give_back(const std::string& git_dir, spare_lock spare) {
  const std::lock_guard guard(mutex_);
  waiting_[git_dir].push_back(std::move(spare));
}

void spare_locks::drop(const spare_lock& spare) {
  const std::lock_guard guard(mutex_);
  ::unlink(spare.path.c_str());
  known_.erase(spare.id);
}

void spare_locks::drop_all(const std::string& git_dir) {
  const std::lock_guard guard(mutex_);
  forget_parents();
  const auto it = waiting_.find(git_dir);
  if (it == waiting_.end())
    return;
  for (const auto& spare : it->second) {
    ::unlink(spare.path.c_str());
    known_.erase(spare.id);
  }
  waiting_.erase(it);
}

bool spare_locks::knows(const lock_id& id) {
  const std::lock_guard guard(mutex_);
  return owner_ == ::getpid() && known_.contains(id);
}

void spare_locks::forget_parents() {
  if (owner_ == ::getpid())
    return;
  waiting_.clear();
  known_.clear();
  owner_ = ::getpid();
}

spare_locks& spares() {
  static spare_locks all;
  return all;
}

} // namespace boyd::adapters::git
