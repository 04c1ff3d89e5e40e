#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/context/wanted.hpp"
#include "boyd/core/cycle.hpp"
#include "boyd/core/dispatch.hpp"
#include "boyd/core/time.hpp"
#include "boyd/plan/expand.hpp"
#include "boyd/plan/quiet.hpp"
#include "boyd/plan/schedule.hpp"
#include "boyd/plan/single_run.hpp"
#include "boyd/plan/wake.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace boyd::plan {

/// What the planner knows at one cycle. Maps are keyed by agent_id; an agent that is missing in one
/// has no such fact.
struct plan_input {
  std::string cycle_id;
  utc_time now{};
  placeholder_values values;
  std::vector<context::wanted> buffer; ///< references of the kernel's buffer
  std::vector<dispatch> latest;        ///< store::latest_per_agent
  std::vector<pause_record> pauses;
  std::optional<quiet_now> quiet;
  std::map<std::string, utc_time> last_dispatched_at;
  std::map<std::string, schedule_rule> schedules; ///< of agents that have their own
  /// The slot of its own schedule that an agent used last (plan_output::agent_slots, kept by the
  /// caller). Without one the agent waits for the first slot after `since`.
  std::map<std::string, utc_time> agent_slots;
  utc_time since{}; ///< when the kernel was first seen
  std::map<std::string, wake_answer> wake;
  /// Agents whose budget of the day (or the node's) is used up, and what a person reads of it.
  std::map<std::string, std::string> spent;
  std::function<std::string()> make_id; ///< dispatch ids (UUIDv7)
  /// Only this agent is decided on, and of the reasons only 1, 2, 3, 6 and 8 hold it back.
  std::optional<single_run> only;
};

struct plan_output {
  std::vector<agent_decision> decisions; ///< of every agent, in the order of configuration
  std::vector<dispatch_spec> specs;      ///< priority descending, then order of configuration
  /// Slots of agents' own schedules that are used up by this plan; to be kept for the next.
  std::map<std::string, utc_time> agent_slots;
  /// What went wrong although there is a plan, in one line, for the cycle's record.
  std::string problem;
};

/// Reads agent_slots back from facts (decimal unix milliseconds by agent_id); what is malformed is
/// left out.
std::map<std::string, utc_time> read_agent_slots(const std::map<std::string, std::string>& facts);

/// docs/planning.md's static planner: pure but for `make_id`. The first reason that holds is the
/// one recorded, in this order:
///  1. disabled   `enabled: false`
///  2. paused     the kernel or the agent is paused, or the hour is quiet
///  3. running    its latest dispatch is pending or running
///  4. schedule   its own schedule has had no slot since the last one used
///  5. cooldown   its last dispatch is less than `cooldown` ago
///  6. budget     its models have used up its budget of the day, or the node's
///  7. no_change  its wake check says so (detail: until when the check is backed off)
///  8. planner    its prompt cannot be expanded (too long)
/// A slot of an agent's own schedule is used up by a dispatch and by no_change; otherwise it waits
/// for the next cycle, so that a slot that passed while the agent could not run is made up for
/// once. An agent's metadata travels as it is (kernel and agent keys are merged at load).
plan_output plan_static(const config::kernel& kernel, const plan_input& in);

/// The earliest moment from `in.now` on at which neither the agent's own schedule nor its cooldown
/// holds it back (reasons 4 and 5). Nothing when it is disabled, when it or its kernel is paused,
/// or when its schedule has no slot left. Quiet hours and runs are not looked at.
std::optional<utc_time> ready_at(const config::kernel& kernel, const config::agent& agent,
                                 const plan_input& in);

/// The agents whose wake check the caller has to make before it plans: those with `wake` that no
/// reason before no_change holds back. `in.wake` is not read.
std::vector<std::string> wake_candidates(const config::kernel& kernel, const plan_input& in);

} // namespace boyd::plan
