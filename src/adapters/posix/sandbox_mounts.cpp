#include "sandbox_mounts.hpp"

#include "../unique_fd.hpp"
#include "sandbox_grants.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <sys/mount.h>
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

int bind_read_only(const std::string& path) {
  const mount_attributes attributes{attribute_read_only, 0, 0, 0};
  if (::mount(path.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0 ||
      ::syscall(call_mount_setattr, AT_FDCWD, path.c_str(), recursive, &attributes,
                sizeof attributes) != 0)
    return errno;
  return 0;
}

} // namespace

int mount_read_only(const std::vector<std::string>& paths) {
  std::vector<std::string> there;
  for (const auto& path : paths)
    if (auto real = real_path(path); !real.empty())
      there.push_back(std::move(real));
  if (there.empty())
    return 0;
  const std::unique_ptr<char, void (*)(void*)> here(::getcwd(nullptr, 0), std::free);
  if (const int failed = own_namespaces(); failed != 0)
    return failed;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return errno;
  for (const auto& path : there)
    if (const int failed = bind_read_only(path); failed != 0)
      return failed;
  // It may lie in one of them, and still be what is below the mount.
  return !here || ::chdir(here.get()) == 0 ? 0 : errno;
}

bool can_have_own_mounts() {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(mount_read_only({"/usr"}) == 0 ? 0 : 1);
  int status = 1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && status == 0;
}

} // namespace boyd::adapters
