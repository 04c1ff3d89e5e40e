#pragma once

#include <mutex>
#include <utility>

namespace boyd {

/// Whoever plays a part at this moment, for askers that need not be started anew when it is: they
/// look anew for every request. Without it they go on, and a request to nobody fails at once.
/// Threads: any.
template <class Handle>
class role {
 public:
  /// By the supervisor of the part, at every start of it.
  void play(Handle by) {
    const std::lock_guard lock(mutex_);
    handle_ = std::move(by);
  }

  /// The latest one, which may be gone; null before the first.
  Handle player() const {
    const std::lock_guard lock(mutex_);
    return handle_;
  }

 private:
  mutable std::mutex mutex_;
  Handle handle_;
};

} // namespace boyd
