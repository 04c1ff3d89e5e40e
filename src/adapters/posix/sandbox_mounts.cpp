#include "sandbox_mounts.hpp"

#include "../unique_fd.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <memory>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::adapters {

namespace {

// The same on every architecture; a remount would have to repeat all flags that a namespace locks.
constexpr long call_mount_setattr = 442;
constexpr std::uint64_t attribute_read_only = 1;
constexpr unsigned recursive = 0x8000; // AT_RECURSIVE

struct mount_attributes {
  std::uint64_t set = 0;
  std::uint64_t clear = 0;
  std::uint64_t propagation = 0;
  std::uint64_t namespace_fd = 0;
};

int write_map(const char* file, const std::string& text) {
  const unique_fd fd(::open(file, O_WRONLY | O_CLOEXEC));
  if (!fd)
    return errno;
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0
                                                                                          : errno;
}

/// A namespace of mounts; for an ordinary user inside one of users, with its own number.
int own_namespaces() {
  const auto user = ::geteuid();
  const auto group = ::getegid();
  if (user == 0)
    return ::unshare(CLONE_NEWNS) == 0 ? 0 : errno;
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return errno;
  const auto itself = [](unsigned number) {
    return std::to_string(number) + " " + std::to_string(number) + " 1";
  };
  if (const int failed = write_map("/proc/self/setgroups", "deny"); failed != 0)
    return failed;
  if (const int failed = write_map("/proc/self/uid_map", itself(user)); failed != 0)
    return failed;
  return write_map("/proc/self/gid_map", itself(group));
}

int bind(const std::string& path) {
  return ::mount(path.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0 ? 0 : errno;
}

/// `flags`: `recursive`, or 0.
int set_attributes(const std::string& path, const mount_attributes& attributes, unsigned flags) {
  const auto done =
      ::syscall(call_mount_setattr, AT_FDCWD, path.c_str(), flags, &attributes, sizeof attributes);
  return done == 0 ? 0 : errno;
}

constexpr mount_attributes closed{attribute_read_only, 0, 0, 0};
constexpr mount_attributes open_again{0, attribute_read_only, 0, 0};

bool is_read_only(const std::string& path) {
  struct statvfs info {};
  return ::statvfs(path.c_str(), &info) == 0 && (info.f_flag & ST_RDONLY) != 0;
}

/// Directories and regular files; devices take writes on a read-only mount, too.
std::vector<std::string> worth_a_mount(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const auto& path : paths) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0 && (S_ISDIR(info.st_mode) || S_ISREG(info.st_mode)) &&
        !is_read_only(path))
      out.push_back(path);
  }
  return out;
}

} // namespace

int mount_apart(const std::vector<std::string>& writable,
                const std::vector<std::string>& read_only) {
  const std::unique_ptr<char, void (*)(void*)> here(::getcwd(nullptr, 0), std::free);
  if (const int failed = own_namespaces(); failed != 0)
    return failed;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return errno;
  // What lies in another one comes behind it, and its attributes over the other's.
  std::map<std::string, bool> places;
  for (const auto& path : worth_a_mount(writable))
    places[path] = true;
  for (const auto& path : worth_a_mount(read_only))
    places[path] = false;
  for (const auto& [path, opened] : places)
    if (const int failed = bind(path); failed != 0)
      return failed;
  if (const int failed = set_attributes("/", closed, recursive); failed != 0)
    return failed;
  for (const auto& [path, opened] : places) {
    const auto& attributes = opened ? open_again : closed;
    // What is mounted below it may have been read-only for ever.
    if (set_attributes(path, attributes, recursive) != 0)
      if (const int failed = set_attributes(path, attributes, 0); failed != 0)
        return failed;
  }
  // It lies in one of the new mounts now, and would still be what is below.
  return !here || ::chdir(here.get()) == 0 ? 0 : errno;
}

bool can_have_own_mounts() {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(mount_apart({"/tmp"}, {"/usr"}) == 0 ? 0 : 1);
  int status = 1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && status == 0;
}

} // namespace boyd::adapters
