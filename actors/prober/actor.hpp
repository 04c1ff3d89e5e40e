#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/model/probe.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include <string>
#include <vector>

namespace boyd {

/// Go on and find out.
struct probe_query : message {};

/// What a prober found.
struct probe_reply : message {
  std::vector<model::probe_check> checks; ///< secrets are redacted
  model::found_capabilities found;
  bool answers = false; ///< a small chat went well
  model::usage used;
  std::int64_t cost = 0; ///< millionths of a US dollar
  std::string unkept;    ///< why the findings could not be kept; empty: they are
};

/// Finds out what one provider can do.
using prober_actor = caf::typed_actor<
    // Once; the prober ends with its answer.
    caf::replies_to<probe_query>::with<answers<probe_reply>>>;

/// What to probe, and with what.
struct probe_order {
  node_context_ptr context;
  configuration_ptr configuration;
  config::provider provider;
  std::string model;
  store_actor store;
  workspace_actor workspace;
  caf::actor_addr asker; ///< when it ends, so does the prober
};

/// Starts a prober: event-driven, no thread of its own. Each call of a model is reserved and
/// settled as any other, under the kernel "boyd", agent "doctor", and counts for the node's day. It
/// takes no place at the governor: whoever asks wants to know how the endpoint is now. What it
/// finds is kept as a fact of the store, by model.
prober_actor spawn_prober(caf::actor_system& system, probe_order order);

} // namespace boyd
