#include "../unique_fd.hpp"
#include "sandbox_child.hpp"
#include "sandbox_grants.hpp"
#include "sandbox_kernel.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace boyd::adapters {

namespace {

/// Where the program of the distribution is; PATH is not asked.
constexpr std::array places_of_bubblewrap{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"};
/// It has this long to show that it works.
constexpr int trial_ms = 3000;

/// Something that is mounted at a path. Sorted by it, so that what lies below comes later.
struct mount {
  std::string at;
  std::vector<std::string> arguments;
};

std::vector<std::string> namespaces() {
  return {"--unshare-user",
          "--unshare-ipc",
          "--unshare-pid",
          "--unshare-uts",
          "--die-with-parent",
          "--cap-drop",
          "ALL"};
}

void add_hidden(const sandbox_spec& spec, std::vector<mount>& mounts) {
  const auto granted = [&](const std::string& path) {
    const auto above = [&](const auto& list) {
      return std::ranges::any_of(list, [&](const auto& g) {
        return is_within(path, g.ends_with('/') ? g.substr(0, g.size() - 1) : g);
      });
    };
    return above(spec.readable) || above(spec.writable);
  };
  for (const auto& path : spec.hidden) {
    struct stat info {};
    if (!granted(path) || ::lstat(path.c_str(), &info) != 0)
      continue;
    if (S_ISDIR(info.st_mode))
      mounts.push_back({path, {"--tmpfs", path}});
    else
      mounts.push_back({path, {"--ro-bind", "/dev/null", path}});
  }
}

/// Empty: it works.
std::string trial(const std::string& program) {
  auto arguments = namespaces();
  arguments.insert(arguments.begin(), program);
  for (const char* more : {"--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"})
    arguments.emplace_back(more);
  std::vector<char*> argv;
  for (auto& a : arguments)
    argv.push_back(a.data());
  argv.push_back(nullptr);
  char path[] = "PATH=/usr/bin:/bin";
  char* environment[] = {path, nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  pid_t pid = -1;
  const int failed =
      ::posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environment);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return program + ": " + std::generic_category().message(failed);
  const unique_fd watch(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended{watch.get(), POLLIN, 0};
  if (watch && ::poll(&ended, 1, trial_ms) == 0)
    ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return {};
  return program + " does not work on this machine (it needs user namespaces)";
}

} // namespace

std::vector<std::string> bubblewrap_arguments(const sandbox_spec& spec,
                                              const std::string& directory) {
  if (spec.kind != sandbox_kind::bubblewrap)
    return {};
  std::vector<mount> mounts;
  for (const auto& path : spec.readable)
    mounts.push_back({path, {"--ro-bind-try", path, path}});
  for (const auto& path : spec.writable)
    mounts.push_back({path, {"--bind-try", path, path}});
  if (!spec.scratch.empty()) {
    mounts.push_back({spec.scratch, {"--bind", spec.scratch, spec.scratch}});
    mounts.push_back({"/tmp", {"--bind", spec.scratch, "/tmp"}});
  }
  mounts.push_back({"/proc", {"--proc", "/proc"}});
  mounts.push_back({"/dev", {"--dev", "/dev"}});
  add_hidden(spec, mounts);
  // The devices are bubblewrap's own.
  std::erase_if(mounts, [](const auto& m) {
    return (m.at.starts_with("/dev/") && m.at != "/dev/shm") ||
           (m.at == "/proc" && m.arguments.size() > 2);
  });
  std::ranges::stable_sort(mounts, {}, &mount::at);
  auto out = namespaces();
  out.insert(out.begin(), spec.bubblewrap);
  if (!spec.network)
    out.emplace_back("--unshare-net");
  for (auto& m : mounts)
    std::ranges::move(m.arguments, std::back_inserter(out));
  out.insert(out.end(), {"--chdir", directory, "--"});
  return out;
}

sandbox_abilities probe_sandbox() {
  sandbox_abilities found;
  found.landlock_abi = landlock::abi();
  found.seccomp = can_filter_calls();
  found.root = ::geteuid() == 0;
  found.bubblewrap_problem = "bubblewrap is not installed";
  for (const char* place : places_of_bubblewrap) {
    if (::access(place, X_OK) != 0)
      continue;
    found.bubblewrap_problem = trial(place);
    if (found.bubblewrap_problem.empty())
      found.bubblewrap = place;
    break;
  }
  return found;
}

} // namespace boyd::adapters
