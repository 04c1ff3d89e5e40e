#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/clock.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/local_actor.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::test {

/// A clock that follows the coordinator's virtual one. `jump` moves the time of day alone, as an
/// operator or NTP does.
class virtual_clock final : public clock_port {
 public:
  utc_time now() const override { return start + elapsed_ + jumped_; }
  steady_time steady() const override { return steady_time{milliseconds{1'000'000}} + elapsed_; }

  void jump(milliseconds by) { jumped_ += by; }
  void advance(milliseconds by) { elapsed_ += by; }

  /// 2026-02-13T10:00:00Z
  static constexpr utc_time start{milliseconds{1'770'976'800'000}};

 private:
  milliseconds elapsed_{0};
  milliseconds jumped_{0};
};

/// What a request was answered; nothing yet: it waits.
template <class T>
struct asked {
  std::shared_ptr<std::optional<result<T>>> slot = std::make_shared<std::optional<result<T>>>();
  std::shared_ptr<std::optional<caf::error>> failure =
      std::make_shared<std::optional<caf::error>>();

  bool answered() const { return slot->has_value(); }
  /// CAF's own error instead of an answer: nobody there, or a promise that was dropped.
  bool failed() const { return failure->has_value(); }
  bool ok() const { return answered() && slot->value().has_value(); }
  const T& value() const { return slot->value().value(); }
  const error& why() const { return slot->value().error(); }
};

/// Real actors, one thread, virtual time: caf::scheduler::test_coordinator with what a test or a
/// simulation needs around it. Actors run only inside `run_all` and `advance`. Whoever spawns an
/// actor that does not end by itself hands it to `own`, or ends it before the end of the scope.
class deterministic_system {
 public:
  /// Chooses the index of the next job out of `count`; for seeded schedules.
  using chooser = std::function<std::size_t(std::size_t count)>;

  /// Several systems may follow one clock; whoever advances it tells the others to `catch_up`.
  explicit deterministic_system(
      std::shared_ptr<virtual_clock> clock = std::make_shared<virtual_clock>())
      : clock_(std::move(clock)),
        system_(std::make_unique<caf::actor_system>(configure(configuration_))),
        scheduler_(dynamic_cast<caf::scheduler::test_coordinator*>(&system_->scheduler())),
        seen_(clock_->steady()) {}

  deterministic_system(const deterministic_system&) = delete;
  deterministic_system& operator=(const deterministic_system&) = delete;

  ~deterministic_system() { shut_down(); }

  /// Kills what is owned, newest first, and lets nothing that is timed happen any more. For
  /// fixtures whose ports end before the system does; the destructor's, too.
  void shut_down() {
    outside = nullptr;
    next_outside = nullptr;
    halted_ = false;
    for (auto it = owned_.rbegin(); it != owned_.rend(); ++it)
      kill(*it);
    owned_.clear();
    run_all();
    scheduler().clock().cancel_all();
    run_all();
  }

  caf::actor_system& system() { return *system_; }
  const std::shared_ptr<virtual_clock>& clock() const { return clock_; }

  caf::scheduler::test_coordinator& scheduler() { return *scheduler_; }

  /// Nothing runs any more until the shutdown: for whoever lets the power go in the middle.
  void halt() { halted_ = true; }
  bool halted() const { return halted_; }

  /// Messages that were handled.
  std::uint64_t handled() const { return handled_; }

  /// Ends `handle` with the system; returns it.
  template <class Handle>
  Handle own(Handle handle) {
    owned_.push_back(caf::actor_cast<caf::actor>(handle));
    return handle;
  }

  /// Exits `handle` at once, past its mail.
  template <class Handle>
  void kill(const Handle& handle, caf::exit_reason why = caf::exit_reason::kill) {
    auto to = caf::actor_cast<caf::actor>(handle);
    if (to)
      caf::anon_send<caf::message_priority::high>(to, caf::exit_msg{to.address(), why});
  }

  /// Who runs next; empty: first come, first served.
  void choose_by(chooser c) { choose_ = std::move(c); }

  /// Called between two jobs and after every step of time: a simulated runner delivers its events
  /// here. Returns how much it did; `next_outside` says when it has something to do.
  std::function<std::size_t()> outside;
  std::function<std::optional<steady_time>()> next_outside;

