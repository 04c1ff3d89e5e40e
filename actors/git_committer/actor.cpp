#include "actors/git_committer/actor.hpp"

#include "actors/git_committer/performer.hpp"
#include "actors/keeper/plain.hpp"
#include "actors/support/fault_context.hpp"

#include <caf/actor_system.hpp>

#include <memory>
#include <utility>

namespace boyd {

git_committer_actor spawn_git_committer(caf::actor_system& system, node_context_ptr context,
                                        configuration_ptr configuration) {
  keeper_parts<repository_request, repository_reply> parts;
  parts.name = "git_committer";
  parts.clock = context->ports.clock;
  parts.random = context->ports.random;
  parts.restarts = context->restarts;
  parts.roll = context->workers;
  parts.detached = context->detached_workers;
  parts.probe_interval = context->housekeeping.probe;
  parts.idle_probe_interval = context->housekeeping.idle_probe;
  parts.make_performer = [own = with_fault_points(context, {}), configuration] {
    using made = session_performer<repository_session, repository_request, repository_reply>;
    return std::make_unique<made>(own, configuration);
  };
  return system.spawn(plain_keeper<git_committer_actor, repository_request, repository_reply>,
                      std::move(parts));
}

} // namespace boyd
