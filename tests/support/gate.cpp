#include "support/gate.hpp"

#include "support/wait.hpp"

#include <algorithm>

namespace boyd::test {

void gate::open() {
  {
    const std::lock_guard lock(mutex_);
    open_ = true;
  }
  tell();
}

void gate::pass(std::size_t n) {
  {
    const std::lock_guard lock(mutex_);
    passes_ += n;
  }
  tell();
}

std::size_t gate::arrived() const {
  const std::lock_guard lock(mutex_);
  return arrived_;
}

bool gate::wait_for_arrivals(std::size_t n) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return arrived_ >= n; });
}

void gate::arrive() {
  const std::lock_guard lock(mutex_);
  ++arrived_;
  changed_.notify_all();
}

bool gate::try_pass() {
  const std::lock_guard lock(mutex_);
  if (open_)
    return true;
  if (passes_ == 0)
    return false;
  --passes_;
  return true;
}

void gate::listen(std::size_t owner, std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::none_of(listeners_, [&](auto& l) { return l.first == owner; }))
    listeners_.emplace_back(owner, std::move(wake));
}

void gate::forget(std::size_t owner) {
  const std::lock_guard lock(mutex_);
  std::erase_if(listeners_, [&](auto& l) { return l.first == owner; });
}

void gate::tell() {
  // Under the lock: an endpoint that ends forgets itself here first.
  const std::lock_guard lock(mutex_);
  for (const auto& [owner, wake] : listeners_)
    wake();
}

} // namespace boyd::test
