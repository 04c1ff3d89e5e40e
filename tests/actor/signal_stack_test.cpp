#include "apps/boyd/signal_stack_hook.hpp"
#include "support/pch.hpp"
#include "support/sanitized.hpp"
#include "support/telling.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>

#include <csignal>
#include <cstddef>
#include <limits>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::signal_stack_test {

namespace {

constexpr int told = 42;

void on_overflow(int) {
  ::_exit(told);
}

/// Until the stack is full.
[[gnu::noinline]] std::size_t dig(std::size_t depth) {
  constexpr std::size_t page = 4096;
  volatile unsigned char room[page]{};
  room[depth % page] = 1;
  return depth == std::numeric_limits<std::size_t>::max() ? 0 : dig(depth + 1) + room[0];
}

enum class place { scheduler, own_thread, caller };

/// A process of its own that overflows there; how it ended, as from wait.
int end_of(place where) {
  const auto child = ::fork();
  if (child != 0) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
  }
  struct ::sigaction action {};
  action.sa_handler = on_overflow;
  action.sa_flags = SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
  give_signal_stack();
  if (where == place::caller)
    ::_exit(dig(0) > 0 ? 1 : 2);
  caf::actor_system_config configuration;
  configuration.set("scheduler.max-threads", 2);
  configuration.add_thread_hook<app::signal_stack_hook>();
  caf::actor_system system(configuration);
  const auto overflow = [](caf::event_based_actor*) { static_cast<void>(dig(0)); };
  if (where == place::scheduler)
    system.spawn(overflow);
  else
    system.spawn<caf::detached>(overflow);
  system.await_all_actors_done();
  ::_exit(1);
}

} // namespace

TEST_CASE("case 25 poison-segv: every thread can tell that its stack has overflowed",
          "[signal_stack]") {
  if (test::sanitized())
    return test::tell_skipped("an overflow of a stack", "a sanitizer has its own handler");
  for (const auto where : {place::caller, place::scheduler, place::own_thread}) {
    const int status = end_of(where);
    INFO("place " << static_cast<int>(where) << ", status " << status);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == told);
  }
}

} // namespace boyd::signal_stack_test
