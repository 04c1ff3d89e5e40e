#include "http_client.hpp"

#include "../signals_blocked.hpp"
#include "boyd/core/signal_stack.hpp"
#include "engine_internal.hpp"
#include "request_internal.hpp"
#include "transfer_internal.hpp"

#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace boyd::adapters {

namespace {

using curl_detail::checked_request;
using curl_detail::engine;
using curl_detail::transfer;

/// After so long without a request the connections and libcurl's memory are given back.
constexpr milliseconds idle_end = 2min;

class client final : public http_client {
 public:
  explicit client(http_client_options options) : options_(std::move(options)) {}

  ~client() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      tell_thread();
    }
    if (thread_.joinable())
      thread_.join();
  }

  http_handle start(http_request request, http_events events) override {
    auto checked = curl_detail::check_request(std::move(request));
    http_handle handle = 0;
    const auto taken = checked ? take(std::move(*checked), events, handle)
                               : result<void>(fail(std::move(checked.error())));
    if (!taken && events.on_end)
      events.on_end(taken);
    return handle;
  }

  void cancel(http_handle handle) override {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(handle);
    if (found == live_.end() || std::exchange(found->second, true))
      return;
    commands_.cancelled.push_back(handle);
    tell_thread();
  }

  std::size_t running() const override {
    const std::lock_guard lock(mutex_);
    return live_.size();
  }

 private:
  /// What the thread is to do. Bounded by the requests under way: each is in each list once at
  /// most.
  struct commands {
    std::vector<std::unique_ptr<transfer>> started;
    std::vector<http_handle> cancelled;
    bool empty() const { return started.empty() && cancelled.empty(); }
  };

  /// The request is the thread's from here on; `events` are left when it is refused.
  result<void> take(checked_request request, http_events& events, http_handle& handle) {
    const std::lock_guard lock(mutex_);
    handle = ++last_;
    if (ending_)
      return fail(errc::cancelled, "the HTTP client is stopping", request.address.origin());
    if (live_.size() >= options_.most_requests)
      return fail(errc::overloaded,
                  std::to_string(options_.most_requests) + " requests are already in progress",
                  request.address.origin());
    if (!thread_.joinable()) {
      try {
        // SIGPIPE, too: OpenSSL raises it on a connection that is gone, and libcurl holds it back
        // only without CURLOPT_NOSIGNAL.
        const signals_blocked scope;
        thread_ = std::thread([this] { run(); });
      } catch (const std::system_error& e) {
        return fail(errc::overloaded, std::string("cannot start a thread: ") + e.what(),
                    request.address.origin());
      }
    }
    live_.emplace(handle, false);
    commands_.started.push_back(std::make_unique<transfer>(
        handle, std::move(request), std::move(events), curl_detail::clock::now()));
    tell_thread();
    return {};
  }

  /// Under the lock. One wake-up for all that comes until the thread looks.
  void tell_thread() {
    if (std::exchange(told_, true))
      return;
    if (waker_ >= 0)
      engine::wake(waker_);
    else
      changed_.notify_one();
  }

  void forget(http_handle handle) {
    const std::lock_guard lock(mutex_);
    live_.erase(handle);
  }

  void run() {
    give_signal_stack();
    while (wait_for_work()) {
      auto made = engine::make(options_.ca_file, [this](http_handle h) { forget(h); });
      if (made)
        serve(**made);
      else
        refuse(made.error());
    }
  }

  /// Without an engine; false at the end.
  bool wait_for_work() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ending_ || !commands_.empty(); });
    return !ending_ || !commands_.empty();
  }

  /// Ends what has come meanwhile: there is no engine.
  void refuse(const error& why) {
    commands now;
    {
      const std::lock_guard lock(mutex_);
      now = std::exchange(commands_, {});
      told_ = false;
    }
    for (const auto& t : now.started) {
      forget(t->handle());
      t->end(fail(why));
    }
  }

  /// Until the end, or until there has been nothing to do for long.
  void serve(engine& e) {
    idle_ = false;
    for (;;) {
      commands now;
      bool ends = false;
      {
        const std::lock_guard lock(mutex_);
        now = std::exchange(commands_, {});
        told_ = false;
        ends = ending_;
        const bool stays = !ends && (!idle_ || !now.empty() || e.size() > 0);
        waker_ = stays ? e.waker() : -1;
        if (!stays && now.empty() && e.size() == 0)
          return;
      }
      for (auto& t : now.started)
        e.add(std::move(t));
      e.cancel(now.cancelled);
      if (ends)
        e.cancel_all();
      else
        look(e);
    }
  }

  void look(engine& e) {
    const auto before = curl_detail::clock::now();
    const bool nothing = e.size() == 0;
    e.run_once(idle_end);
    const bool waited = curl_detail::clock::now() - before >= idle_end;
    idle_ = nothing && waited && e.size() == 0;
  }

  const http_client_options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  commands commands_;
  std::unordered_map<http_handle, bool> live_; ///< whether its cancellation is on its way
  http_handle last_ = 0;
  bool told_ = false;
  bool ending_ = false;
  int waker_ = -1; ///< of the engine, while it lives
  std::thread thread_;
  bool idle_ = false; ///< the thread alone
};

} // namespace

std::shared_ptr<http_client> make_http_client(http_client_options options) {
  return std::make_shared<client>(std::move(options));
}

} // namespace boyd::adapters
