#include "actors/planner/actor.hpp"

#include "actors/planner/state.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/faults/points.hpp"

#include <caf/actor_system.hpp>

#include <utility>

namespace boyd {

namespace {

using namespace planning;

using plan_promise = caf::typed_response_promise<result<plan::plan_output>>;

result<const config::kernel*> kernel_of(const plan_request& request) {
  const auto* kernel =
      request.configuration ? request.configuration->find_kernel(request.kernel_id) : nullptr;
  if (kernel == nullptr)
    return fail(errc::not_found, "no such kernel in the configuration", request.kernel_id);
  if (!request.input.make_id)
    return fail(errc::invalid_argument, "a plan needs a source of ids", request.kernel_id);
  if (auto passed = faults::pass("planner.plan"); !passed)
    return fail(std::move(passed.error()));
  return kernel;
}

plan_promise decide(self_pointer self, plan_request& request) {
  const auto kernel = kernel_of(request);
  const bool asks = !request.dry && !request.input.only;
  if (kernel && asks && (*kernel)->plan.type == config::planner::type_t::llm)
    return plan_with_model(self, request, **kernel);
  auto promise = self->make_response_promise<result<plan::plan_output>>();
  if (kernel)
    promise.deliver(result<plan::plan_output>(plan::plan_static(**kernel, request.input)));
  else
    promise.deliver(result<plan::plan_output>(fail(kernel.error())));
  return promise;
}

planner_impl::behavior_type planner_behavior(self_pointer self, planner_parts parts) {
  install_handlers(self, "planner");
  self->set_down_handler([self](caf::down_msg& m) { conversation_down(self, m.source); });
  self->state.parts = std::move(parts);
  return {
      [self](plan_request& m) { return decide(self, m); },
      [self](reduce_request& m) { return reduce_with_model(self, m); },
      [self](stop_questions& m) {
        if (faults::lost("planner.stop"))
          return;
        stop_plan(self, m.kernel_id);
        stop_reduction(self, m.kernel_id);
      },
      [](health_query&) -> result<part_health> { return part_health{}; },
      [self](record_again& m) { keep_record(self, m.number); },
      [self](ping&) {
        auto& s = self->state;
        return s.conversations.answer(self, s.parts.context->ports.clock->steady());
      },
      [self](pong&) { self->state.conversations.heard(self->current_sender()); },
  };
}

} // namespace

planner_actor spawn_planner(caf::actor_system& system, planner_parts parts) {
  return system.spawn(planner_behavior, std::move(parts));
}

} // namespace boyd
