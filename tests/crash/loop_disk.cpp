#include "crash/loop_disk.hpp"

#include "e2e/program.hpp"
#include "support/wait.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sched.h>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace boyd::crash {

namespace {

/// A home with its history is a few megabytes; the journal takes the rest.
constexpr std::uintmax_t disk_bytes = std::uintmax_t{96} << 20;
constexpr const char* make_ext4 = "/sbin/mkfs.ext4";
constexpr const char* set_up_loop = "/sbin/losetup";

/// Mounts of this process are seen by what it starts, and by nobody else: a sandbox that some other
/// program makes copies all mounts there are, and the disk would stay mounted as long as it lives.
void keep_mounts_to_ourselves() {
  // The root of a chroot is no mount (EINVAL), and then nobody else has it.
  static const bool kept =
      ::unshare(CLONE_NEWNS) == 0 &&
      (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 || errno == EINVAL);
  if (!kept)
    throw std::runtime_error("this process can have no mounts of its own");
}

std::string tried() {
  if (::geteuid() != 0)
    return "only root can mount";
  for (const char* program : {make_ext4, set_up_loop})
    if (::access(program, X_OK) != 0)
      return std::string(program) + " is missing";
  try {
    const loop_disk disk;
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

} // namespace

std::string loop_disk::why_not() {
  static const std::string reason = tried();
  return reason;
}

loop_disk::loop_disk() {
  keep_mounts_to_ourselves();
  const auto image = directory_.file("image");
  test::write_file(image, "");
  std::filesystem::resize_file(image, disk_bytes);
  std::filesystem::create_directory(path());
  const auto made = test::program({make_ext4, "-q", image}).finish();
  if (made.code != 0)
    throw std::runtime_error("mkfs.ext4: " + made.err);
  const auto loop = test::program({set_up_loop, "--find", "--show", image}).finish();
  if (loop.code != 0)
    throw std::runtime_error("losetup: " + loop.err);
  device_ = loop.out.substr(0, loop.out.find('\n'));
  try {
    mount();
  } catch (...) {
    test::program({set_up_loop, "--detach", device_}).finish();
    throw;
  }
}

loop_disk::~loop_disk() {
  if (!test::wait_until([this] { return unmount(); }))
    ::umount2(path().c_str(), MNT_DETACH);
  test::program({set_up_loop, "--detach", device_}).finish();
}

void loop_disk::mount() const {
  if (::mount(device_.c_str(), path().c_str(), "ext4", 0, nullptr) != 0)
    throw std::runtime_error(std::string("mount: ") + std::strerror(errno));
}

/// Whoever loses power boots before the disk is used again, and by that Boyd knows a lock of
/// nobody: it is older than the boot. This machine goes on, so the locks' times are set back.
void loop_disk::date_locks_before_boot() const {
  constexpr std::array<timespec, 2> long_ago{{{1, 0}, {1, 0}}};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path()))
    if (entry.path().extension() == ".lock")
      ::utimensat(AT_FDCWD, entry.path().c_str(), long_ago.data(), AT_SYMLINK_NOFOLLOW);
}

bool loop_disk::unmount() const {
  return ::umount2(path().c_str(), 0) == 0 || errno == EINVAL;
}

/// A sandbox of a node that was killed has a copy of all mounts: as long as it lives, the disk
/// without power would be what is mounted again.
bool loop_disk::is_free() const {
  const int fd = ::open(device_.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);
  if (fd >= 0)
    ::close(fd);
  return fd >= 0;
}

void loop_disk::cut(std::uint32_t flags) const {
  // linux/ext4.h is not installed everywhere.
  constexpr unsigned long ext4_ioc_shutdown = _IOR('X', 125, std::uint32_t);
  const int fd = ::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool cut = fd >= 0 && ::ioctl(fd, ext4_ioc_shutdown, &flags) == 0;
  if (fd >= 0)
    ::close(fd);
  if (!cut)
    throw std::runtime_error(std::string("cannot cut the power: ") + std::strerror(errno));
}

void loop_disk::restart() {
  if (!test::wait_until([this] { return unmount(); }))
    throw std::runtime_error("the disk is in use: " + path());
  if (!test::wait_until([this] { return is_free(); }))
    throw std::runtime_error("the disk is mounted elsewhere: " + device_);
  mount();
  date_locks_before_boot();
}

} // namespace boyd::crash
