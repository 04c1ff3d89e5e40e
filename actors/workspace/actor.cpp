#include "actors/workspace/actor.hpp"

#include "actors/keeper/plain.hpp"
#include "actors/support/fault_context.hpp"
#include "actors/workspace/performer.hpp"

#include <caf/actor_system.hpp>

#include <memory>
#include <utility>

namespace boyd {

workspace_actor spawn_workspace(caf::actor_system& system, node_context_ptr context) {
  keeper_parts<workspace_request, workspace_reply> parts;
  parts.name = "workspace";
  parts.clock = context->ports.clock;
  parts.random = context->ports.random;
  parts.restarts = context->restarts;
  parts.detached = context->detached_workers;
  parts.probe_interval = context->housekeeping.probe;
  parts.idle_probe_interval = context->housekeeping.idle_probe;
  parts.make_performer = [own = with_fault_points(context, faults::workspace_files)] {
    using made = session_performer<workspace_session, workspace_request, workspace_reply>;
    return std::make_unique<made>(own);
  };
  return system.spawn(plain_keeper<workspace_actor, workspace_request, workspace_reply>,
                      std::move(parts));
}

} // namespace boyd
