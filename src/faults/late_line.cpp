#include "late_line.hpp"

#include "boyd/core/signal_stack.hpp"
#include "boyd/faults/points.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <thread>
#include <utility>

namespace boyd::faults {

namespace {

using clock = std::chrono::steady_clock;

/// Delivers what is late, in the order in which it became late. Its thread starts with the first
/// one. Threads: any.
class late_deliveries {
 public:
  late_deliveries() = default;
  late_deliveries(const late_deliveries&) = delete;
  late_deliveries& operator=(const late_deliveries&) = delete;

  ~late_deliveries() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable())
      thread_.join();
  }

  void add(milliseconds delay, std::function<void()> what) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({clock::now() + delay, disarmings(), std::move(what)});
    if (!thread_.joinable())
      thread_ = std::thread([this] { run(); });
    changed_.notify_one();
  }

 private:
  struct delivery {
    clock::time_point due;
    std::uint64_t armed_at = 0; ///< as `disarmings` said
    std::function<void()> what;
  };

  void run() {
    give_signal_stack();
    // The node's end need not wait for what is late.
    constexpr milliseconds longest_look = 100ms;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (stopping_)
        return;
      const auto left = std::chrono::ceil<milliseconds>(waiting_.front().due - clock::now());
      if (const auto since = waiting_.front().armed_at; left > 0ms && disarmings() == since) {
        lock.unlock();
        wait(std::min(left, longest_look), since);
        lock.lock();
        continue;
      }
      const auto what = std::move(waiting_.front().what);
      waiting_.pop_front();
      lock.unlock();
      what();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<delivery> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

late_deliveries& late() {
  static late_deliveries of_process;
  return of_process;
}

} // namespace

bool late_line::is_behind() {
  const std::lock_guard lock(mutex_);
  return late_ > 0;
}

void late_line::pass(milliseconds delay, std::function<void()> what) {
  {
    const std::lock_guard lock(mutex_);
    if (delay > 0ms || late_ > 0) {
      ++late_;
      return late().add(delay, [self = shared_from_this(), what = std::move(what)] {
        what();
        const std::lock_guard done(self->mutex_);
        --self->late_;
      });
    }
  }
  what();
}

} // namespace boyd::faults
