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
/// would not have stood in the bank, teach nothing. What the node's own policy has done with a text
/// is left out: it followed from the numbers in force, and is no part of the history that others
/// are tried on. Copies go on by themselves. Not thread-safe.
class policy_replay {
 public:
  explicit policy_replay(const policy_numbers& numbers = {});

  /// From this time on these numbers hold; what was before stays as it was.
  void change(const policy_numbers& numbers, utc_time at);
  result<void> take(const graph::edge& fact, std::uint64_t line);
  /// Once, behind the last fact.
  policy_results finish(utc_time now);

 private:
  /// An item, and what the replay knows besides the fold.
  struct followed_item {
    std::string id;
    policy_outcome outcome;
    std::string scope; ///< of the bank that it stands in
    bool banked = false;
    std::int64_t ended_before = 0; ///< runs of the scope that had ended when it came to the bank
    bool touched = false;          ///< its place stands in `touched_`
  };

  std::size_t place_of(const std::string& id);
  void touch(std::size_t place);
  /// KERNEL/AGENT of a decision; empty: it is none of a planner's.
  const std::string& agent_of(const graph::edge& decision);
  void take_decision(const graph::edge& decision);
  /// False: the run would not have been given it.
  bool is_given(const graph::edge& use) const;
  result<void> take_end(const graph::edge& end, std::uint64_t line);
  /// Of a run that ends, before it teaches something.
  void count_open(const std::vector<std::size_t>& given);
  /// Where the item stands now.
  void look_at(followed_item& item, utc_time at);
  void enter_bank(followed_item& item, const std::string& scope);
  void leave_bank(followed_item& item);

  policy_numbers numbers_;
  graph::learner fold_;
  std::vector<followed_item> items_;
  std::unordered_map<std::string, std::size_t> places_; ///< in `items_`, by id
  std::map<std::string, std::int64_t> runs_;            ///< that were wanted, by KERNEL/AGENT
  std::unordered_map<std::string, std::string> agents_; ///< of decisions, by their meta
  std::string cycle_;                                   ///< of the latest decision
  std::int64_t runs_of_cycle_ = 0;
  std::map<std::string, utc_time> latest_runs_;                         ///< by KERNEL/AGENT
  std::unordered_set<std::string> left_out_;                            ///< executions
  std::unordered_map<std::string, std::vector<std::size_t>> open_runs_; ///< places, by execution
  std::vector<std::size_t> touched_; ///< places of items that changed since a run ended
  std::unordered_map<std::string, std::int64_t> ended_; ///< runs that have ended, by scope
  std::size_t unkept_ = 0;                              ///< runs since changes were dropped
};

/// The history under the numbers in force and under others; what is the same for both is folded
/// once. Not thread-safe.
class policy_comparison {
 public:
  /// Nothing: the others hold from the beginning.
  policy_comparison(const policy_numbers& others, std::optional<utc_time> since);

  result<void> take(const graph::edge& fact, std::uint64_t line);

  struct both {
    policy_results now;  ///< under the numbers in force
    policy_results then; ///< under the others
  };
  /// Once, behind the last fact.
  both finish(utc_time now);

 private:
  policy_numbers others_;
  std::optional<utc_time> since_;
  bool teaches_otherwise_ = false; ///< else the others are asked at the end alone
  policy_replay now_;
  std::optional<policy_replay> then_; ///< nothing: the same as `now_` up to here
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
