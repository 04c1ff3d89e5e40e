#include "process_host.hpp"

#include "../unique_fd.hpp"
#include "proc_fs.hpp"
#include "process_child.hpp"
#include "process_wire.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <optional>
#include <poll.h>
#include <set>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace boyd::adapters {

const char* const process_host_argument = "__process-host";

namespace {

using clock = std::chrono::steady_clock;

/// Requests taken in one turn, so that ended children are seen to in between.
constexpr int requests_per_turn = 64;
/// How often the remains of an ended run are looked at when no signal announces their end.
constexpr int look_again_ms = 20;
/// An orphan that does not show whose it is may be in the middle of an exec: it gets so much time,
/// and longer while it shows no arguments either. Not for ever: a process whose first thread has
/// ended looks the same.
constexpr milliseconds exec_time = 20ms;
constexpr milliseconds longest_exec = 300ms;
constexpr int exit_ok = 0;
constexpr int exit_bad_start = 2;

struct run {
  std::uint64_t handle = 0;
  pid_t leader = -1;
  unique_fd failure; ///< read end of the child's close-on-exec pipe
  clock::time_point started{};
  unique_fd status; ///< what bubblewrap says of its program; none for others
};

struct ended_run {
  wire::reply end;
  pid_t leader = -1;
  clock::time_point report_by{};
};

/// An orphan that does not show whose it is.
struct stranger {
  std::set<std::uint64_t> around; ///< the runs that were there when it was first seen
  clock::time_point since = clock::now();
};

std::int64_t to_ms(const timeval& t) {
  constexpr std::int64_t ms_per_second = 1000;
  constexpr std::int64_t us_per_ms = 1000;
  return t.tv_sec * ms_per_second + t.tv_usec / us_per_ms;
}

/// The request and the descriptors that came with it.
struct received {
  wire::request request;
  unique_fd descriptors[wire::spawn_descriptors];
  bool complete = false; ///< all descriptors of a spawn arrived
};

enum class receive_result { nothing, message, closed };

receive_result receive(int fd, received& into) {
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int) * wire::spawn_descriptors)] = {};
  iovec part{&into.request, sizeof into.request};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  const auto n = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0)
    return errno == EAGAIN || errno == EINTR ? receive_result::nothing : receive_result::closed;
  if (n != sizeof into.request)
    return receive_result::closed;
  std::size_t count = 0;
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
    count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count && i < wire::spawn_descriptors; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(head) + i * sizeof(int), sizeof descriptor);
      into.descriptors[i].reset(descriptor);
    }
  }
  into.complete = count == wire::spawn_descriptors && (message.msg_flags & MSG_CTRUNC) == 0;
  return receive_result::message;
}

