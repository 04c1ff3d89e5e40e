#include "process_child.hpp"

#include "../unique_fd.hpp"
#include "sandbox_child.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <linux/openat2.h>
#include <memory>
#include <string_view>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace boyd::adapters {

namespace {

/// What a shell says for a program that cannot be executed; nobody sees it, the pipe tells more.
constexpr int exit_not_executed = 127;

[[noreturn]] void give_up(int failure_fd, wire::spawn_step step, int error_number) {
  const child_failure failure{step, error_number};
  // When this write fails, the host sees exit code 127, which means the same to it.
  [[maybe_unused]] const auto written = ::write(failure_fd, &failure, sizeof failure);
  ::_exit(exit_not_executed);
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(number, &action, nullptr); // KILL, STOP and libc's own refuse: as they should
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool set_limit(int resource, std::uint64_t value) {
  const rlimit limit{value, value};
  return ::setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> found;
  found.reserve(texts.size() + 1);
  for (const auto& text : texts)
    found.push_back(const_cast<char*>(text.c_str()));
  found.push_back(nullptr);
  return found;
}

std::string_view path_of(const std::vector<std::string>& environment) {
  constexpr std::string_view name = "PATH=";
  for (const auto& variable : environment)
    if (variable.starts_with(name))
      return std::string_view(variable).substr(name.size());
  return "/usr/local/bin:/usr/bin:/bin";
}

/// Returns only on failure, with the errno that says most.
int execute(const child_plan& plan) {
  const auto argv = pointers(plan.arguments);
  const auto envp = pointers(plan.environment);
  const std::string& program = plan.arguments.front();
  if (program.find('/') != std::string::npos) {
    ::execve(program.c_str(), argv.data(), envp.data());
    return errno;
  }
  int best = ENOENT;
  std::string_view rest = path_of(plan.environment);
  for (;;) {
    const auto end = std::min(rest.find(':'), rest.size());
    // An empty part would mean the current directory, which an agent can write: passed over.
    if (end > 0) {
      const std::string candidate = std::string(rest.substr(0, end)) + '/' + program;
      ::execve(candidate.c_str(), argv.data(), envp.data());
      if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
        return errno;
      if (errno == EACCES)
        best = EACCES;
    }
    if (end == rest.size())
      return best;
    rest.remove_prefix(end + 1);
  }
}

/// 0, or an errno. Where the directory must lie in another one, the kernel looks at each link on
/// the way while it opens it: there is no moment between look and use.
int change_directory(const child_plan& plan) {
  if (plan.within.empty() || plan.directory == plan.within)
    return ::chdir(plan.directory.c_str()) == 0 ? 0 : errno;
  if (!plan.directory.starts_with(plan.within + '/'))
    return EXDEV;
  const unique_fd root(::open(plan.within.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root)
    return errno;
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const auto* const below = plan.directory.c_str() + plan.within.size() + 1;
  int opened = -1;
  do {
    opened = static_cast<int>(::syscall(SYS_openat2, root.get(), below, &how, sizeof how));
  } while (opened < 0 && (errno == EAGAIN || errno == EINTR)); // a rename on the way
  const unique_fd at(opened);
  if (at)
    return ::fchdir(at.get()) == 0 ? 0 : errno;
  if (errno != ENOSYS)
    return errno;
  // A kernel before 5.6: no links at all.
  unique_fd here(root.get() < 0 ? -1 : ::fcntl(root.get(), F_DUPFD_CLOEXEC, 0));
  std::string_view rest = below;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('/'), rest.size());
    const std::string name(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (name == "..")
      return EXDEV;
    if (!name.empty())
      here.reset(::openat(here.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!here)
      return errno;
  }
  return ::fchdir(here.get()) == 0 ? 0 : errno;
}

/// All but stdio and these two; `status`, when there is one, is the greater.
bool close_others(int failure, int status) {
  const auto close = [](int from, unsigned to) {
    return static_cast<unsigned>(from) > to ||
           ::close_range(static_cast<unsigned>(from), to, 0) == 0;
  };
  const auto before = [](int fd) { return static_cast<unsigned>(fd - 1); };
  if (!close(STDERR_FILENO + 1, before(failure)))
    return false;
  if (status < 0)
    return close(failure + 1, ~0U);
  return close(failure + 1, before(status)) && close(status + 1, ~0U);
}

void put_text(std::string& into, const std::string& text) {
  into.append(text.c_str(), text.size() + 1);
}

template <class T>
std::uint32_t count(const std::vector<T>& list) {
  return static_cast<std::uint32_t>(list.size());
}

wire::sandbox_head head_of(const sandbox_spec& spec) {
  wire::sandbox_head head;
  head.present = 1;
  head.kind = spec.kind;
  head.network = spec.network;
  head.unix_sockets = spec.unix_sockets;
  head.own_mounts = spec.own_mounts;
  head.landlock_abi = spec.landlock_abi;
  head.limits = spec.limits;
  head.writable_count = count(spec.writable);
  head.readable_count = count(spec.readable);
  head.hidden_count = count(spec.hidden);
  head.read_only_count = count(spec.read_only);
  head.port_count = count(spec.ports);
  return head;
}

/// The texts of a payload, one after another.
class text_reader {
 public:
  text_reader(const std::string& payload, std::size_t at) : payload_(payload), at_(at) {}

  bool take(std::string& text) {
    const auto end = payload_.find('\0', at_);
    if (end == std::string::npos)
      return false;
    text = payload_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }
  bool take(std::vector<std::string>& list, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i)
      if (!take(list.emplace_back()))
        return false;
    return true;
  }
  bool at_end() const { return at_ == payload_.size(); }

 private:
  const std::string& payload_;
  std::size_t at_;
};

bool take_sandbox(text_reader& in, const wire::sandbox_head& head, sandbox_spec& spec) {
  spec.kind = head.kind;
  spec.network = head.network;
  spec.unix_sockets = head.unix_sockets;
  spec.own_mounts = head.own_mounts;
  spec.landlock_abi = head.landlock_abi;
  spec.limits = head.limits;
  std::vector<std::string> ports;
  if (!in.take(spec.scratch) || !in.take(spec.bubblewrap) ||
      !in.take(spec.writable, head.writable_count) ||
      !in.take(spec.readable, head.readable_count) || !in.take(spec.hidden, head.hidden_count) ||
      !in.take(spec.read_only, head.read_only_count) || !in.take(ports, head.port_count))
    return false;
  for (const auto& text : ports) {
    std::uint16_t port = 0;
    std::from_chars(text.data(), text.data() + text.size(), port);
    spec.ports.push_back(port);
  }
  return true;
}

} // namespace

std::string encode_plan(const child_plan& plan) {
  wire::payload_head head = plan.limits;
  head.argument_count = count(plan.arguments);
  head.environment_count = count(plan.environment);
  if (plan.sandbox)
    head.sandbox = head_of(*plan.sandbox);
  std::string payload(reinterpret_cast<const char*>(&head), sizeof head);
  put_text(payload, plan.directory);
  put_text(payload, plan.within);
  for (const auto& argument : plan.arguments)
    put_text(payload, argument);
  for (const auto& variable : plan.environment)
    put_text(payload, variable);
  if (!plan.sandbox)
    return payload;
  put_text(payload, plan.sandbox->scratch);
  put_text(payload, plan.sandbox->bubblewrap);
  for (const auto* list : {&plan.sandbox->writable, &plan.sandbox->readable, &plan.sandbox->hidden,
                           &plan.sandbox->read_only})
    for (const auto& path : *list)
      put_text(payload, path);
  for (const auto port : plan.sandbox->ports)
    put_text(payload, std::to_string(port));
  return payload;
}

bool decode_plan(const std::string& payload, child_plan& plan) {
  if (payload.size() < sizeof plan.limits)
    return false;
  std::memcpy(&plan.limits, payload.data(), sizeof plan.limits);
  text_reader in(payload, sizeof plan.limits);
  if (!in.take(plan.directory) || !in.take(plan.within) ||
      !in.take(plan.arguments, plan.limits.argument_count) ||
      !in.take(plan.environment, plan.limits.environment_count))
    return false;
  const auto& head = plan.limits.sandbox;
  if (head.present != 0 && !take_sandbox(in, head, plan.sandbox.emplace()))
    return false;
  return in.at_end() && !plan.arguments.empty();
}

void become(const child_plan& plan, const int (&stdio)[3], int failure_fd, pid_t host,
            const rlimit& open_files, int status_fd) {
  using wire::spawn_step;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != host) // the host died before the line above
    ::_exit(exit_not_executed);
  reset_signals();
  for (int i = 0; i < 3; ++i)
    if (::dup2(stdio[i], i) < 0)
      give_up(failure_fd, spawn_step::descriptors, errno);
  // Behind the other one, and kept by exec.
  const int status = status_fd < 0 ? -1 : ::fcntl(status_fd, F_DUPFD, failure_fd + 1);
  if (!close_others(failure_fd, status))
    give_up(failure_fd, spawn_step::descriptors, errno);
  ::setrlimit(RLIMIT_NOFILE, &open_files);
  if (plan.limits.max_open_files > 0 && !set_limit(RLIMIT_NOFILE, plan.limits.max_open_files))
    give_up(failure_fd, spawn_step::limits, errno);
  if (plan.limits.max_processes > 0 && !set_limit(RLIMIT_NPROC, plan.limits.max_processes))
    give_up(failure_fd, spawn_step::limits, errno);
  if (plan.limits.umask >= 0)
    ::umask(static_cast<mode_t>(plan.limits.umask));
  if (const int failed = change_directory(plan); failed != 0)
    give_up(failure_fd, spawn_step::directory, failed);
  if (!plan.sandbox)
    give_up(failure_fd, spawn_step::exec, execute(plan));
  // This process has one thread, as the host that it was forked from: it may use memory as it
  // likes.
  child_plan inside = plan;
  if (const int failed = make_places(*plan.sandbox); failed != 0)
    give_up(failure_fd, spawn_step::sandbox, failed);
  // Where it stands by now: the way that led there may have changed.
  const std::unique_ptr<char, void (*)(void*)> here(::getcwd(nullptr, 0), std::free);
  auto arguments = bubblewrap_arguments(*plan.sandbox, here ? here.get() : plan.directory);
  if (!arguments.empty() && status >= 0)
    arguments.insert(arguments.begin() + 1, {"--json-status-fd", std::to_string(status)});
  inside.arguments.insert(inside.arguments.begin(), std::make_move_iterator(arguments.begin()),
                          std::make_move_iterator(arguments.end()));
  if (const int failed = enter_sandbox(*plan.sandbox); failed != 0)
    give_up(failure_fd, spawn_step::sandbox, failed);
  give_up(failure_fd, spawn_step::exec, execute(inside));
}

} // namespace boyd::adapters
