#include "process_runner.hpp"

#include "../signals_blocked.hpp"
#include "boyd/core/signal_stack.hpp"
#include "host_record.hpp"
#include "process_job.hpp"
#include "process_link.hpp"
#include "sandbox_child.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unordered_set>

namespace boyd::adapters {

namespace {

using clock = std::chrono::steady_clock;

constexpr int events_per_turn = 64;
constexpr std::size_t read_chunk = 64u << 10;
/// Chunks read from what is left in a pipe when the runner is destroyed.
constexpr int last_chunks = 64;
/// Starts and signals that wait for the runner's thread; more mean that it hangs in a callback.
constexpr std::size_t max_commands = 65536;
/// A host that lived this long was healthy: its death starts the backoff anew.
constexpr milliseconds healthy_after = 60s;

/// The loop's turns are at most this far apart while it waits for a time.
constexpr milliseconds longest_wait = 30s;

/// What an epoll event belongs to: (handle << slot_bits) | slot.
constexpr unsigned slot_bits = 2;
constexpr std::uint64_t key_control = slot_own;
constexpr std::uint64_t key_wake = (1u << slot_bits) | slot_own;

std::uint64_t key_of(process_handle handle, slot s) {
  return (handle << slot_bits) | s;
}

class posix_process_runner final : public process_runner {
 public:
  posix_process_runner(const process_runner_options& options, unique_fd lock)
      : link_(options, std::move(lock)) {}
  ~posix_process_runner() override;

  result<void> open();

  result<process_handle> start(process_spec spec, process_events events) override;
  result<void> write(process_handle handle, std::string_view bytes) override;
  void close_input(process_handle handle) override;
  void signal(process_handle handle, int signal) override;
  std::size_t running() const override;
  bool runs(process_handle handle) const override;
  process_host_status host() const override { return record_.read(); }
  sandbox_abilities sandbox() const override { return abilities_; }

 private:
  using entries = std::map<process_handle, process_job>;

  result<process_handle> push(process_command c);
  void wake();
  void loop();
  int next_timeout() const;
  void take_commands();
  void take_start(process_command c);
  void take_input(process_command& c);
  int make_pipes(process_job& e, process_handle handle, outgoing& message);
  bool ensure_host();
  void flush();
  void watch_control(bool also_write);
  void handle_event(const epoll_event& event);
  void take_replies();
  void host_lost();
  void watch(int fd, std::uint64_t key, std::uint32_t what);
  void close_pipe(process_job& e, slot s);
  void write_input(process_handle handle, process_job& e);
  void watch_input(process_handle handle, process_job& e, bool watched);
  bool read_output(process_job& e, slot s);
  void fail_start(process_handle handle, wire::spawn_step step, int error_number);
  void ended(process_handle handle, const wire::reply& r);
  void finish_if_drained(entries::iterator it);
  void finish(entries::iterator it);
  void end_all();

  host_link link_;
  const sandbox_abilities abilities_ = probe_sandbox();
  unique_fd epoll_;
  unique_fd wake_;
  std::thread thread_;

  mutable std::mutex mutex_; ///< guards the four below
  std::deque<process_command> commands_;
  std::unordered_set<process_handle> running_;
  process_handle last_handle_ = 0;
  bool stopping_ = false;
  waiting_input inputs_; ///< of stdins that stay open

  host_record record_;

  // The runner's thread only.
  entries entries_;
  std::deque<outgoing> outgoing_;
  bool waits_for_room_ = false;
  clock::time_point host_started_{};
  clock::time_point host_not_before_{};
  milliseconds host_backoff_ = limits::backoff_base;
  std::vector<char> buffer_ = std::vector<char>(read_chunk);
};

result<void> posix_process_runner::open() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_)
    return fail(errc::spawn_failed, "no descriptors for the process runner: " + errno_text(errno));
  watch(wake_.get(), key_wake, EPOLLIN);
  if (auto started = link_.start(); !started)
    return started;
  host_started_ = clock::now();
  watch(link_.control(), key_control, EPOLLIN);
  try {
    const signals_blocked scope;
    thread_ = std::thread([this] { loop(); });
  } catch (const std::system_error& e) {
    return fail(errc::spawn_failed, std::string("no thread for the process runner: ") + e.what());
  }
  ::pthread_setname_np(thread_.native_handle(), "boyd-processes");
  return {};
}

posix_process_runner::~posix_process_runner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (thread_.joinable())
    thread_.join();
}

