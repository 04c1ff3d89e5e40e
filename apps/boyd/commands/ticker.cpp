#include "ticker.hpp"

#include "boyd/core/signal_stack.hpp"
#include "boyd/core/time.hpp"

#include <utility>

namespace boyd::app {

namespace {

constexpr milliseconds tick_interval = 1s;

} // namespace

ticker::ticker(std::function<void()> tick)
    : thread_([this, tick = std::move(tick)] {
        give_signal_stack();
        std::unique_lock lock(mutex_);
        while (!ended_.wait_for(lock, tick_interval, [this] { return ends_; }))
          tick();
      }) {}

ticker::~ticker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

} // namespace boyd::app