  /// Runs one job; false when there is none.
  bool run_one() {
    auto& jobs = scheduler().jobs;
    if (jobs.empty() || halted_)
      return false;
    if (choose_) {
      const auto i = static_cast<std::ptrdiff_t>(choose_(jobs.size()) % jobs.size());
      std::rotate(jobs.begin(), jobs.begin() + i, jobs.begin() + i + 1);
    }
    const auto* ran = jobs.front();
    scheduler().run_once();
    ++handled_;
    catch_up(); // a slow call may have taken time
    // The coordinator would let an actor go on until its mailbox is empty; in production others
    // get their turn.
    if (!choose_ && !jobs.empty() && jobs.front() == ran)
      std::rotate(jobs.begin(), jobs.begin() + 1, jobs.end());
    return true;
  }

  /// Runs jobs at the present moment until there are none, at most `most`; returns how many.
  std::size_t run_all(std::size_t most = 1'000'000) {
    std::size_t n = 0;
    while (n < most) {
      if (run_one())
        ++n;
      else if (halted_ || !outside || outside() == 0)
        break;
    }
    return n;
  }

  /// Lets `by` pass, stopping at every moment at which something is due.
  void advance(milliseconds by) {
    const auto end = clock_->steady() + by;
    run_all();
    while (clock_->steady() < end && !halted_) {
      const auto next = std::min(end, next_due().value_or(end));
      clock_->advance(std::max(next, clock_->steady() + milliseconds{1}) - clock_->steady());
      catch_up();
      run_all();
    }
  }

  /// As `advance`, but actors of that name get no turn and nothing comes from outside: as if one of
  /// their handlers did not end. Empty: all get theirs.
  void advance_without(std::string_view name, milliseconds by) {
    if (name.empty())
      return advance(by);
    const auto gets_turn = [&](caf::resumable* job) {
      const auto* actor = dynamic_cast<caf::local_actor*>(job);
      return actor == nullptr || std::string_view(actor->name()) != name;
    };
    const auto run_others = [&] {
      auto& jobs = scheduler().jobs;
      for (auto next = std::ranges::find_if(jobs, gets_turn); next != jobs.end();
           next = std::ranges::find_if(jobs, gets_turn)) {
        std::rotate(jobs.begin(), next, next + 1);
        scheduler().run_once();
      }
    };
    run_others();
    for (milliseconds passed{0}; passed < by; passed += milliseconds{1000}) {
      clock_->advance(milliseconds{1000});
      catch_up();
      run_others();
    }
  }

  /// When something happens by itself: a timer, or the outside.
  std::optional<steady_time> next_due() {
    std::optional<steady_time> next;
    const auto& due = scheduler().clock().schedule();
    if (!due.empty())
      next = moment_of(due.begin()->first);
    if (next_outside)
      if (const auto at = next_outside())
        next = std::min(next.value_or(*at), *at);
    return next;
  }

  /// Fires the timers up to the clock's time.
  void catch_up() {
    const auto now = clock_->steady();
    if (now == seen_)
      return;
    const auto by = now - std::exchange(seen_, now);
    scheduler().clock().advance_time(by);
  }

  /// Asks without waiting: the answer appears after `run_all` or `advance`.
  template <class T, class Handle, class Message>
  asked<T> ask(const Handle& to, Message message, milliseconds limit = std::chrono::hours{24}) {
    asked<T> answer;
    system_->spawn([=](caf::event_based_actor* self) {
      self->request(to, limit, message)
          .then([answer](result<T>& r) { *answer.slot = std::move(r); },
                [answer](caf::error& e) { *answer.failure = e; });
    });
    return answer;
  }

  /// Asks and runs until nothing is left to do now.
  template <class T, class Handle, class Message>
  asked<T> ask_now(const Handle& to, Message message) {
    auto answer = ask<T>(to, std::move(message));
    run_all();
    return answer;
  }

  /// Whether the actor has ended.
  template <class Handle>
  static bool ended(const Handle& handle) {
    auto* a = caf::actor_cast<caf::abstract_actor*>(handle);
    return static_cast<caf::monitorable_actor*>(a)->getf(caf::abstract_actor::is_terminated_flag);
  }

 private:
  static caf::actor_system_config& configure(caf::actor_system_config& c) {
    c.set("scheduler.policy", caf::atom("testing"));
    c.set("logger.verbosity", caf::atom("quiet"));
    return c;
  }

  steady_time moment_of(caf::actor_clock::time_point t) {
    const auto wait = t - scheduler().clock().now();
    return clock_->steady() + std::max(std::chrono::ceil<milliseconds>(wait), milliseconds{0});
  }

  caf::actor_system_config configuration_;
  std::shared_ptr<virtual_clock> clock_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* scheduler_; ///< the system's
  steady_time seen_;                            ///< up to here timers have fired
  std::uint64_t handled_ = 0;
  bool halted_ = false;
  std::vector<caf::actor> owned_;
  chooser choose_;
};

} // namespace boyd::test