result<process_handle> posix_process_runner::push(process_command c) {
  process_handle handle = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_)
      return fail(errc::cancelled, "the process runner is stopping");
    if (commands_.size() >= max_commands)
      return fail(errc::overloaded, "too many processes are waiting to start");
    if (c.kind == process_command::kind_t::start) {
      c.handle = ++last_handle_;
      running_.insert(c.handle);
      if (c.spec.input_stays)
        inputs_.open(c.handle, c.spec.input.size());
    }
    handle = c.handle;
    commands_.push_back(std::move(c));
  }
  wake();
  return handle;
}

result<process_handle> posix_process_runner::start(process_spec spec, process_events events) {
  process_command c;
  c.spec = std::move(spec);
  c.events = std::move(events);
  return push(std::move(c));
}

result<void> posix_process_runner::write(process_handle handle, std::string_view bytes) {
  if (auto room = inputs_.add(handle, bytes.size()); !room)
    return room;
  process_command c;
  c.kind = process_command::kind_t::write;
  c.handle = handle;
  c.bytes = bytes;
  if (auto pushed = push(std::move(c)); !pushed) {
    inputs_.taken(handle, bytes.size());
    return fail(std::move(pushed.error()));
  }
  return {};
}

void posix_process_runner::close_input(process_handle handle) {
  process_command c;
  c.kind = process_command::kind_t::close_input;
  c.handle = handle;
  if (inputs_.close(handle))
    (void)push(std::move(c));
}

void posix_process_runner::signal(process_handle handle, int signal) {
  process_command c;
  c.kind = process_command::kind_t::signal;
  c.handle = handle;
  c.signal = signal;
  if (signal > 0)
    (void)push(std::move(c));
}

std::size_t posix_process_runner::running() const {
  const std::lock_guard lock(mutex_);
  return running_.size();
}

bool posix_process_runner::runs(process_handle handle) const {
  const std::lock_guard lock(mutex_);
  return running_.contains(handle);
}

void posix_process_runner::wake() {
  const std::uint64_t one = 1;
  // A full counter means that the thread is woken already.
  [[maybe_unused]] const auto n = ::write(wake_.get(), &one, sizeof one);
}

void posix_process_runner::loop() {
  give_signal_stack();
  for (;;) {
    epoll_event events[events_per_turn];
    const int n = ::epoll_wait(epoll_.get(), events, events_per_turn, next_timeout());
    for (int i = 0; i < n; ++i)
      handle_event(events[i]);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_)
        break;
    }
    take_commands();
    flush();
    // Not left to the next start: who asks for the status meanwhile should see it well again.
    ensure_host();
    const auto now = clock::now();
    record_.owes(link_.look(now, !entries_.empty()));
    for (auto it = entries_.begin(); it != entries_.end();) {
      const auto current = it++;
      if (current->second.end && current->second.drain_by <= now)
        finish(current);
    }
  }
  end_all();
}

int posix_process_runner::next_timeout() const {
  auto first = link_.alive() ? link_.next_look(!entries_.empty()) : host_not_before_;
  for (const auto& [handle, e] : entries_)
    if (e.end)
      first = std::min(first, e.drain_by);
  const auto left = std::chrono::ceil<milliseconds>(first - clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, longest_wait.count()));
}

void posix_process_runner::watch(int fd, std::uint64_t key, std::uint32_t what) {
  epoll_event event{};
  event.events = what;
  event.data.u64 = key;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST)
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void posix_process_runner::watch_control(bool also_write) {
  if (waits_for_room_ == also_write || !link_.alive())
    return;
  waits_for_room_ = also_write;
  watch(link_.control(), key_control,
        static_cast<std::uint32_t>(also_write ? EPOLLIN | EPOLLOUT : EPOLLIN));
}

void posix_process_runner::take_commands() {
  std::deque<process_command> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(commands_);
  }
  for (auto& c : taken) {
    if (c.kind == process_command::kind_t::start) {
      take_start(std::move(c));
    } else if (c.kind != process_command::kind_t::signal) {
      take_input(c);
    } else if (entries_.contains(c.handle)) {
      outgoing message;
      message.request = {wire::request::kind_t::signal, c.signal, c.handle};
      outgoing_.push_back(std::move(message));
    }
  }
}

void posix_process_runner::take_start(process_command c) {
  const auto handle = c.handle;
  process_job& e = entries_[handle];
  e.events = std::move(c.events);
  e.program = c.spec.argv.empty() ? std::string("(no program)") : c.spec.argv.front();
  e.directory = c.spec.cwd;
  e.limited = c.spec.max_open_files != 0 || c.spec.max_processes != 0 || c.spec.sandbox;
  e.input.bytes = std::move(c.spec.input);
  e.input.stays = c.spec.input_stays;
  if (!is_startable(c.spec))
    return fail_start(handle, wire::spawn_step::exec, EINVAL);
  outgoing message;
  message.request.handle = handle;
  message.descriptors[0] = make_payload(c.spec, link_.nonce() + '-' + std::to_string(handle));
  if (!message.descriptors[0])
    return fail_start(handle, wire::spawn_step::receive, errno);
  if (const int failed = make_pipes(e, handle, message); failed != 0)
    return fail_start(handle, wire::spawn_step::descriptors, failed);
  outgoing_.push_back(std::move(message));
}

