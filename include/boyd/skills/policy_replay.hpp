#pragma once

#include "boyd/config/tree.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/learned.hpp"
#include "boyd/skills/memory_policy.hpp"
#include "boyd/skills/stage.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

/// The recorded history under other numbers (docs/explain.md): the same fold, stages and memory
/// policy, without a model. Pure.
namespace boyd::skills {

/// Limits for what planners have decided; 0: none.
struct plan_rules {
  std::int64_t most_runs = 0;  ///< of a cycle, in the order of its decisions
  milliseconds least_pause{0}; ///< between the decisions for two runs of an agent

  bool operator==(const plan_rules&) const = default;
};

struct policy_numbers {
  plan_rules plan;
  graph::learning_rules learning;
  stage_rules stages;
  memory_rules memory;

  bool operator==(const policy_numbers&) const = default;
};

/// Reads `planner`, `learning`, `stages` and `memory` with those of their numbers that differ; the
/// others are the defaults. `invalid_configuration` names the line and the nearest known name.
result<policy_numbers> read_policy_numbers(const config::tree& file, const std::string& path);

/// Where an item stands at the end of the history.
struct policy_outcome {
  std::string path;
  stage where = stage::context;
  memory_action action = memory_action::keep;
  std::optional<utc_time> banked;    ///< the first time that it reached the bank
  std::optional<utc_time> candidate; ///< the first time that it became a candidate
  double confidence = 0;
  std::int64_t given = 0; ///< runs that had it in their prompts
  std::int64_t open = 0;  ///< others, while it stood in the bank of their project

  bool operator==(const policy_outcome&) const = default;
};

struct policy_results {
  std::map<std::string, policy_outcome> items; ///< by id
  std::map<std::string, std::int64_t> runs;    ///< that were wanted, by KERNEL/AGENT

  bool operator==(const policy_results&) const = default;
};

/// Folds the log under some numbers. A run that its planner would not have wanted, and a text that
/// would not have stood in the bank, teach nothing. Not thread-safe.
class policy_replay {
 public:
  /// What happened before `since` is folded under the defaults; nothing: all of it under `numbers`.
  policy_replay(const policy_numbers& numbers, std::optional<utc_time> since);
  policy_replay(const policy_replay&) = delete;
  policy_replay& operator=(const policy_replay&) = delete;

  result<void> take(const graph::edge& fact, std::uint64_t line);
  /// Once, behind the last fact.
  policy_results finish(utc_time now);

 private:
  graph::learner begin(const graph::learning_rules& rules);
  void take_decision(const graph::edge& decision);
  /// False: the run would not have been given it.
  bool is_given(const graph::edge& use);
  result<void> take_end(const graph::edge& end, std::uint64_t line);
  /// Where the item stands now.
  void look_at(const std::string& id, utc_time at);
  /// Takes over what the fold has changed.
  void keep_changes();

  policy_numbers numbers_;
  std::optional<utc_time> since_;
  std::map<index_area, std::map<std::string, std::string>> index_;
  graph::learner fold_;
  bool is_since_ = false; ///< the numbers hold
  policy_results results_;
  std::string cycle_; ///< of the latest decision
  std::int64_t runs_of_cycle_ = 0;
  std::map<std::string, utc_time> latest_runs_;                         ///< by KERNEL/AGENT
  std::unordered_set<std::string> left_out_;                            ///< executions
  std::unordered_map<std::string, std::vector<std::string>> open_runs_; ///< items, by execution
  std::set<std::string> touched_;             ///< items that changed without a run
  std::map<std::string, std::string> banked_; ///< scopes of items that stand in the bank, by id
  std::map<std::string, std::set<std::string>> banks_; ///< the same, by scope
  std::size_t unkept_ = 0;                             ///< runs since changes were taken over
};

struct policy_difference {
  std::string id;   ///< of an item; "agent:KERNEL/AGENT", where facts are older "agent:AGENT"
  std::string path; ///< of it; KERNEL/AGENT, where facts are older AGENT
  std::string what; ///< stage, memory, bank, candidate, confidence, given, open; of agents: runs
  std::string now;  ///< under the numbers in force
  std::string then; ///< under the others

  bool operator==(const policy_difference&) const = default;
};

/// Agents first, then items by path; what is the same is left out.
std::vector<policy_difference> differences(const policy_results& now, const policy_results& then);

} // namespace boyd::skills
