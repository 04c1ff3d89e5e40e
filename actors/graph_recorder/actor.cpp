#include "actors/graph_recorder/actor.hpp"

#include "actors/graph_recorder/performer.hpp"
#include "actors/keeper/plain.hpp"
#include "actors/support/fault_context.hpp"

#include <caf/actor_system.hpp>

#include <memory>
#include <utility>

namespace boyd {

graph_recorder_actor spawn_graph_recorder(caf::actor_system& system, node_context_ptr context) {
  keeper_parts<graph_request, graph_reply> parts;
  parts.name = "graph_recorder";
  parts.clock = context->ports.clock;
  parts.random = context->ports.random;
  parts.restarts = context->restarts;
  parts.roll = context->workers;
  parts.detached = context->detached_workers;
  parts.probe_interval = context->housekeeping.probe;
  parts.idle_probe_interval = context->housekeeping.idle_probe;
  parts.make_performer = [own = with_fault_points(context, faults::graph_recorder_files)] {
    using made = session_performer<graph_session, graph_request, graph_reply>;
    return std::make_unique<made>(own);
  };
  return system.spawn(plain_keeper<graph_recorder_actor, graph_request, graph_reply>,
                      std::move(parts));
}

} // namespace boyd
