#include "call_limit.hpp"

#include "boyd/core/signal_stack.hpp"
#include "session.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace boyd::adapters::postgres {

namespace {

/// Without it no call would have an end: rather no session than such a one.
int another_descriptor_of(int socket) {
  const int own = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (own < 0)
    throw failure{{errc::store_unavailable,
                   "no file descriptor for the time limit of calls: " +
                       std::generic_category().message(errno),
                   "postgres",
                   "allow more open files (ulimit -n, systemd: LimitNOFILE), or lower "
                   "max_concurrent; the node tries again by itself"},
                  true};
  return own;
}

} // namespace

call_limit::call_limit(int socket) : socket_(another_descriptor_of(socket)) {
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (...) {
    ::close(socket_);
    throw;
  }
}

call_limit::~call_limit() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
  ::close(socket_);
}

void call_limit::begin(milliseconds limit) {
  const std::lock_guard lock(mutex_);
  calling_ = true;
  until_ = clock::now() + limit;
  // A thread that waits for an earlier call's end looks again by itself: calls come by thousands,
  // and are often over before a thread that was woken for them runs.
  if (idle_ || until_ < looks_at_) {
    idle_ = false;
    looks_at_ = until_;
    changed_.notify_one();
  }
}

void call_limit::end() noexcept {
  const std::lock_guard lock(mutex_);
  calling_ = false;
}

bool call_limit::struck() const {
  const std::lock_guard lock(mutex_);
  return struck_;
}

void call_limit::watch() {
  give_signal_stack();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (idle_) {
      changed_.wait(lock, [this] { return stop_ || !idle_; });
      continue;
    }
    looks_at_ = until_;
    changed_.wait_until(lock, clock::time_point{looks_at_});
    if (stop_ || clock::now() < until_)
      continue;
    if (calling_) {
      struck_ = true;
      calling_ = false;
      ::shutdown(socket_, SHUT_RDWR);
    }
    idle_ = true;
  }
}

} // namespace boyd::adapters::postgres
