#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/result.hpp"
#include "boyd/plan/advice.hpp"
#include "boyd/plan/static_planner.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The LLM planner (docs/planning.md) as values: what a model is asked, and what becomes of its
/// answer. The static plan says who may run; the model chooses among those and orders them, and
/// nothing it says goes beyond that.
namespace boyd::plan {

/// What a model wants to run.
struct wish {
  std::string agent_id;
  int priority = 0;
  std::string reason;

  bool operator==(const wish&) const = default;
};

/// A wish that was not followed.
struct dropped_wish {
  std::string agent_id; ///< as the model wrote it, bounded
  std::string why;

  bool operator==(const dropped_wish&) const = default;
};

/// What stands in the decisions of a cycle under planner_voice.
struct plan_record {
  advice asked;
  utc_time asked_at{}; ///< of the latest question that was put to a model, in this cycle or before
  std::vector<wish> wishes; ///< as they were read, in the model's order
  std::vector<dropped_wish> dropped;

  bool operator==(const plan_record&) const = default;
};

/// One JSON object, bounded; read_plan_record(to_json(r)) == r for what read_wishes can give.
std::string to_json(const plan_record& r);

/// Nothing for a text that is no record.
std::optional<plan_record> read_plan_record(std::string_view json);

/// What a person reads: "a model chose 2 of 5 agents that could run (…); dropped: …", or why the
/// static plan was used.
std::string say(const plan_record& r);

/// The system message: the task, the limits, and `planner.ask.instructions`.
std::string planner_instructions(const config::kernel& kernel);

/// The user message: STATE.md, the agents with their standing and latest run, recent results, the
/// time, as one JSON object. Bounded; without the secrets that configuration::secrets names and
/// what looks like one. `fixed` is the static plan for `in`.
std::string planner_question(const config::kernel& kernel, const plan_input& in,
                             const plan_output& fixed, const std::vector<std::string>& secrets);

/// JSON Schema of the answer.
std::string planner_schema();

/// The wishes of an answer; `parse_error` for one that does not follow the schema. Reasons are one
/// bounded line, and more wishes than any plan can follow are left out.
result<std::vector<wish>> read_wishes(std::string_view answer,
                                      const std::vector<std::string>& secrets);

/// The plan that follows the wishes, and what was not followed.
struct chosen_plan {
  plan_output plan;
  std::vector<dropped_wish> dropped;
};

/// Of `fixed` only what the wishes name is dispatched, at most `planner.max_dispatches`, each agent
/// once, in the order in which they are named; priorities are clamped to planner_priorities. What
/// could have run and was not chosen is skipped(planner), and keeps the slot of its own schedule.
/// Nothing runs that `fixed` does not dispatch. Pure.
chosen_plan follow(const config::kernel& kernel, const plan_output& fixed,
                   const std::vector<wish>& wishes);

/// The priorities that a model may give: 0 to 100, and what the kernel's agents have by
/// configuration.
struct priority_range {
  int least = 0;
  int most = 100;
};
priority_range planner_priorities(const config::kernel& kernel);

} // namespace boyd::plan
