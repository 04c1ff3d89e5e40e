#include "child.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace boyd::app {

namespace {

constexpr mode_t private_file = 0600;
constexpr int signalled = 128;

/// The attributes of a child: no blocked signals, a group of its own.
class spawn_attributes {
 public:
  spawn_attributes() {
    ::posix_spawnattr_init(&value_);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&value_, &none);
    ::posix_spawnattr_setpgroup(&value_, 0);
    ::posix_spawnattr_setflags(&value_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~spawn_attributes() { ::posix_spawnattr_destroy(&value_); }
  spawn_attributes(const spawn_attributes&) = delete;
  spawn_attributes& operator=(const spawn_attributes&) = delete;
  const posix_spawnattr_t* get() const { return &value_; }

 private:
  posix_spawnattr_t value_{};
};

} // namespace

result<child> child::start(std::vector<std::string> argv, const output& to) {
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (auto& a : argv)
    words.push_back(a.data());
  words.push_back(nullptr);
  ::posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  constexpr int write_new = O_WRONLY | O_CREAT | O_TRUNC;
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, to.out.c_str(), write_new,
                                     private_file);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, to.err.c_str(), write_new,
                                     private_file);
  const spawn_attributes attributes;
  pid_t pid = -1;
  const int failed =
      ::posix_spawnp(&pid, words.front(), &files, attributes.get(), words.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0)
    return fail(failed == ENOENT ? errc::not_found : errc::io_error,
                "cannot start " + argv.front() + ": " + std::strerror(failed));
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  return child(pid, descriptor);
}

child::child(child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), descriptor_(std::exchange(other.descriptor_, -1)) {}

child::~child() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

child::end child::wait(milliseconds limit, int wake) const {
  std::array<pollfd, 2> looks{{{descriptor_, POLLIN, 0}, {wake, POLLIN, 0}}};
  const int n = ::poll(looks.data(), looks.size(), static_cast<int>(limit.count()));
  if (n > 0 && looks[0].revents != 0)
    return end::exited;
  return n > 0 ? end::woken : end::timed_out;
}

int child::kill() {
  ::kill(pid_, SIGKILL);
  return code();
}

int child::code() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : signalled + WTERMSIG(status);
}

} // namespace boyd::app
