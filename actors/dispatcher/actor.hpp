#pragma once

#include "actors/dispatcher/unknown_rows.hpp"
#include "actors/support/node_context.hpp"
#include "actors/support/run_services.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

#include <optional>
#include <string>

namespace boyd {

/// Hears that a dispatcher is empty.
using drain_listener_actor = caf::typed_actor<
    // A dispatcher is empty.
    caf::reacts_to<drained>>;

/// The grace of a drain order to the dispatcher of an agent that a reload has removed: what runs
/// ends within its own timeout.
inline constexpr milliseconds unlimited_grace = milliseconds::max();

/// What a dispatcher is made of.
struct dispatcher_parts {
  node_context_ptr context;
  configuration_ptr configuration;
  std::string kernel_id;
  std::string agent_id;
  run_services services;
  drain_listener_actor pool;
  /// Whose rows are given back first: those of the one that it replaces; null: there is none.
  std::optional<unknown_rows> left{};
};

/// Starts the dispatcher of one agent.
dispatcher_actor spawn_dispatcher(caf::actor_system& system, dispatcher_parts parts);

} // namespace boyd
