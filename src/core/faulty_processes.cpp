#include "boyd/core/faulty_ports.hpp"
#include "boyd/core/signal_stack.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
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

/// One process and what of it is still on its way.
class late_process : public std::enable_shared_from_this<late_process> {
 public:
  late_process(process_events inner, const process_points& points)
      : inner_(std::move(inner)), points_(points) {}

  void on_output(output_stream stream, std::string_view bytes) {
    const auto met = any_armed() ? meet(points_.output) : result<effect>{};
    if (met && met->drops())
      return;
    if (met && met->corrupts())
      return pass(0ms, [this, stream, changed = damaged(bytes, met->salt)] {
        inner_.on_output(stream, changed);
      });
    const auto delay = met ? met->delay : 0ms;
    if (delay == 0ms && !is_behind())
      return inner_.on_output(stream, bytes);
    pass(delay, [this, stream, kept = std::string(bytes)] { inner_.on_output(stream, kept); });
  }

  void on_exit(const process_exit& e) {
    const auto met = any_armed() ? meet(points_.exit) : result<effect>{};
    if (met && met->drops())
      return;
    pass(met ? met->delay : 0ms, [this, e] { inner_.on_exit(e); });
  }

 private:
  bool is_behind() {
    const std::lock_guard lock(mutex_);
    return late_ > 0;
  }

  /// Nothing overtakes what is late.
  void pass(milliseconds delay, std::function<void()> what) {
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

  process_events inner_;
  process_points points_;
  std::mutex mutex_;
  std::size_t late_ = 0;
};

} // namespace

process_events watched(process_events events, const process_points& points) {
  auto all = std::make_shared<late_process>(std::move(events), points);
  process_events out;
  out.on_output = [all](output_stream stream, std::string_view bytes) {
    all->on_output(stream, bytes);
  };
  out.on_exit = [all](const process_exit& e) { all->on_exit(e); };
  return out;
}

} // namespace boyd::faults
