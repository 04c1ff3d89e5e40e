#pragma once

#include "actors/gateway/state.hpp"
#include "boyd/effects/effect.hpp"
#include "boyd/state/restarts.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// Private to actors/gateway: what status, agents and readyz are made of.
namespace boyd::gateway_impl {

/// What is gathered for `status` and `agents`, from all parts at once.
struct survey {
  std::vector<child_status> tree;
  std::map<std::string, part_health> health;
  std::vector<dispatcher_status> dispatchers;
  permits_status permits;
  std::vector<governor_status> providers;
  std::vector<kernel_status> kernels;
  std::map<dispatch_status, std::uint64_t> queue;
  std::vector<dispatch> latest;
  std::map<std::string, cycle_record> cycles; ///< the latest recorded one of each kernel
  std::map<std::string, std::vector<effects::effect>> effects; ///< that are not done, by kernel
  /// Cycles that this node began and did not record; with a living node they just run.
  std::vector<cycle_record> unfinished;
  std::vector<pause_record> pauses;
  std::vector<store::list_nodes::row> nodes;
  std::map<std::string, store::usage_counts> spent; ///< today, by scope
  std::vector<store::spend_call> reservations;      ///< of today, not settled; the newest of them
  std::vector<store::approval> open_approvals;      ///< the newest of them
  approvals_status approvals;
  std::vector<restart_event>
      restarts; ///< of this node's parts, also in earlier lives; newest first
  /// Why the rows could not be read: then what comes of them is unknown, not zero. Empty: they
  /// were.
  std::string store_problem;
  /// Why the configuration file does not load any more. Empty: it does, or nobody would load it.
  std::string configuration_problem;
  std::size_t missing = 1;
  std::function<void(survey&)> done;
  /// The answers made of it, by their verb: they are the same for all who asked.
  std::map<std::string, api_response> answers;

  /// The root has been told to stop and waits for what runs.
  bool draining() const;
  /// How many attempts run, in words: "1 running attempt".
  std::string running_attempts() const;

  void one_less() {
    if (--missing > 0)
      return;
    // Taken out first: who is told may keep the survey, which must not keep him.
    const auto tell = std::exchange(done, nullptr);
    tell(*this);
  }
};

/// Asks every part and the store at once; `done` is called when all have answered or had their
/// time. Few surveys are under way at once: who comes meanwhile shares the next one, which begins
/// after they came, so that nobody gets an answer that is older than the question.
void take_survey(const exchange_ptr& x, survey_reader done);

/// What status and agents tell of one agent.
json agent_json(const survey& all, const config::kernel& k, const config::agent& a);

/// What a person should know of the node as a whole, most important first; as they come, they are
/// sentences. Parts that are not well are not among them: they are in `health`.
std::vector<std::string> problems_of(const gateway_parts& p, const survey& all);

/// The budgets of today that this configuration sets, and how far they are used up. cost.cpp
json budgets_json(const gateway_parts& p, const survey& all);

/// What open reservations hold of today's budgets, in numbers. cost.cpp
json reservations_json(const survey& all);

/// What people are asked, in numbers. approvals.cpp
json approvals_json(const survey& all);

/// A sentence where somebody waits for a person, or was not told. approvals.cpp
std::vector<std::string> approval_problems(const survey& all);

/// A sentence for each that is nearly or wholly used up. cost.cpp
std::vector<std::string> budget_problems(const gateway_parts& p, const survey& all);

} // namespace boyd::gateway_impl
