#include "call_limit.hpp"

#include "boyd/core/signal_stack.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace boyd::adapters::postgres {

call_limit::call_limit(int socket)
    : socket_(::fcntl(socket, F_DUPFD_CLOEXEC, 0)), thread_([this] { watch(); }) {}

call_limit::~call_limit() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
  if (socket_ >= 0)
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
