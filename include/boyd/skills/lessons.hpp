#pragma once

#include "boyd/core/time.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/learned.hpp"
#include "boyd/skills/skill.hpp"
#include "boyd/skills/stage.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

/// What follows from a cycle for the items and skills that its runs used (docs/skills.md). Pure.
namespace boyd::skills {

struct lesson_item {
  std::string id;
  graph::learned_item item; ///< after the cycle
};

struct lesson_skill {
  std::string id;
  graph::learned_skill skill; ///< after the cycle
  std::int64_t successes = 0; ///< of the cycle's runs that declared it
  std::int64_t failures = 0;
};

struct lesson_input {
  std::string kernel_id;
  std::string cycle_id;
  utc_time at{}; ///< the cycle's end
  std::vector<lesson_item> items;
  std::vector<lesson_skill> skills;
  std::set<std::string> candidates; ///< ids of those that are there
  std::set<context::item_type> types{context::item_type::file, context::item_type::directory};
  stage_rules stages{};
  reap_rules reaping{};
};

/// Facts: changes of stage (`managed_by`, action stage), new candidates (`promoted_to`), skills
/// that have become better or worse (`managed_by`, action degrade, recover or reap), and what their
/// uses mean for their sources (`supports`). Each has a key of its own for the cycle, so that the
/// same lessons drawn once more add nothing to the log. A frozen item is left as it is.
std::vector<graph::edge> lessons_of(const lesson_input& input);

} // namespace boyd::skills
