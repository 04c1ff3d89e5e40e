#include "actors/state_writer/actor.hpp"

#include "actors/keeper/plain.hpp"
#include "actors/state_writer/performer.hpp"
#include "actors/support/fault_context.hpp"

#include <caf/actor_system.hpp>

#include <memory>
#include <utility>

namespace boyd {

state_writer_actor spawn_state_writer(caf::actor_system& system, node_context_ptr context,
                                      configuration_ptr configuration) {
  keeper_parts<state_request, state_reply> parts;
  parts.name = "state_writer";
  parts.clock = context->ports.clock;
  parts.random = context->ports.random;
  parts.restarts = context->restarts;
  parts.roll = context->workers;
  parts.worker_intensity = vital_intensity;
  parts.detached = context->detached_workers;
  parts.probe_interval = context->housekeeping.probe;
  parts.idle_probe_interval = context->housekeeping.idle_probe;
  parts.make_performer = [own = with_fault_points(context, faults::state_writer_files),
                          configuration] {
    using made = session_performer<state_session, state_request, state_reply>;
    return std::make_unique<made>(own, configuration);
  };
  return system.spawn(plain_keeper<state_writer_actor, state_request, state_reply>,
                      std::move(parts));
}

} // namespace boyd
