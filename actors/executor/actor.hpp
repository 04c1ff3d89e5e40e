#pragma once

#include "actors/executor/action_rate.hpp"
#include "actors/support/node_context.hpp"
#include "actors/support/run_services.hpp"
#include "boyd/core/dispatch.hpp"
#include "messages/interfaces.hpp"

#include <caf/fwd.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace boyd {

/// Where an attempt's end is reported.
using run_sink_actor = caf::typed_actor<
    // An attempt is over.
    caf::reacts_to<run_finished>>;

/// The configuration that is in force now, for actions of runs that began with an earlier one: a
/// stricter policy holds from the next action on. Shared by a dispatcher and its attempts.
class present_agent {
 public:
  present_agent(configuration_ptr c, const config::agent* a)
      : configuration_(std::move(c)), agent_(a) {}

  void replace(configuration_ptr c, const config::agent* a) {
    const std::lock_guard lock(mutex_);
    configuration_ = std::move(c);
    agent_ = a;
  }

  /// Lives as long as it is held.
  std::shared_ptr<const config::agent> get() const {
    const std::lock_guard lock(mutex_);
    return {configuration_, agent_};
  }

  /// Of all attempts of the agent together.
  action_rate& actions() const { return actions_; }
  /// The same of records that the database has anyway.
  action_rate& records() const { return records_; }

 private:
  mutable action_rate actions_;
  mutable action_rate records_;
  mutable std::mutex mutex_;
  configuration_ptr configuration_;
  const config::agent* agent_;
};

/// One attempt to make.
struct run_order {
  node_context_ptr context;
  configuration_ptr configuration; ///< keeps `agent` alive
  const config::agent* agent = nullptr;
  std::shared_ptr<const present_agent> present; ///< null: `agent` itself
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
