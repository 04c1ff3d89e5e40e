#pragma once

#include "boyd/core/time.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/learned.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What is to become of the items that a node has learned about (docs/memory.md). Pure.
namespace boyd::skills {

enum class memory_action : std::uint8_t {
  keep,
  promote_to_skill, ///< becomes a candidate, which waits for a person
  forget,           ///< leaves the bank and the buffer
  archive,          ///< is shown as a summary alone
  summarize,        ///< the same, because it is given more often than it is used
  reinforce,        ///< is pinned to the first section
  undo,             ///< a person takes back what was done; no rule asks for it
};

std::string_view name_of(memory_action a) noexcept;

/// The numbers of the rules; a replay of the policy takes others.
struct memory_rules {
  std::int64_t promote_referenced = 3;
  std::int64_t promote_useful = 2;
  double promote_importance = 0.75; ///< above
  std::int64_t forget_not_useful = 3;
  double forget_importance = 0.2; ///< below
  milliseconds forget_idle = std::chrono::hours{24 * 30};
  double archive_importance = 0.4; ///< below
  std::int64_t noisy_injected = 10;
  double noisy_share = 0.1;              ///< uses by injections, below
  std::int64_t reinforce_referenced = 5; ///< above
  double reinforce_importance = 0.8;     ///< above

  bool operator==(const memory_rules&) const = default;
};

struct policy_item {
  std::string id;
  graph::learned_item item;
  bool has_candidate = false; ///< or a skill comes from it
};

struct policy_decision {
  std::string id;
  std::string path;
  memory_action action = memory_action::keep;
  std::string reason;
  double confidence = 0; ///< importance, or what is left to 1 for forget and archive

  bool operator==(const policy_decision&) const = default;
};

/// Of any item, whatever it says. The rules are tried in the order of docs/memory.md; a frozen
/// item, one to which the action was done already, and one of which a person has taken it back
/// while nothing about it has changed since, is kept.
policy_decision decide(const policy_item& i, utc_time now, const memory_rules& rules = {});

/// Of all, by path.
std::vector<policy_decision> decide_all(const std::vector<policy_item>& items, utc_time now,
                                        const memory_rules& rules = {});

/// `undo` for each item that has this id or path and to which something was done.
std::vector<policy_decision> undone(const std::vector<policy_item>& items, const std::string& name);

/// The facts of the actions among the decisions, which belong together: the fold heeds them once it
/// has seen all of them, so that a crash in the middle leaves nothing. `decision_id` is theirs
/// alone.
std::vector<graph::edge> facts_of(const std::vector<policy_decision>& decisions,
                                  const std::vector<policy_item>& items,
                                  const std::string& decision_id, const std::string& kernel_id,
                                  const std::string& by, utc_time at);

} // namespace boyd::skills
