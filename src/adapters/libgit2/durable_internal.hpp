#pragma once

#include "../unique_fd.hpp"

#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

/// Files and directories that become durable together.
namespace boyd::adapters::git {

/// Open files that must be on the disk before the next step. Their bytes begin to be written out
/// all at once, and then all are waited for at the same time: the disk works at all of them, and
/// one writing of the file system's journal and one flush serve the whole group. Each is fsynced
/// all the same, so that nothing depends on what the file system does.
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
