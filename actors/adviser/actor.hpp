#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/model/chat.hpp"
#include "boyd/plan/advice.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include <string>
#include <vector>

namespace boyd {

/// Go on and ask.
struct advice_query : message {};

/// Nobody waits for the answer any more, or not much longer: it comes now, whatever it is.
struct stop_advice : message {};

/// What the model said, or why its word is not there.
struct advice_reply : message {
  plan::advice facts;
  std::string answer; ///< JSON by the schema; empty when facts.fell_back says why
};

/// Asks a model one question.
using adviser_actor = caf::typed_actor<
    // Once; the adviser ends with its answer.
    caf::replies_to<advice_query>::with<answers<advice_reply>>,
    // Answer at once.
    caf::reacts_to<stop_advice>>;

/// One question on the kernel's own behalf.
struct advice_order {
  node_context_ptr context;
  configuration_ptr configuration;           ///< keeps `settings` alive
  const config::adviser* settings = nullptr; ///< whom to ask, and how long
  std::string kernel_id;
  std::string cycle_id;
  std::string voice; ///< plan::planner_voice or plan::reducer_voice: in budgets and costs
  std::vector<model::message_json> messages;
  std::string schema_json;
  milliseconds limit{0}; ///< for all of it, repetitions included
  store_actor store;
  governor_actor governor;
  workspace_actor workspace;
  caf::actor_addr asker; ///< when it ends, so does the adviser, and the call with it
};

/// Starts an adviser: event-driven, no thread of its own. The call takes a place at the governor
/// and is reserved and settled like an agent's, under the voice's own day budget and the node's. A
/// provider that takes no calls at present is not waited for. What was said is appended to
/// HOME/executions/<cycle_id>/<planner|reducer>.jsonl.
adviser_actor spawn_adviser(caf::actor_system& system, advice_order order);

} // namespace boyd
