#include "durable_internal.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace boyd::adapters::git {

int sync_group::sync() {
  if (files_.size() > 1)
    for (const auto& file : files_) {
      // A hint: what comes of it is found by the fsync, and a file system may not know the call.
      [[maybe_unused]] const int begun = ::sync_file_range(file.first, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
  for (const auto& [fd, path] : files_)
    if (::fsync(fd) != 0) {
      failed_ = path;
      return errno;
    }
  return 0;
}

int sync_directories(const std::vector<std::string>& paths, std::string& failed) {
  std::vector<owned_fd> open;
  sync_group group;
  for (const auto& path : paths) {
    open.emplace_back(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!open.back()) {
      failed = path;
      return errno;
    }
    group.add(open.back().get(), path);
  }
  const int code = group.sync();
  failed = group.failed();
  return code;
}

} // namespace boyd::adapters::git
