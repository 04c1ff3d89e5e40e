#include "actors/script_batch/actor.hpp"

#include "actors/executor/options.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/exec/immediate.hpp"
#include "boyd/exec/redact_outcome.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/clock.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <utility>

namespace boyd {

namespace {

struct run_all : message {};

using batch_impl = executor_actor::extend<caf::reacts_to<run_all>>;

struct batch_state {
  batch_order order;
  static inline const char* name = "script_batch";
};

using self_pointer = batch_impl::stateful_pointer<batch_state>;

result<run_outcome> answer(const batch_order& order, const scripted_run& run) {
  if (auto passed = faults::pass("executor.run"); !passed)
    return fail(std::move(passed.error()));
  auto options = options_for(*order.context, *order.agent, run.work->row);
  options.work = *run.answer;
  return exec::run_immediate(std::move(options), order.context->ports.clock->steady());
}

run_outcome outcome_of(const batch_order& order, const scripted_run& run) {
  const auto& secrets = order.configuration->secrets;
  auto done = answer(order, run);
  if (done)
    return exec::without_secrets(std::move(*done), secrets);
  run_outcome failed;
  failed.execution = execution_verdict::failed;
  failed.failure = failure_class::transient;
  failed.error = to_string(done.error());
  failed.summary = failed.error;
  failed.session_id = session_of(run.work->row);
  return exec::without_secrets(std::move(failed), secrets);
}

batch_impl::behavior_type batch_behavior(self_pointer self, batch_order order) {
  install_handlers(self, "script_batch");
  self->state.order = std::move(order);
  self->send(self, run_all{});
  return {
      [](cancel_run&) {
        // Over before it could be cancelled: the end is on its way.
      },
      [self](run_all&) {
        const auto& o = self->state.order;
        runs_finished report;
        report.runs.reserve(o.runs.size());
        for (const auto& run : o.runs)
          report.runs.push_back(
              {{}, run.work->row.dispatch_id, run.work->row.fence, outcome_of(o, run)});
        if (!faults::lost("dispatcher.finished"))
          self->send(o.sink, std::move(report));
        self->quit();
      },
  };
}

} // namespace

executor_actor spawn_script_batch(caf::actor_system& system, batch_order order) {
  return system.spawn(batch_behavior, std::move(order));
}

} // namespace boyd