bool read_payload(int fd, std::string& payload) {
  struct stat info {};
  if (::fstat(fd, &info) != 0)
    return false;
  payload.resize(static_cast<std::size_t>(info.st_size));
  std::size_t at = 0;
  while (at < payload.size()) {
    const auto n = ::pread(fd, payload.data() + at, payload.size() - at, static_cast<off_t>(at));
    if (n <= 0)
      return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

/// Bubblewrap tells the exit code of a program that it has executed, and of no other.
bool has_run_program(int status) {
  std::array<char, 4096> text{};
  const auto n = ::pread(status, text.data(), text.size(), 0);
  return n > 0 &&
         std::string_view(text.data(), static_cast<std::size_t>(n)).find("\"exit-code\"") !=
             std::string_view::npos;
}

class host {
 public:
  host(int control, std::string nonce, unsigned long open_files)
      : control_(control), nonce_(std::move(nonce)), open_files_{open_files, 0} {}

  int serve();

 private:
  bool prepare();
  bool take_requests();
  void spawn(received& message);
  void refuse(std::uint64_t handle, wire::spawn_step step, int error_number);
  void signal(std::uint64_t handle, int number);
  void answer_ping();
  void reap();
  void note_end(run& r, int status, const rusage& usage);
  const stranger& note_stranger(pid_t pid);
  void end_remains();
  void end_orphan(pid_t pid, std::set<std::uint64_t>& unfinished);
  std::uint64_t handle_of(pid_t pid) const;
  bool lives(std::uint64_t handle) const;
  void report_ended(const std::set<std::uint64_t>& unfinished);
  void send(const wire::reply& reply);
  void end_everything();

  unique_fd control_;
  unique_fd signals_;
  std::string nonce_;
  pid_t self_ = ::getpid();
  rlimit open_files_; ///< what children get
  bool node_gone_ = false;
  std::map<pid_t, run> runs_; ///< by leader, which lives or is a zombie
  std::map<std::uint64_t, pid_t> leaders_;
  std::vector<ended_run> ended_; ///< leader reaped, remains not gone yet
  /// Orphans without a mark: their environment was cleared, or they are in the middle of an exec.
  std::map<pid_t, stranger> strangers_;
};

bool host::prepare() {
  ::prctl(PR_SET_NAME, "boyd-prochost");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return false;
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2})
    ::signal(number, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t watched;
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &watched, nullptr);
  signals_.reset(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  // One descriptor per child: the usual soft limit of 1024 would be a limit on children.
  const auto wanted = open_files_.rlim_cur;
  ::getrlimit(RLIMIT_NOFILE, &open_files_);
  const rlimit raised{open_files_.rlim_max, open_files_.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  if (wanted > 0)
    open_files_.rlim_cur = std::min(wanted, open_files_.rlim_max);
  return static_cast<bool>(signals_);
}

int host::serve() {
  if (!prepare())
    return exit_bad_start;
  while (!node_gone_) {
    pollfd watched[] = {{control_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    if (::poll(watched, 2, ended_.empty() ? -1 : look_again_ms) < 0 && errno != EINTR)
      break;
    if (watched[1].revents != 0) {
      signalfd_siginfo ignored[16];
      while (::read(signals_.get(), ignored, sizeof ignored) > 0) {
      }
    }
    reap();
    end_remains();
    if (watched[0].revents != 0 && !take_requests())
      break;
  }
  end_everything();
  return exit_ok;
}

bool host::take_requests() {
  for (int i = 0; i < requests_per_turn; ++i) {
    received message;
    const auto got = receive(control_.get(), message);
    if (got == receive_result::nothing)
      return true;
    if (got == receive_result::closed)
      return false;
    switch (message.request.kind) {
    case wire::request::kind_t::spawn:
      spawn(message);
      break;
    case wire::request::kind_t::signal:
      signal(message.request.handle, message.request.signal);
      break;
    case wire::request::kind_t::ping:
      answer_ping();
      break;
    }
  }
  return true;
}

void host::refuse(std::uint64_t handle, wire::spawn_step step, int error_number) {
  wire::reply failed;
  failed.kind = wire::reply::kind_t::failed;
  failed.handle = handle;
  failed.step = step;
  failed.error_number = error_number;
  send(failed);
}

void host::spawn(received& message) {
  using wire::spawn_step;
  const auto handle = message.request.handle;
  // The kernel drops descriptors for which the receiver has no room.
  if (!message.complete)
    return refuse(handle, spawn_step::receive, EMFILE);
  std::string payload;
  child_plan plan;
  if (!read_payload(message.descriptors[0].get(), payload) || !decode_plan(payload, plan))
    return refuse(handle, spawn_step::receive, EINVAL);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return refuse(handle, spawn_step::descriptors, errno);
  unique_fd failure(ends[0]);
  const unique_fd child_end(ends[1]);
  ::fcntl(failure.get(), F_SETFL, O_NONBLOCK);
  const int stdio[3] = {message.descriptors[1].get(), message.descriptors[2].get(),
                        message.descriptors[3].get()};
  unique_fd status;
  if (plan.sandbox && plan.sandbox->kind == sandbox_kind::bubblewrap) {
    status.reset(::memfd_create("boyd-status", MFD_CLOEXEC));
    if (!status)
      return refuse(handle, spawn_step::descriptors, errno);
  }
  const pid_t pid = ::fork();
  if (pid < 0)
    return refuse(handle, spawn_step::fork, errno);
  if (pid == 0)
    become(plan, stdio, child_end.get(), self_, open_files_, status ? status.get() : -1);
  ::setpgid(pid, pid); // the child does it too: whoever comes first
  leaders_[handle] = pid;
  runs_.insert_or_assign(pid,
                         run{handle, pid, std::move(failure), clock::now(), std::move(status)});
}

void host::signal(std::uint64_t handle, int number) {
  const auto found = leaders_.find(handle);
  if (found == leaders_.end())
    return;
  // Descendants that left the group are found while their ancestors still live, and end behind
  // these: a program that sees them end could go on, or end as if all were well.
  const auto below = number == SIGKILL ? descendants_of(found->second) : std::vector<pid_t>{};
  ::kill(-found->second, number);
  for (const pid_t each : below)
    ::kill(each, SIGKILL);
}

void host::answer_ping() {
  wire::reply pong;
  pong.kind = wire::reply::kind_t::pong;
  send(pong);
}

void host::reap() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 || info.si_pid == 0)
      return;
    const pid_t pid = info.si_pid;
    const auto found = runs_.find(pid);
    // The zombie still holds the group's number: nobody else can be hit.
    if (found != runs_.end())
      ::kill(-pid, SIGKILL);
    int status = 0;
    rusage usage{};
    if (::wait4(pid, &status, __WALL, &usage) != pid)
      return;
    strangers_.erase(pid);
    if (found != runs_.end()) {
      note_end(found->second, status, usage);
      leaders_.erase(found->second.handle);
      runs_.erase(found);
    }
  }
}

void host::note_end(run& r, int status, const rusage& usage) {
  wire::reply end;
  end.handle = r.handle;
  end.wait_status = status;
  end.wall_ms = std::chrono::duration_cast<milliseconds>(clock::now() - r.started).count();
  end.user_ms = to_ms(usage.ru_utime);
  end.system_ms = to_ms(usage.ru_stime);
  end.max_rss_kb = usage.ru_maxrss;
  child_failure failure;
  if (::read(r.failure.get(), &failure, sizeof failure) == sizeof failure) {
    end.kind = wire::reply::kind_t::failed;
    end.step = failure.step;
    end.error_number = failure.error_number;
  } else if (r.status && WIFEXITED(status) && !has_run_program(r.status.get())) {
    end.kind = wire::reply::kind_t::failed;
    end.step = wire::spawn_step::bubblewrap;
    end.error_number = ENOEXEC;
  }
  ended_.push_back({end, r.leader, clock::now() + wire::cleanup_bound});
}

bool host::lives(std::uint64_t handle) const {
  return leaders_.contains(handle);
}

std::uint64_t host::handle_of(pid_t pid) const {
  const std::string mark = environment_value(pid, wire::run_variable);
  if (mark.size() <= nonce_.size() + 1 || !mark.starts_with(nonce_) || mark[nonce_.size()] != '-')
    return 0;
  std::uint64_t handle = 0;
  std::from_chars(mark.data() + nonce_.size() + 1, mark.data() + mark.size(), handle);
  return handle;
}

/// An orphan without a mark, as it was first seen.
const stranger& host::note_stranger(pid_t pid) {
  auto [entry, is_new] = strangers_.try_emplace(pid);
  auto& seen = entry->second;
  if (is_new) {
    for (const auto& [live, leader] : leaders_)
      seen.around.insert(live);
    for (const auto& gone : ended_)
      seen.around.insert(gone.end.handle);
  }
  return seen;
}

/// Ends an orphan whose run is over, and notes the run in `unfinished`.
void host::end_orphan(pid_t pid, std::set<std::uint64_t>& unfinished) {
  std::set<std::uint64_t> owners;
  if (const auto handle = handle_of(pid); handle != 0) {
    strangers_.erase(pid);
    owners.insert(handle);
  } else {
    const auto& seen = note_stranger(pid);
    // Until it is clear whose it is, no run that has ended is told of.
    const auto age = clock::now() - seen.since;
    if (age < exec_time || (age < longest_exec && is_in_exec(pid))) {
      for (const auto& gone : ended_)
        unfinished.insert(gone.end.handle);
      return;
    }
    owners = seen.around;
  }
  if (std::ranges::any_of(owners, [&](auto owner) { return lives(owner); }))
    return;
  unfinished.insert(owners.begin(), owners.end());
  ::kill(pid, SIGKILL);
}

void host::end_remains() {
  if (ended_.empty())
    return;
  std::set<std::uint64_t> unfinished;
  for (const pid_t child : children_of(self_))
    if (!runs_.contains(child))
      end_orphan(child, unfinished);
  report_ended(unfinished);
}

void host::report_ended(const std::set<std::uint64_t>& unfinished) {
  const auto now = clock::now();
  std::erase_if(ended_, [&](const ended_run& e) {
    const bool group_left = ::kill(-e.leader, 0) == 0 || errno == EPERM;
    if ((group_left || unfinished.contains(e.end.handle)) && now < e.report_by)
      return false;
    send(e.end);
    return true;
  });
}

void host::send(const wire::reply& reply) {
  ssize_t n = -1;
  // Blocks while the node is slow to read: the node never waits for the host, so this ends.
  do {
    n = ::send(control_.get(), &reply, sizeof reply, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n < 0)
    node_gone_ = true;
}

/// Ends all that is below the host. Not bounded on purpose: while a child is stuck inside the
/// kernel, the home's lock must stay taken.
void host::end_everything() {
  for (const pid_t below : descendants_of(self_))
    ::kill(below, SIGKILL);
  for (;;) {
    // A killed parent's children are ours before its own end is reported.
    for (const pid_t child : children_of(self_)) {
      ::kill(child, SIGKILL);
      if (runs_.contains(child))
        ::kill(-child, SIGKILL);
    }
    if (::waitpid(-1, nullptr, __WALL) < 0 && errno == ECHILD)
      return;
    while (::waitpid(-1, nullptr, __WALL | WNOHANG) > 0) {
    }
  }
}

/// See process_host.hpp: glibc passes the program's arguments to constructor functions.
[[gnu::constructor]] void become_process_host(int argc, char** argv, char**) {
  if (argc != 4 || std::string_view(argv[1]) != process_host_argument)
    return;
  std::exit(process_host_main(wire::control_fd, argv[2], std::strtoul(argv[3], nullptr, 10)));
}

} // namespace

int process_host_main(int control_fd, const std::string& nonce, unsigned long open_files) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(control_fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET)
    return exit_bad_start;
  ::fcntl(control_fd, F_SETFD, FD_CLOEXEC);
  return host(control_fd, nonce, open_files).serve();
}

} // namespace boyd::adapters
