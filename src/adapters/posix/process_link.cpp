#include "process_link.hpp"

#include "proc_fs.hpp"
#include "process_host.hpp"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <utility>

namespace boyd::adapters {

namespace {

/// Sources of the host's descriptors lie above its targets, so that no dup2 hits another's source.
constexpr int above_targets = 10;
/// The host has this long to end everything before it is ended itself.
constexpr milliseconds stop_limit = 10s;
constexpr milliseconds lost_limit = 1s;
/// Pings in a row that a living host may leave unanswered.
constexpr int most_owed = 3;
/// Killed processes may have forked while they were looked up.
constexpr int sweep_passes = 5;

std::string text_of(int error_number) {
  return std::generic_category().message(error_number);
}

std::string make_nonce() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits)
    bits = 0; // the pid still tells this node's runs from those of any other living node
  char text[40];
  std::snprintf(text, sizeof text, "%d.%016llx", ::getpid(), static_cast<unsigned long long>(bits));
  return text;
}

/// posix_spawn's two parameter blocks.
class spawn_setup {
 public:
  spawn_setup() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~spawn_setup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  spawn_setup(const spawn_setup&) = delete;
  spawn_setup& operator=(const spawn_setup&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

void prepare(spawn_setup& setup, int control, int lock) {
  ::posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&setup.actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&setup.actions, control, wire::control_fd);
  if (lock >= 0)
    ::posix_spawn_file_actions_adddup2(&setup.actions, lock, wire::lock_fd);
  ::posix_spawn_file_actions_addclosefrom_np(&setup.actions,
                                             lock >= 0 ? wire::lock_fd + 1 : wire::lock_fd);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&setup.attributes, &none);
  ::posix_spawnattr_setflags(&setup.attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
}

} // namespace

host_link::host_link(const process_runner_options& options, unique_fd lock)
    : executable_(options.executable), open_files_(std::to_string(options.open_files)),
      lock_(std::move(lock)), nonce_(make_nonce()), ping_(options.host_ping) {}

host_link::~host_link() {
  stop();
}

result<void> host_link::start() {
  // In the middle of an exec a process has no environment to be known by: those that were are now.
  if (std::exchange(lost_, false))
    sweep();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(errc::spawn_failed, "no socket for the process host: " + text_of(errno));
  unique_fd ours(ends[0]);
  const unique_fd theirs(ends[1]);
  const unique_fd source(::fcntl(theirs.get(), F_DUPFD_CLOEXEC, above_targets));
  if (!source || ::fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0)
    return fail(errc::spawn_failed, "no descriptor for the process host: " + text_of(errno));
  spawn_setup setup;
  prepare(setup, source.get(), lock_.get());
  std::string argument = process_host_argument;
  std::string name = "boyd";
  char* argv[] = {name.data(), argument.data(), nonce_.data(), open_files_.data(), nullptr};
  pid_t pid = -1;
  const int failed =
      ::posix_spawn(&pid, executable_.c_str(), &setup.actions, &setup.attributes, argv, ::environ);
  if (failed != 0)
    return fail(errc::spawn_failed, "cannot start the process host: " + text_of(failed),
                executable_);
  host_ = pid;
  control_ = std::move(ours);
  looked_at_ = std::chrono::steady_clock::now();
  owed_ = 0;
  return {};
}

int host_link::send(const outgoing& message) {
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int) * wire::spawn_descriptors)] = {};
  iovec part{const_cast<wire::request*>(&message.request), sizeof message.request};
  msghdr head{};
  head.msg_iov = &part;
  head.msg_iovlen = 1;
  if (message.request.kind == wire::request::kind_t::spawn) {
    int descriptors[wire::spawn_descriptors];
    for (std::size_t i = 0; i < wire::spawn_descriptors; ++i)
      descriptors[i] = message.descriptors[i].get();
    head.msg_control = space;
    head.msg_controllen = sizeof space;
    cmsghdr* const rights = CMSG_FIRSTHDR(&head);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof descriptors);
    std::memcpy(CMSG_DATA(rights), descriptors, sizeof descriptors);
  }
  while (::sendmsg(control_.get(), &head, MSG_NOSIGNAL) < 0)
    if (errno != EINTR)
      return errno;
  return 0;
}

int host_link::look(std::chrono::steady_clock::time_point now, bool busy) {
  if (!alive() || now < next_look(busy))
    return owed_;
  looked_at_ = now;
  if (owed_ == most_owed) {
    spdlog::error("the process host has not answered {} pings and is killed", owed_);
    ::kill(host_, SIGKILL);
    return owed_;
  }
  outgoing ping;
  ping.request.kind = wire::request::kind_t::ping;
  (void)send(ping); // when it could not be sent it is not answered
  return ++owed_;
}

host_link::received host_link::receive(wire::reply& into) {
  auto n = ::recv(control_.get(), &into, sizeof into, 0);
  for (; n == sizeof into; n = ::recv(control_.get(), &into, sizeof into, 0)) {
    owed_ = 0;
    if (into.kind != wire::reply::kind_t::pong)
      return received::reply;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return received::nothing;
  return received::closed;
}

bool host_link::reap(milliseconds limit) {
  if (host_ < 0)
    return true;
  const unique_fd watch(static_cast<int>(::syscall(SYS_pidfd_open, host_, 0)));
  pollfd ended{watch.get(), POLLIN, 0};
  if (watch && ::poll(&ended, 1, static_cast<int>(limit.count())) == 0)
    return false;
  ::waitpid(host_, nullptr, 0);
  host_ = -1;
  return true;
}

/// Ends every process that carries this link's mark.
void host_link::sweep() const {
  for (int pass = 0; pass < sweep_passes; ++pass) {
    bool found = false;
    for (const pid_t pid : all_processes()) {
      if (!environment_value(pid, wire::run_variable).starts_with(nonce_ + '-'))
        continue;
      found = true;
      ::kill(pid, SIGKILL);
    }
    if (!found)
      return;
  }
}

void host_link::lost() {
  lost_ = true;
  control_.reset();
  if (!reap(lost_limit)) {
    ::kill(host_, SIGKILL);
    ::waitpid(host_, nullptr, 0);
    host_ = -1;
  }
  sweep();
}

void host_link::stop() {
  control_.reset();
  if (reap(stop_limit))
    return;
  spdlog::error("the process host did not end in {} s and is killed",
                std::chrono::duration_cast<seconds>(stop_limit).count());
  ::kill(host_, SIGKILL);
  ::waitpid(host_, nullptr, 0);
  host_ = -1;
  sweep();
}

} // namespace boyd::adapters
