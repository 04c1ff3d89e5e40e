#pragma once

#include "actors/conversation/actor.hpp"
#include "actors/planner/actor.hpp"
#include "actors/planner/core.hpp"
#include "actors/supervision/helpers.hpp"
#include "boyd/plan/llm_planner.hpp"
#include "boyd/plan/llm_reducer.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Private to actors/planner: what its files share.
namespace boyd::planning {

/// The store did not take a record: again.
struct record_again : message {
  std::uint64_t number = 0;
};

using planner_impl = planner_actor::extend<caf::reacts_to<record_again>,
                                           caf::replies_to<ping>::with<pong>, caf::reacts_to<pong>>;

/// A question of a kernel that is under way. A kernel has at most one of each kind.
struct question {
  std::uint64_t number = 0; ///< of this planner; a late answer has another
  configuration_ptr configuration;
  const config::kernel* kernel = nullptr;
  std::string cycle_id;
  conversation_actor conversation;               ///< null while nobody is asked
  std::function<void(const advice_reply&)> done; ///< takes what it says
  agent_decision row;                            ///< the record, once it is known
  std::function<void()> end;                     ///< answers; called when the record is durable
};

/// A plan that waits for a model.
struct plan_question : question {
  plan::plan_input input;
  plan::plan_output fixed;
  utc_time asked_at{}; ///< of the latest question before this one
  milliseconds limit{0};
  std::vector<caf::typed_response_promise<result<plan::plan_output>>> waiting;
};

/// Outcomes that wait for a model's words.
struct reduce_question : question {
  std::vector<plan::told_outcome> outcomes;
  std::vector<caf::typed_response_promise<result<reduction>>> waiting;
};

struct planner_state {
  planner_parts parts;
  std::map<std::string, plan_question> plans; ///< by kernel
  std::map<std::string, reduce_question> reductions;
  std::uint64_t questions = 0;
  /// Until their end, also of those whose answer nobody awaits any more.
  helper_pings conversations;
  static inline const char* name = "planner";
};

using self_pointer = planner_impl::stateful_pointer<planner_state>;

// questions.cpp
/// Asks a model; `done` has its answer, or why there is none.
void put_question(self_pointer self, question& q, const config::adviser& settings,
                  std::string_view voice, std::vector<model::message_json> messages,
                  std::string schema, milliseconds limit,
                  std::function<void(const advice_reply&)> done);
/// A conversation has ended; without an answer its question has none.
void conversation_down(self_pointer self, const caf::actor_addr& who);
/// Writes q.row down and calls q.end; repeated until the store has it.
void keep_record(self_pointer self, std::uint64_t number);
question* find_question(self_pointer self, std::uint64_t number);

// planning.cpp
caf::typed_response_promise<result<plan::plan_output>>
plan_with_model(self_pointer self, plan_request& request, const config::kernel& kernel);
void stop_plan(self_pointer self, const std::string& kernel_id);

// reducing.cpp
caf::typed_response_promise<result<reduction>> reduce_with_model(self_pointer self,
                                                                 reduce_request& request);
void stop_reduction(self_pointer self, const std::string& kernel_id);

} // namespace boyd::planning
