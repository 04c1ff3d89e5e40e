#include "engine_internal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <iterator>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace boyd::adapters::curl_detail {

namespace {

constexpr int events_at_once = 256;
/// Connections without a request that are kept, with those in use: beyond it the oldest idle one is
/// closed.
constexpr long connections_kept = 128;

/// Plain requests to an address need no look-up and no handshake.
bool goes_through_gate(const checked_request& r) {
  return r.address.secure || r.needs_name;
}

/// Whether others would meet the same when they try to connect.
bool is_of_place(const error& e) {
  return e.code == errc::io_error || e.code == errc::refused;
}

} // namespace

result<std::unique_ptr<engine>> engine::make(const std::string& ca_file, ended_function ended) {
  const auto lib = load_library();
  if (!lib)
    return fail(lib.error());
  std::unique_ptr<engine> made(new engine(**lib, ca_file, std::move(ended)));
  if (!made->open())
    return fail(errc::overloaded, "cannot start the HTTP client: no file descriptors or no memory",
                "", "raise the limit for open files");
  return made;
}

engine::engine(const library& lib, std::string ca_file, ended_function ended)
    : lib_(lib), ca_file_(std::move(ca_file)), ended_(std::move(ended)) {}

bool engine::open() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  waker_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  multi_ = lib_.multi_init();
  if (epoll_ < 0 || waker_ < 0 || multi_ == nullptr)
    return false;
  lib_.multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &engine::on_socket);
  lib_.multi_setopt(multi_, CURLMOPT_SOCKETDATA, static_cast<void*>(this));
  lib_.multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &engine::on_timer);
  lib_.multi_setopt(multi_, CURLMOPT_TIMERDATA, static_cast<void*>(this));
  lib_.multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
  lib_.multi_setopt(multi_, CURLMOPT_MAXCONNECTS, connections_kept);
  return watch(waker_, CURL_POLL_IN);
}

engine::~engine() {
  cancel_all();
  if (multi_ != nullptr)
    lib_.multi_cleanup(multi_);
  for (const int fd : {epoll_, waker_})
    if (fd >= 0)
      ::close(fd);
}

void engine::wake(int waker) {
  const std::uint64_t one = 1;
  (void)!::write(waker, &one, sizeof one);
}

bool engine::watch(curl_socket_t fd, int what) {
  epoll_event e{};
  e.data.fd = fd;
  e.events =
      ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0u) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0u);
  // The number of a socket that was closed may be there again.
  return ::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &e) == 0 ||
         (errno == ENOENT && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e) == 0);
}

int engine::on_socket(CURL* easy, curl_socket_t fd, int what, void* self,
                      void* /*known*/) noexcept {
  auto& e = *static_cast<engine*>(self);
  if (what == CURL_POLL_REMOVE) {
    (void)::epoll_ctl(e.epoll_, EPOLL_CTL_DEL, fd, nullptr);
  } else if (!e.watch(fd, what)) {
    // Nothing would ever be heard of it. An error from here would end all requests.
    e.unwatched_.push_back(transfer::of(e.lib_, easy).handle());
  }
  return 0;
}

int engine::on_timer(CURLM* /*multi*/, long ms, void* self) noexcept {
  auto& e = *static_cast<engine*>(self);
  e.timer_.reset();
  if (ms >= 0)
    e.timer_ = clock::now() + milliseconds(ms);
  return 0;
}

void engine::add(std::unique_ptr<transfer> t) {
  const auto handle = t->handle();
  auto& kept = *transfers_.emplace(handle, std::move(t)).first->second;
  if (!goes_through_gate(kept.request()) ||
      gate_.enter(kept.place(), handle, kept.connect_by(), clock::now()))
    ready_.push_back(handle);
}

/// A loop, not a call inside a call: the end of one can let the next go first, which ends as well.
void engine::go_all() {
  while (!ready_.empty())
    for (const auto handle : std::exchange(ready_, {}))
      go(handle);
}

void engine::go(http_handle handle) {
  const auto found = transfers_.find(handle);
  if (found == transfers_.end())
    return;
  auto& t = *found->second;
  const auto prepared = t.prepare(lib_, ca_file_, clock::now(), connected_);
  if (!prepared)
    return end(handle, prepared);
  if (lib_.multi_add_handle(multi_, t.easy()) != CURLM_OK)
    end(handle, fail(errc::overloaded, "no memory for the request", t.place()));
}

