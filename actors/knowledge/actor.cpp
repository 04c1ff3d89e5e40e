#include "actors/knowledge/actor.hpp"

#include "actors/keeper/plain.hpp"
#include "actors/knowledge/performer.hpp"
#include "actors/support/fault_context.hpp"

#include <caf/actor_system.hpp>

#include <memory>
#include <utility>

namespace boyd {

namespace {

knowledge_actor spawn(caf::actor_system& system, const node_context_ptr& context,
                      configuration_ptr configuration, const char* name,
                      knowledge_session::task what) {
  keeper_parts<knowledge_request, knowledge_reply> parts;
  parts.name = name;
  parts.clock = context->ports.clock;
  parts.random = context->ports.random;
  parts.restarts = context->restarts;
  parts.roll = context->workers;
  parts.detached = context->detached_workers;
  parts.probe_interval = context->housekeeping.probe;
  parts.idle_probe_interval = context->housekeeping.idle_probe;
  parts.make_performer = [own = with_fault_points(context, faults::knowledge_files),
                          configuration = std::move(configuration), what] {
    using made = session_performer<knowledge_session, knowledge_request, knowledge_reply>;
    return std::make_unique<made>(own, configuration, what);
  };
  return system.spawn(plain_keeper<knowledge_actor, knowledge_request, knowledge_reply>,
                      std::move(parts));
}

} // namespace

knowledge_actor spawn_knowledge(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration) {
  return spawn(system, context, std::move(configuration), "knowledge",
               knowledge_session::task::all);
}

knowledge_actor spawn_inspector(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration) {
  return spawn(system, context, std::move(configuration), "inspector",
               knowledge_session::task::questions);
}

} // namespace boyd
