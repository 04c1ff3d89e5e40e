#include "actors/probe/actor.hpp"

#include "actors/support/handlers.hpp"
#include "boyd/faults/faulty_ports.hpp"
#include "boyd/faults/points.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <csignal>
#include <optional>
#include <utility>

namespace boyd {

namespace {

struct probe_exited : message {
  process_exit exit;
};

enum class probe_step : std::uint8_t { terminate, kill, give_up };

struct probe_overdue : message {
  probe_step step = probe_step::terminate;
};

using probe_impl = probe_actor::extend<
    // The runner's thread: it is over.
    caf::reacts_to<probe_exited>,
    // The own clock: TERM, KILL, give up.
    caf::reacts_to<probe_overdue>>;

using probe_promise = caf::typed_response_promise<result<probe_outcome>>;

struct probe_state {
  std::shared_ptr<process_runner> processes;
  std::shared_ptr<probe_output> output;
  std::optional<process_handle> running;
  std::optional<probe_promise> promise;
  probe_outcome outcome;
  static inline const char* name = "probe";

  ~probe_state() {
    if (running)
      processes->signal(*running, SIGKILL);
    answer(fail(errc::cancelled, "the program was ended before it answered"));
  }

  void answer(result<probe_outcome> what) {
    if (auto p = std::exchange(promise, std::nullopt))
      p->deliver(std::move(what));
  }
};

using probe_pointer = probe_impl::stateful_pointer<probe_state>;

/// The callbacks hold no strong handle: a probe that was ended is not kept alive by its process.
process_events events_for(probe_pointer self) {
  auto me = caf::actor_cast<caf::actor_addr>(probe_actor(self));
  auto output = self->state.output;
  process_events events;
  events.on_output = [output](output_stream stream, std::string_view bytes) {
    output->append(stream, bytes);
  };
  events.on_exit = [me](const process_exit& exit) {
    if (auto strong = caf::actor_cast<caf::actor>(caf::actor_cast<caf::strong_actor_ptr>(me)))
      caf::anon_send(strong, probe_exited{{}, exit});
  };
  return faults::watched(std::move(events), faults::probe_processes);
}

probe_promise start(probe_pointer self, run_probe& order) {
  auto& state = self->state;
  auto promise = self->make_response_promise<result<probe_outcome>>();
  if (state.output) {
    promise.deliver(result<probe_outcome>(fail(errc::bug, "a probe runs one program only")));
    return promise;
  }
  state.promise = promise;
  state.output = std::make_shared<probe_output>(order.output_bytes);
  state.outcome.timeout = order.timeout;
  result<process_handle> started = 0;
  if (auto passed = faults::pass("probe.start"); !passed)
    started = fail(std::move(passed.error()));
  else
    started = state.processes->start(std::move(order.spec), events_for(self));
  if (!started) {
    state.answer(fail(std::move(started.error())));
    self->quit();
    return promise;
  }
  state.running = *started;
  self->delayed_send(self, order.timeout, probe_overdue{{}, probe_step::terminate});
  return promise;
}

void escalate(probe_pointer self, probe_step step) {
  auto& state = self->state;
  if (!state.running)
    return;
  switch (step) {
  case probe_step::terminate:
    state.outcome.timed_out = true;
    state.processes->signal(*state.running, SIGTERM);
    self->delayed_send(self, limits::term_grace, probe_overdue{{}, probe_step::kill});
    return;
  case probe_step::kill:
    state.processes->signal(*state.running, SIGKILL);
    self->delayed_send(self, limits::term_grace, probe_overdue{{}, probe_step::give_up});
    return;
  case probe_step::give_up:
    state.answer(fail(errc::timed_out, "the program does not end, not even killed"));
    self->quit();
    return;
  }
}

probe_impl::behavior_type probe_behavior(probe_pointer self,
                                         std::shared_ptr<process_runner> processes) {
  install_handlers(self, "probe");
  self->state.processes = std::move(processes);
  return {
      [self](run_probe& order) { return start(self, order); },
      [self](probe_exited& m) {
        auto& state = self->state;
        state.running.reset();
        state.outcome.exit = std::move(m.exit);
        state.output->render(state.outcome);
        state.answer(std::move(state.outcome));
        self->quit();
      },
      [self](probe_overdue& m) { escalate(self, m.step); },
  };
}

} // namespace

probe_actor spawn_probe(caf::actor_system& system, std::shared_ptr<process_runner> processes) {
  return system.spawn(probe_behavior, std::move(processes));
}

} // namespace boyd
