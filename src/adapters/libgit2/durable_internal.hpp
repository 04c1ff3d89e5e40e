#pragma once

#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

/// Files and directories that become durable together.
namespace boyd::adapters::git {

/// An open file; closed with it.
class owned_fd {
 public:
  owned_fd() = default;
  explicit owned_fd(int fd) noexcept : fd_(fd) {}
  owned_fd(owned_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  owned_fd& operator=(owned_fd&& other) noexcept {
    if (this != &other)
      reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~owned_fd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  void reset(int fd = -1) noexcept {
    if (fd_ >= 0)
      ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

/// Open files that must be on the disk before the next step. Their bytes begin to be written out
/// all at once and only then each is waited for: the disk works at all of them, and a journal of
/// the file system that is written for the first one has the others in it. Each is fsynced all the
/// same, so that nothing depends on what the file system does.
class sync_group {
 public:
  /// The descriptor stays the caller's and must be open until sync().
  void add(int fd, std::string path) { files_.emplace_back(fd, std::move(path)); }

  /// 0, or the errno value of the first that failed, whose path failed() is then.
  int sync();

  const std::string& failed() const noexcept { return failed_; }

 private:
  std::vector<std::pair<int, std::string>> files_;
  std::string failed_;
};

/// fsync of directories, whose names are on the disk then; as sync_group::sync.
int sync_directories(const std::vector<std::string>& paths, std::string& failed);

} // namespace boyd::adapters::git
