#pragma once

#include "actors/dispatcher/services.hpp"
#include "actors/node/context.hpp"
#include "boyd/core/dispatch.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

#include <cstdint>
#include <memory>

namespace boyd {

/// Where an attempt's end is reported.
using run_sink_actor = caf::typed_actor<
    // An attempt is over.
    caf::reacts_to<run_finished>>;

/// One attempt to make.
struct run_order {
  node_context_ptr context;
  configuration_ptr configuration; ///< keeps `agent` alive
  const config::agent* agent = nullptr;
  std::shared_ptr<const claimed_dispatch> work;
  std::uint64_t run_index = 0; ///< earlier runs of this agent: which answer a script gives
  run_services services;
  run_sink_actor sink;
};

/// Starts an execution worker: event-driven, no thread of its own. It reports exactly one
/// run_finished to the sink and ends; when it crashes instead, its DOWN says so. If it is killed,
/// its process group is ended.
executor_actor spawn_executor(caf::actor_system& system, run_order order);

} // namespace boyd
