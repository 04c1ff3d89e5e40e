#include "boyd/core/limits.hpp"
#include "boyd/core/signal_stack.hpp"
#include "notices.hpp"
#include "session.hpp"
#include "store.hpp"
#include "wakeup.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <libpq-fe.h>
#include <mutex>
#include <poll.h>
#include <string_view>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace boyd::adapters {

namespace {

struct finish {
  void operator()(PGconn* c) const { PQfinish(c); }
};
using connection = std::unique_ptr<PGconn, finish>;

/// Waits on sockets, never on the clock alone: the event descriptor ends every wait. While the
/// process has none to spare it does not listen, and tries again.
class listener final : public wakeup_source {
 public:
  listener(postgres_options options, wake_function wake)
      : options_(std::move(options)), where_(postgres::place(options_)), wake_(std::move(wake)),
        thread_([this] { run(); }) {}

  ~listener() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      const std::uint64_t one = 1;
      while (stop_ >= 0 && ::write(stop_, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    }
    stopped_.notify_one();
    thread_.join();
    if (stop_ >= 0)
      ::close(stop_);
  }

 private:
  enum class event { stopped, ready, timed_out };

  static void hear(void* where, const char* text) {
    postgres::log_notice(*static_cast<const std::string*>(where), text);
  }

  /// `events` on `fd` (-1: none), the stop signal, or the time limit (negative: none).
  event wait(int fd, short events, milliseconds limit) const {
    pollfd fds[2]{{stop_, POLLIN, 0}, {fd, events, 0}};
    const int n = ::poll(fds, fd < 0 ? 1 : 2, static_cast<int>(limit.count()));
    if (fds[0].revents != 0)
      return event::stopped;
    return n > 0 ? event::ready : event::timed_out;
  }

  /// Connects step by step; null when it failed or was stopped.
  connection connect() const {
    const auto conninfo = postgres::connection_string(options_);
    if (!conninfo)
      return {};
    connection c(PQconnectStart(conninfo->c_str()));
    if (c)
      PQsetNoticeProcessor(c.get(), hear, const_cast<std::string*>(&where_));
    auto next = PGRES_POLLING_WRITING;
    while (c && PQstatus(c.get()) != CONNECTION_BAD) {
      const short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
      if (wait(PQsocket(c.get()), events, options_.connect_timeout) != event::ready)
        return {};
      next = PQconnectPoll(c.get());
      if (next == PGRES_POLLING_OK)
        return c;
      if (next == PGRES_POLLING_FAILED)
        return {};
    }
    return {};
  }

  /// Sends LISTEN and waits for its end within the statement timeout.
  bool listen(PGconn* c) const {
    if (PQsendQuery(c, "LISTEN boyd_work") != 1)
      return false;
    bool good = false;
    for (;;) {
      while (PQisBusy(c) != 0) {
        if (wait(PQsocket(c), POLLIN, options_.statement_timeout) != event::ready ||
            PQconsumeInput(c) != 1)
          return false;
      }
      PGresult* r = PQgetResult(c);
      if (r == nullptr)
        return good;
      good = PQresultStatus(r) == PGRES_COMMAND_OK;
      PQclear(r);
    }
  }

  bool is_own(std::string_view payload) const {
    return !options_.speaker.empty() && payload.starts_with(postgres::spoken_by(options_));
  }

  /// Returns true when it was stopped, false when the connection broke.
  bool serve(PGconn* c) const {
    for (;;) {
      if (wait(PQsocket(c), POLLIN, milliseconds{-1}) == event::stopped)
        return true;
      if (PQconsumeInput(c) != 1)
        return false;
      bool any = false;
      bool ask = false;
      std::vector<store::due_agents::row> news;
      while (PGnotify* n = PQnotifies(c)) {
        if (!is_own(n->extra)) {
          any = true;
          const auto rows = postgres::rows_of(n->extra);
          ask = ask || !rows;
          for (const auto& row : rows.value_or(std::vector<store::due_agents::row>{}))
            queue::add_due(news, row);
        }
        PQfreemem(n);
      }
      if (any)
        wake_(ask || news.size() > queue::most_told ? std::vector<store::due_agents::row>{}
                                                    : std::move(news));
    }
  }

  milliseconds backoff(int failures) const {
    constexpr int most_doublings = 10;
    const auto ceiling = std::min(limits::backoff_cap,
                                  limits::backoff_base * (1 << std::min(failures, most_doublings)));
    const double unit = options_.random ? options_.random->unit() : 1.0;
    return milliseconds{static_cast<std::int64_t>(static_cast<double>(ceiling.count()) * unit) + 1};
  }

  /// False: it was stopped before there was a descriptor to be stopped by.
  bool can_be_stopped() {
    std::unique_lock lock(mutex_);
    for (int failures = 0; !stopping_; ++failures) {
      stop_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
      if (stop_ >= 0) {
        if (failures > 0)
          spdlog::info("database {}: wake-ups work again", where_);
        return true;
      }
      if (failures == 0)
        spdlog::warn("database {}: no file descriptor for wake-ups, polling instead: {}; allow "
                     "more open files",
                     where_, std::generic_category().message(errno));
      stopped_.wait_for(lock, backoff(failures), [this] { return stopping_; });
    }
    return false;
  }

  void run() {
    give_signal_stack();
    if (!can_be_stopped())
      return;
    int failures = 0;
    for (;;) {
      if (auto c = connect(); c && listen(c.get())) {
        failures = 0;
        wake_({}); // what was sent before LISTEN is lost
        if (serve(c.get()))
          return;
        spdlog::warn("database {}: wake-ups lost, reconnecting", where_);
      }
      if (wait(-1, 0, backoff(failures)) == event::stopped)
        return;
      ++failures;
    }
  }

  postgres_options options_;
  std::string where_;
  wake_function wake_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  int stop_ = -1; ///< the thread's, once it has one; written under the lock
  std::thread thread_;
};

} // namespace

std::unique_ptr<wakeup_source> make_postgres_wakeups(postgres_options options, wake_function wake) {
  return std::make_unique<listener>(std::move(options), std::move(wake));
}

} // namespace boyd::adapters