void posix_process_runner::take_input(process_command& c) {
  const auto it = entries_.find(c.handle);
  if (it == entries_.end() || !it->second.pipes[slot_in])
    return inputs_.taken(c.handle, c.bytes.size());
  auto& e = it->second;
  if (c.kind == process_command::kind_t::close_input)
    e.input.stays = false;
  e.input.add(c.bytes);
  watch_input(c.handle, e, true);
}

int posix_process_runner::make_pipes(process_job& e, process_handle handle, outgoing& message) {
  for (const slot s : {slot_in, slot_out, slot_err}) {
    unique_fd& theirs = message.descriptors[s + 1];
    if (s == slot_in && e.input.bytes.empty() && !e.input.stays) {
      theirs.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!theirs)
        return errno;
      continue;
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return errno;
    unique_fd& ours = e.pipes[s];
    ours.reset(s == slot_in ? ends[1] : ends[0]);
    theirs.reset(s == slot_in ? ends[0] : ends[1]);
    ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
    watch(ours.get(), key_of(handle, s), s == slot_in ? EPOLLOUT : EPOLLIN);
  }
  return 0;
}

/// A living host, started anew when its backoff allows.
bool posix_process_runner::ensure_host() {
  if (link_.alive())
    return true;
  const auto now = clock::now();
  if (now < host_not_before_)
    return false;
  host_not_before_ = now + host_backoff_;
  host_backoff_ = std::min(host_backoff_ * 2, limits::backoff_cap);
  if (const auto started = link_.start(); !started) {
    spdlog::error("{}", to_string(started.error()));
    record_.died(to_string(started.error()));
    return false;
  }
  spdlog::warn("the process host was started again");
  record_.started();
  host_started_ = now;
  waits_for_room_ = false;
  watch(link_.control(), key_control, EPOLLIN);
  return true;
}

void posix_process_runner::flush() {
  while (!outgoing_.empty()) {
    const auto& [kind, number, handle] = outgoing_.front().request;
    const auto it = entries_.find(handle);
    const bool spawns = kind == wire::request::kind_t::spawn;
    if (it == entries_.end() || (!spawns && it->second.end)) {
      outgoing_.pop_front();
      continue;
    }
    const auto failed = ensure_host() ? link_.send(outgoing_.front()) : ENOTCONN;
    if (failed == EAGAIN || failed == ENOBUFS)
      return watch_control(true);
    if (failed == EPIPE || failed == ECONNRESET) {
      host_lost();
      continue; // sent again to the next host, or refused by ensure_host
    }
    if (failed == 0 && spawns)
      it->second.sent = true;
    const process_handle refused = handle;
    outgoing_.pop_front();
    if (failed != 0 && spawns)
      fail_start(refused, wire::spawn_step::receive, failed == ENOTCONN ? EAGAIN : failed);
  }
  watch_control(false);
}

void posix_process_runner::handle_event(const epoll_event& event) {
  const auto key = event.data.u64;
  if (key == key_wake) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto n = ::read(wake_.get(), &count, sizeof count);
    return;
  }
  if (key == key_control) {
    if (link_.alive() && (event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0)
      take_replies();
    return;
  }
  const auto it = entries_.find(key >> slot_bits);
  const auto s = static_cast<slot>(key & slot_own);
  if (it == entries_.end() || !it->second.pipes[s])
    return;
  if (s == slot_in)
    return write_input(it->first, it->second);
  if (!read_output(it->second, s))
    finish_if_drained(it);
}

void posix_process_runner::take_replies() {
  for (int i = 0; i < events_per_turn; ++i) {
    wire::reply reply;
    switch (link_.receive(reply)) {
    case host_link::received::nothing:
      return;
    case host_link::received::closed:
      return host_lost();
    case host_link::received::reply:
      ended(reply.handle, reply);
    }
  }
}

void posix_process_runner::host_lost() {
  const auto what =
      "the process host died; its " + std::to_string(entries_.size()) + " processes were ended";
  spdlog::error("{}", what);
  record_.died(what);
  link_.lost();
  const auto now = clock::now();
  if (now - host_started_ >= healthy_after)
    host_backoff_ = limits::backoff_base;
  host_not_before_ = now + host_backoff_;
  wire::reply killed;
  killed.wait_status = SIGKILL;
  std::vector<process_handle> gone;
  for (const auto& [handle, e] : entries_)
    if (e.sent && !e.end)
      gone.push_back(handle);
  for (const auto handle : gone) {
    // One that was alone may well have done it itself.
    entries_.at(handle).host_lost = gone.size() > 1;
    ended(handle, killed);
  }
}

