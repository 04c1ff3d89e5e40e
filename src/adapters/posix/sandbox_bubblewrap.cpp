#include "../unique_fd.hpp"
#include "sandbox_child.hpp"
#include "sandbox_grants.hpp"
#include "sandbox_kernel.hpp"
#include "sandbox_mounts.hpp"

#include <climits>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <spawn.h>
#include <string_view>
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
/// Links on the way to one path; the kernel follows no more either.
constexpr int most_links = 40;
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

/// What a program sees: the paths that are granted, resolved, and the links that lead there.
class visible_paths {
 public:
  explicit visible_paths(const sandbox_spec& spec) : spec_(spec) {}

  void add(const std::string& path, bool writable) {
    auto real = granted_path(spec_, path);
    if (real.empty())
      return;
    add_links(path);
    const bool kernels = is_within(real, "/sys") || is_within(real, "/proc");
    mounts_.push_back({real, {writable && !kernels ? "--bind-try" : "--ro-bind-try", real, real}});
    bound_.push_back(std::move(real));
  }

  /// Notes each link on the way to `path`.
  void add_links(const std::string& path, int depth = 0) {
    if (depth > most_links)
      return;
    std::string at;
    std::string_view rest = path;
    while (!rest.empty()) {
      const auto end = std::min(rest.find('/'), rest.size());
      const std::string name(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (name.empty() || name == ".")
        continue;
      const auto next = at + '/' + name;
      std::array<char, PATH_MAX> target{};
      const auto length = ::readlink(next.c_str(), target.data(), target.size());
      if (length > 0) {
        const std::string to(target.data(), static_cast<std::size_t>(length));
        links_.emplace(next, to);
        add_links((to.starts_with('/') ? to : at + '/' + to) + '/' + std::string(rest), depth + 1);
        return;
      }
      at = name == ".." ? at.substr(0, at.rfind('/')) : next;
    }
  }

  bool shows(const std::string& real) const {
    return std::ranges::any_of(bound_, [&](const auto& b) { return is_within(real, b); });
  }

  /// All of it, with what is hidden covered.
  std::vector<mount> take() {
    for (const auto& [link, target] : links_)
      if (!shows(link))
        mounts_.push_back({link, {"--symlink", target, link}});
    for (const auto& path : spec_.read_only)
      if (const auto real = real_path(path); !real.empty() && shows(real))
        mounts_.push_back({real, {"--ro-bind-try", real, real}});
    for (const auto& path : spec_.hidden) {
      const auto real = real_path(path);
      struct stat info {};
      if (real.empty() || ::lstat(real.c_str(), &info) != 0)
        continue;
      if (S_ISDIR(info.st_mode) && (shows(real) || holds_any(real)))
        cover(real);
      else if (!S_ISDIR(info.st_mode) && shows(real))
        mounts_.push_back({real, {"--ro-bind", "/dev/null", real}});
    }
    return std::move(mounts_);
  }

  /// Directories that are to be made read-only when all mounts stand: a write into what is hidden
  /// fails, and is not lost with the sandbox.
  const std::vector<std::string>& covered() const { return covered_; }

 private:
  bool holds_any(const std::string& directory) const {
    return std::ranges::any_of(bound_, [&](const auto& b) { return is_within(b, directory); });
  }

  void cover(const std::string& directory) {
    mounts_.push_back({directory, {"--tmpfs", directory}});
    covered_.push_back(directory);
  }

  const sandbox_spec& spec_;
  std::vector<mount> mounts_;
  std::vector<std::string> bound_;
  std::vector<std::string> covered_;
  std::map<std::string, std::string> links_; ///< by a path without links before its last part
};

/// Its own /proc shows the kernel's settings as the machine's does, and root may write them.
void add_kernel_settings(std::vector<mount>& mounts) {
  if (::geteuid() != 0)
    return;
  for (const char* place : kernel_settings)
    if (std::string_view(place).starts_with("/proc/") && ::access(place, F_OK) == 0)
      mounts.push_back({place, {"--ro-bind", place, place}});
  if (::access("/proc/kcore", F_OK) == 0)
    mounts.push_back({"/proc/kcore", {"--ro-bind", "/dev/null", "/proc/kcore"}});
}

/// Empty: it works.
std::string trial(const std::string& program) {
  auto arguments = namespaces();
  arguments.insert(arguments.begin(), program);
  for (const char* more :
       {"--json-status-fd", "1", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"})
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
  visible_paths visible(spec);
  for (const auto& path : spec.readable)
    visible.add(path, false);
  for (const auto& path : spec.writable)
    visible.add(path, true);
  if (!spec.scratch.empty())
    visible.add(spec.scratch, true);
  visible.add_links(directory);
  auto mounts = visible.take();
  if (!spec.scratch.empty())
    mounts.push_back({"/tmp", {"--bind", spec.scratch, "/tmp"}});
  mounts.push_back({"/proc", {"--proc", "/proc"}});
  mounts.push_back({"/dev", {"--dev", "/dev"}});
  // The devices are bubblewrap's own.
  std::erase_if(mounts, [](const auto& m) {
    return (m.at.starts_with("/dev/") && m.at != "/dev/shm") ||
           (m.at == "/proc" && m.arguments.size() > 2);
  });
  add_kernel_settings(mounts);
  std::ranges::stable_sort(mounts, {}, &mount::at);
  auto out = namespaces();
  out.insert(out.begin(), spec.bubblewrap);
  if (!spec.network)
    out.emplace_back("--unshare-net");
  for (auto& m : mounts)
    std::ranges::move(m.arguments, std::back_inserter(out));
  for (const auto& covered : visible.covered())
    out.insert(out.end(), {"--remount-ro", covered});
  out.insert(out.end(), {"--chdir", directory, "--"});
  return out;
}

sandbox_abilities probe_sandbox() {
  sandbox_abilities found;
  found.landlock_abi = landlock::abi();
  found.seccomp = can_filter_calls();
  found.root = ::geteuid() == 0;
  found.own_mounts = can_have_own_mounts();
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