void engine::cancel(const std::vector<http_handle>& handles) {
  // The newest first: those that wait go before the one they wait for, and no name is looked up
  // for who is about to be cancelled.
  auto order = handles;
  std::ranges::sort(order, std::greater<>());
  for (const auto handle : order)
    end(handle, fail(errc::cancelled, "the request was cancelled"));
}

void engine::cancel_all() {
  std::vector<http_handle> all;
  all.reserve(transfers_.size());
  for (const auto& [handle, t] : transfers_)
    all.push_back(handle);
  cancel(all);
}

void engine::end(http_handle handle, const result<void>& r) {
  const auto found = transfers_.find(handle);
  if (found == transfers_.end())
    return;
  const auto t = std::move(found->second);
  transfers_.erase(found);
  if (t->easy() != nullptr)
    lib_.multi_remove_handle(multi_, t->easy());
  ended_(handle);
  t->end(r);
  if (!goes_through_gate(t->request()))
    return;
  const bool place_fails = !t->connected() && !r && is_of_place(r.error());
  const auto after = gate_.ended(t->place(), handle, place_fails);
  for (const auto other : after.failed)
    end(other, r);
  if (after.next)
    ready_.push_back(*after.next);
}

int engine::wait_ms(milliseconds most) const {
  auto until = clock::now() + most;
  if (timer_)
    until = std::min(until, *timer_);
  if (const auto due = gate_.next_due())
    until = std::min(until, *due);
  const auto left = std::chrono::ceil<milliseconds>(until - clock::now());
  return static_cast<int>(std::max(left, 0ms).count());
}

void engine::act(curl_socket_t fd, int what) {
  int running = 0;
  (void)lib_.multi_socket_action(multi_, fd, what, &running);
  follow_connected();
}

void engine::follow_connected() {
  for (const auto handle : std::exchange(connected_, {}))
    if (const auto found = transfers_.find(handle);
        found != transfers_.end() && goes_through_gate(found->second->request()))
      std::ranges::copy(gate_.connected(found->second->place(), clock::now()),
                        std::back_inserter(ready_));
}

void engine::run_once(milliseconds most) {
  go_all();
  std::array<epoll_event, events_at_once> events{};
  const int n = ::epoll_wait(epoll_, events.data(), events_at_once, wait_ms(most));
  for (int i = 0; i < n; ++i) {
    const auto& e = events.at(static_cast<std::size_t>(i));
    if (e.data.fd == waker_) {
      std::uint64_t count = 0;
      (void)!::read(waker_, &count, sizeof count);
      continue;
    }
    const auto flag = [&](std::uint32_t ours, int theirs) {
      return (e.events & ours) != 0 ? theirs : 0;
    };
    act(e.data.fd, flag(EPOLLIN | EPOLLHUP, CURL_CSELECT_IN) | flag(EPOLLOUT, CURL_CSELECT_OUT) |
                       flag(EPOLLERR, CURL_CSELECT_ERR));
  }
  if (timer_ && *timer_ <= clock::now()) {
    timer_.reset(); // libcurl says when it wants to be called again
    act(CURL_SOCKET_TIMEOUT, 0);
  }
  reap();
  end_overdue();
  go_all();
}

void engine::reap() {
  int left = 0;
  while (const auto* message = lib_.multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE)
      continue;
    const auto& t = transfer::of(lib_, message->easy_handle);
    end(t.handle(), t.outcome(message->data.result));
  }
  for (const auto handle : std::exchange(unwatched_, {}))
    if (const auto found = transfers_.find(handle); found != transfers_.end())
      end(handle, fail(errc::overloaded, "cannot watch the connection", found->second->place(),
                       "raise fs.epoll.max_user_watches"));
}

void engine::end_overdue() {
  for (const auto handle : gate_.overdue(clock::now()))
    if (const auto found = transfers_.find(handle); found != transfers_.end())
      end(handle, fail(found->second->timed_out()));
}

} // namespace boyd::adapters::curl_detail
