#pragma once

#include "boyd/core/signal_stack.hpp"

#include <caf/thread_hook.hpp>

namespace boyd::app {

/// Every thread of an actor system can tell of its fault, also of an overflow of its stack.
class signal_stack_hook final : public caf::thread_hook {
 public:
  void init(caf::actor_system&) override {
    // nop
  }
  void thread_started() override { give_signal_stack(); }
  void thread_terminates() override {
    // nop
  }
};

} // namespace boyd::app
