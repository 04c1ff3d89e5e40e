#pragma once

#include "boyd/config/tree.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/learned.hpp"
#include "boyd/skills/memory_policy.hpp"
#include "boyd/skills/stage.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// The recorded history under other numbers (SPEC §16): the same fold, stages and memory policy,
/// without a model. Pure.
namespace boyd::skills {

struct policy_numbers {
  graph::learning_rules learning;
  stage_rules stages;
  memory_rules memory;

  bool operator==(const policy_numbers&) const = default;
};

/// Reads `learning`, `stages` and `memory` with those of their numbers that differ; the others are
/// the defaults. `invalid_configuration` names the line and the nearest known name.
result<policy_numbers> read_policy_numbers(const config::tree& file, const std::string& path);

/// Where an item stands at the end of the history.
struct policy_outcome {
  std::string path;
  stage where = stage::context;
  memory_action action = memory_action::keep;
  std::optional<utc_time> banked;    ///< the first time that it reached the bank
  std::optional<utc_time> candidate; ///< the first time that it became a candidate
  double confidence = 0;

  bool operator==(const policy_outcome&) const = default;
};

/// Folds the log under some numbers. Not thread-safe.
class policy_replay {
 public:
  /// What happened before `since` is folded under the defaults; nothing: all of it under `numbers`.
  policy_replay(const policy_numbers& numbers, std::optional<utc_time> since);
  policy_replay(const policy_replay&) = delete;
  policy_replay& operator=(const policy_replay&) = delete;

  result<void> take(const graph::edge& fact, std::uint64_t line);
  /// Once, behind the last fact: by id.
  std::map<std::string, policy_outcome> finish(utc_time now);

 private:
  graph::learner begin(const graph::learning_rules& rules);
  /// Takes over what the fold has changed; `at`: when.
  void heed_changes(std::optional<utc_time> at);

  policy_numbers numbers_;
  std::optional<utc_time> since_;
  std::map<index_area, std::map<std::string, std::string>> index_;
  graph::learner fold_;
  bool is_since_ = false; ///< the numbers hold
  std::map<std::string, policy_outcome> outcomes_;
};

struct policy_difference {
  std::string id;
  std::string path;
  std::string what; ///< stage, memory, bank, candidate or confidence
  std::string now;  ///< under the numbers in force
  std::string then; ///< under the others

  bool operator==(const policy_difference&) const = default;
};

/// By path; items that are the same are left out.
std::vector<policy_difference> differences(const std::map<std::string, policy_outcome>& now,
                                           const std::map<std::string, policy_outcome>& then);

} // namespace boyd::skills
