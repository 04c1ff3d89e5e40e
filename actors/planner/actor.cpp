#include "actors/planner/actor.hpp"

#include "actors/support/handlers.hpp"
#include "boyd/core/fault_points.hpp"
#include "boyd/plan/static_planner.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <utility>

namespace boyd {

namespace {

struct planner_state {
  static inline const char* name = "planner";
};

result<plan::plan_output> decide(const plan_request& request) {
  const auto* kernel =
      request.configuration ? request.configuration->find_kernel(request.kernel_id) : nullptr;
  if (kernel == nullptr)
    return fail(errc::not_found, "no such kernel in the configuration", request.kernel_id);
  if (!request.input.make_id)
    return fail(errc::invalid_argument, "a plan needs a source of ids", request.kernel_id);
  if (auto passed = faults::pass("planner.plan"); !passed)
    return fail(std::move(passed.error()));
  return plan::plan_static(*kernel, request.input);
}

planner_actor::behavior_type planner_behavior(planner_actor::stateful_pointer<planner_state> self) {
  install_handlers(self, "planner");
  return {
      [](plan_request& request) { return decide(request); },
      [](health_query&) -> result<part_health> { return part_health{}; },
  };
}

} // namespace

planner_actor spawn_planner(caf::actor_system& system, node_context_ptr /*context*/) {
  return system.spawn(planner_behavior);
}

} // namespace boyd
