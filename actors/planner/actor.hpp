#pragma once

#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

namespace boyd {

/// What the planner asks.
struct planner_parts {
  node_context_ptr context;
  store_actor store;
  governor_actor governor;
  workspace_actor workspace;
};

/// Starts the planner. It decides from what a request carries. Where the configuration says so it
/// asks a model first: what came of the question stands in the cycle's decisions, under
/// plan::planner_voice or plan::reducer_voice, before it is answered, so that a cycle that is
/// resumed asks no second time.
planner_actor spawn_planner(caf::actor_system& system, planner_parts parts);

} // namespace boyd
