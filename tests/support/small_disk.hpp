#pragma once

#include "support/pch.hpp"
#include "support/telling.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <vector>

namespace boyd::test {

/// A file system of a few megabytes, really full when it is full. Mounted for this process and its
/// children alone.
class small_disk {
 public:
  /// Null, and told, where mounting is not permitted.
  static std::unique_ptr<small_disk> mount(std::size_t bytes) {
    std::unique_ptr<small_disk> disk(new small_disk);
    const auto options = "size=" + std::to_string(bytes);
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", disk->path().c_str(), "tmpfs", 0, options.c_str()) != 0) {
      tell_skipped("case 35, a disk that is full", "may not mount");
      return nullptr;
    }
    disk->mounted_ = true;
    return disk;
  }

  ~small_disk() {
    if (mounted_)
      ::umount2(path().c_str(), MNT_DETACH);
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;

  std::string path() const { return directory_.path(); }
  std::string file(const std::string& name) const { return directory_.file(name); }

  /// Takes all but `left` bytes.
  void fill(std::size_t left = 0) const {
    struct ::statvfs room {};
    REQUIRE(::statvfs(path().c_str(), &room) == 0);
    const auto free = static_cast<std::size_t>(room.f_bavail * room.f_frsize);
    if (free <= left)
      return;
    const int fd = ::open(file("ballast").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    REQUIRE(::posix_fallocate(fd, 0, static_cast<off_t>(free - left)) == 0);
    ::close(fd);
  }

  void make_room() const { ::unlink(file("ballast").c_str()); }

 private:
  small_disk() = default;

  temp_dir directory_;
  bool mounted_ = false;
};

} // namespace boyd::test
