#pragma once

#include "actors/support/frugal_sharing.hpp"

#include <caf/detail/thread_safe_actor_clock.hpp>

#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <utility>

namespace boyd {

/// The clock of CAF's scheduler, but for one thing: an actor that ends is told to the clock's
/// thread only when it ever had a timeout. CAF tells it of each, through a queue of 64 places that
/// holds up whoever finds it full: attempts begin and end by the ten thousand a second, and a
/// script's has no timeout. Everything else is CAF's clock's work, on its own thread.
///
/// Derived from a class of CAF's namespace `detail` because a scheduler has to hand out one of that
/// type (caf/scheduler/coordinator.hpp, 0.17.6); nothing of that class is used. Threads: any.
class clock_of_timeouts final : public caf::detail::thread_safe_actor_clock {
 public:
  explicit clock_of_timeouts(caf::detail::thread_safe_actor_clock& real) : real_(real) {}

  time_point now() const noexcept override { return real_.now(); }

  duration_type difference(caf::atom_value measurement, long units, time_point from,
                           time_point to) const noexcept override {
    return real_.difference(measurement, units, from, to);
  }

  void set_ordinary_timeout(time_point due, caf::abstract_actor* self, caf::atom_value type,
                            std::uint64_t id) override {
    note(self);
    real_.set_ordinary_timeout(due, self, type, id);
  }

  void set_multi_timeout(time_point due, caf::abstract_actor* self, caf::atom_value type,
                         std::uint64_t id) override {
    note(self);
    real_.set_multi_timeout(due, self, type, id);
  }

  void set_request_timeout(time_point due, caf::abstract_actor* self, caf::message_id id) override {
    note(self);
    real_.set_request_timeout(due, self, id);
  }

  void cancel_ordinary_timeout(caf::abstract_actor* self, caf::atom_value type) override {
    real_.cancel_ordinary_timeout(self, type);
  }

  void cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) override {
    real_.cancel_request_timeout(self, id);
  }

  /// CAF calls it once, as the actor ends.
  void cancel_timeouts(caf::abstract_actor* self) override {
    if (forget(self))
      real_.cancel_timeouts(self);
  }

  void schedule_message(time_point due, caf::strong_actor_ptr receiver,
                        caf::mailbox_element_ptr content) override {
    real_.schedule_message(due, std::move(receiver), std::move(content));
  }

  void schedule_message(time_point due, caf::group target, caf::strong_actor_ptr sender,
                        caf::message content) override {
    real_.schedule_message(due, std::move(target), std::move(sender), std::move(content));
  }

  void cancel_all() override { real_.cancel_all(); }

 private:
  void note(caf::abstract_actor* self) {
    const std::lock_guard guard(lock_);
    had_timeouts_.insert(self);
  }

  bool forget(caf::abstract_actor* self) {
    const std::lock_guard guard(lock_);
    return had_timeouts_.erase(self) > 0;
  }

  caf::detail::thread_safe_actor_clock& real_;
  std::mutex lock_;
  std::unordered_set<caf::abstract_actor*> had_timeouts_; ///< of actors that live
};

/// CAF's scheduler with our policy and this clock: config.load<frugal_scheduler>().
class frugal_scheduler final : public caf::scheduler::coordinator<frugal_sharing> {
 public:
  using super = caf::scheduler::coordinator<frugal_sharing>;

  explicit frugal_scheduler(caf::actor_system& system) : super(system), clock_(super::clock()) {}

  clock_of_timeouts& clock() noexcept override { return clock_; }

  static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>) {
    return new frugal_scheduler(system);
  }

 private:
  clock_of_timeouts clock_;
};

} // namespace boyd