void posix_process_runner::close_pipe(process_job& e, slot s) {
  if (!e.pipes[s])
    return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, e.pipes[s].get(), nullptr);
  e.pipes[s].reset();
}

/// A stdin that stays open and has nothing to write would be reported in every turn.
void posix_process_runner::watch_input(process_handle handle, process_job& e, bool watched) {
  if (std::exchange(e.input.watched, watched) != watched)
    watch(e.pipes[slot_in].get(), key_of(handle, slot_in),
          watched ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
}

void posix_process_runner::write_input(process_handle handle, process_job& e) {
  std::size_t written = 0;
  const auto now = e.input.write_to(e.pipes[slot_in].get(), written);
  inputs_.taken(handle, written);
  if (now == job_input::state::idle)
    watch_input(handle, e, false);
  if (now != job_input::state::over)
    return;
  // All written, or nobody reads it any more (EPIPE): which is the program's own business.
  close_pipe(e, slot_in);
  e.input = {};
  inputs_.close(handle);
}

/// False when the pipe has come to its end.
bool posix_process_runner::read_output(process_job& e, slot s) {
  const auto n = ::read(e.pipes[s].get(), buffer_.data(), buffer_.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return true;
  if (n <= 0) {
    close_pipe(e, s);
    return false;
  }
  if (e.events.on_output)
    e.events.on_output(s == slot_out ? output_stream::out : output_stream::err,
                       {buffer_.data(), static_cast<std::size_t>(n)});
  return true;
}

void posix_process_runner::fail_start(process_handle handle, wire::spawn_step step,
                                      int error_number) {
  wire::reply failed;
  failed.kind = wire::reply::kind_t::failed;
  failed.step = step;
  failed.error_number = error_number;
  ended(handle, failed);
}

void posix_process_runner::ended(process_handle handle, const wire::reply& r) {
  const auto it = entries_.find(handle);
  if (it == entries_.end() || it->second.end)
    return;
  process_job& e = it->second;
  e.end = r;
  e.drain_by = clock::now() + limits::term_grace;
  close_pipe(e, slot_in);
  if (r.kind == wire::reply::kind_t::failed && r.step != wire::spawn_step::bubblewrap) {
    close_pipe(e, slot_out);
    close_pipe(e, slot_err);
  }
  finish_if_drained(it);
}

void posix_process_runner::finish_if_drained(entries::iterator it) {
  const process_job& e = it->second;
  if (e.end && !e.pipes[slot_out] && !e.pipes[slot_err])
    finish(it);
}

void posix_process_runner::finish(entries::iterator it) {
  process_job e = std::move(it->second);
  const auto handle = it->first;
  entries_.erase(it);
  for (const slot s : {slot_in, slot_out, slot_err})
    close_pipe(e, s);
  {
    const std::lock_guard lock(mutex_);
    running_.erase(handle);
  }
  inputs_.close(handle);
  if (e.events.on_exit)
    e.events.on_exit(exit_of(e, *e.end));
}

/// Nothing runs and nobody waits when this returns.
void posix_process_runner::end_all() {
  take_commands();
  outgoing_.clear();
  link_.stop();
  wire::reply killed;
  killed.wait_status = SIGKILL;
  while (!entries_.empty()) {
    const auto it = entries_.begin();
    process_job& e = it->second;
    for (const slot s : {slot_out, slot_err})
      for (int i = 0; i < last_chunks && e.pipes[s] && read_output(e, s); ++i) {
      }
    if (!e.sent && !e.end) {
      killed.kind = wire::reply::kind_t::failed;
      killed.error_number = ECANCELED;
    }
    if (!e.end)
      e.end = killed;
    finish(it);
    killed.kind = wire::reply::kind_t::exited;
  }
}

} // namespace

result<std::shared_ptr<process_runner>> make_process_runner(const process_runner_options& options) {
  unique_fd lock;
  if (options.inherit_descriptor >= 0) {
    constexpr int above_targets = 10;
    lock.reset(::fcntl(options.inherit_descriptor, F_DUPFD_CLOEXEC, above_targets));
    if (!lock)
      return fail(errc::spawn_failed, "cannot pass on the lock of the home: " + errno_text(errno));
  }
  auto runner = std::make_shared<posix_process_runner>(options, std::move(lock));
  if (auto opened = runner->open(); !opened)
    return fail(opened.error());
  return runner;
}

} // namespace boyd::adapters
