#pragma once

#include "actors/librarian/core.hpp"
#include "actors/support/node_context.hpp"
#include "messages/interfaces.hpp"

#include <caf/replies_to.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// What the librarian's two activities share; included by its own .cpp files only.
namespace boyd::librarian {

using context_promise = caf::typed_response_promise<result<gathered_context>>;
using wake_promise = caf::typed_response_promise<result<wake_results>>;

/// One gathering under way; requests for the same kernel meanwhile share its answer.
struct gathering {
  config::kernel kernel;
  utc_time now{};
  gathered_context reply;
  std::map<std::string, sense_memory> memory;
  std::vector<std::string> fresh; ///< senses that ran now
  std::size_t open = 0;           ///< answers that are still awaited
  std::vector<context_promise> waiting;
};
using gathering_ptr = std::shared_ptr<gathering>;

/// One wake check under way.
struct wake_check {
  config::kernel kernel;
  std::vector<std::string> agent_ids;
  bool by_hand = false;
  utc_time now{};
  wake_results reply;
  std::map<std::string, plan::wake_memory> memory;
  /// For each agent, its newest dispatch when a check last said "changed".
  std::map<std::string, std::string> seen;
  std::map<std::string, std::string> latest; ///< newest dispatch of each agent
  std::vector<store::operation> writes;
  std::size_t open = 0;
  wake_promise promise;
};
using wake_check_ptr = std::shared_ptr<wake_check>;

/// A helper program: it waits for a place, or runs.
struct helper {
  std::uint64_t id = 0;
  program_order order;
  std::function<void(result<program_outcome>)> done;
  std::unique_ptr<program> running{};
};

/// The librarian's own clock: this helper has waited for a place long enough.
struct helper_overdue : message {
  std::uint64_t id = 0;
};

using librarian_impl = librarian_actor::extend<
    // See helper_overdue.
    caf::reacts_to<helper_overdue>,
    // The runner's thread: a helper has ended.
    caf::reacts_to<program_ended>,
    // The librarian's own clock.
    caf::reacts_to<program_look>>;

struct state {
  node_context_ptr context;
  configuration_ptr configuration;
  state_writer_actor state_writer;
  workspace_actor workspace;
  store_actor store;
  std::map<std::string, gathering_ptr> gatherings; ///< by kernel
  std::set<wake_check_ptr> checks;
  std::map<std::uint64_t, helper> running; ///< at most helpers_at_once
  std::deque<helper> waiting;              ///< first come, first served
  std::uint64_t last_helper = 0;
  /// By kernel: what senses said last, for the time when the store is away.
  std::map<std::string, std::map<std::string, sense_memory>> senses;
  std::string last_problem;
  /// By kernel: problems of its latest gathering, which the log has.
  std::map<std::string, std::set<std::string>> told_problems;
  static inline const char* name = "librarian";

  /// Answers everybody who still waits, and ends the programs.
  ~state();
};

using pointer = librarian_impl::stateful_pointer<state>;

/// Runs one helper program of `kernel` as soon as there is a place; `done(result<program_outcome>)`
/// is called once, with `overloaded` when there was none within helper_patience.
void run_helper(pointer self, const config::kernel& kernel, const std::vector<std::string>& argv,
                const config::command_executor& surroundings, const std::string& agent_id,
                milliseconds timeout, std::size_t output_bytes,
                std::function<void(result<program_outcome>)> done);

/// Gives up on a helper that still waits for a place.
void give_up_waiting(pointer self, std::uint64_t id);

/// Writes facts; a failure is logged, for facts are only memory.
void keep_facts(pointer self, std::vector<store::operation> writes);

context_promise gather(pointer self, const gather_context& request);
wake_promise check(pointer self, const check_wake& request);

} // namespace boyd::librarian
