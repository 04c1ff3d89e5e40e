#pragma once

#include "actors/support/frugal_clock.hpp"
#include "actors/support/frugal_sharing.hpp"
#include "boyd/core/signal_stack.hpp"

#include <caf/detail/set_thread_name.hpp>
#include <caf/scheduler/coordinator.hpp>

#include <thread>

namespace boyd {

/// CAF's scheduler, whose threads are woken rarely: config.load<frugal_scheduler>(). The thread of
/// the clock that CAF's coordinator brings along has nothing to do and sleeps.
class frugal_scheduler final : public caf::scheduler::coordinator<frugal_sharing> {
 public:
  using super = caf::scheduler::coordinator<frugal_sharing>;

  explicit frugal_scheduler(caf::actor_system& system) : super(system) {}

  static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>) {
    return new frugal_scheduler(system); // owned by the system
  }

  frugal_clock& clock() noexcept override { return clock_; }

 protected:
  void start() override {
    timer_ = std::thread([this] {
      give_signal_stack();
      caf::detail::set_thread_name("boyd.clock");
      system().thread_started();
      clock_.run();
      system().thread_terminates();
    });
    super::start();
  }

  void stop() override {
    super::stop();
    clock_.end();
    timer_.join();
    clock_.cancel_all();
  }

 private:
  frugal_clock clock_;
  std::thread timer_;
};

} // namespace boyd
