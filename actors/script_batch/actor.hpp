#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/core/dispatch.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

#include <memory>
#include <vector>

namespace boyd {

/// Several attempts are over.
struct runs_finished : message {
  std::vector<run_finished> runs;
};

/// Where the attempts' ends are reported.
using batch_sink_actor = caf::typed_actor<
    // Several attempts are over.
    caf::reacts_to<runs_finished>>;

/// One attempt of a batch, with the scripted answer it gives.
struct scripted_run {
  std::shared_ptr<const claimed_dispatch> work;
  const config::script_executor::answer* answer = nullptr;
};

/// Attempts of one agent that are over in the moment they begin (exec::is_immediate).
struct batch_order {
  node_context_ptr context;
  configuration_ptr configuration; ///< keeps `agent` and the answers alive
  const config::agent* agent = nullptr;
  std::vector<scripted_run> runs;
  batch_sink_actor sink;
};

/// Starts an execution worker for a whole batch: an actor for each would cost more than the runs.
/// It reports one runs_finished to the sink and ends; when it crashes instead, its DOWN says so,
/// and all of its attempts are to be tried again. There is nothing that could be cancelled.
executor_actor spawn_script_batch(caf::actor_system& system, batch_order order);

} // namespace boyd
