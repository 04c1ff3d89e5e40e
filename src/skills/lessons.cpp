#include "boyd/skills/lessons.hpp"

#include "../core/json_values.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>

namespace boyd::skills {

namespace {

using json = nlohmann::json;

void judge_item(const lesson_input& in, const lesson_item& i, std::vector<graph::edge>& facts) {
  const auto& it = i.item;
  if (it.frozen || !in.types.contains(it.type))
    return;
  const auto verdict = stage_of(it.counts, in.at, in.stages);
  const auto now = name_of(verdict.where);
  const auto before = it.stage.empty() ? name_of(stage::context) : std::string_view(it.stage);
  if (now != before)
    facts.push_back({i.id, "decision_" + in.cycle_id, "managed_by", in.at,
                     dump({{"action", "stage"},
                           {"from", before},
                           {"to", now},
                           {"path", it.path},
                           {"reason", verdict.reason},
                           {"by", "rule"},
                           {"kernel", in.kernel_id},
                           {"executions", it.referenced_by}})});
  const auto candidate = candidate_id(i.id);
  if (verdict.where != stage::skill_candidate || it.scope.empty() ||
      in.candidates.contains(candidate))
    return;
  facts.push_back({i.id, candidate, "promoted_to", in.at,
                   dump({{"by", "rule"},
                         {"confidence", it.counts.confidence},
                         {"use_count", it.counts.use_count},
                         {"referenced", it.counts.referenced},
                         {"kernel", in.kernel_id},
                         {"scope", it.scope},
                         {"path", it.path},
                         {"reason", verdict.reason}})});
}

std::string_view action_of(skill_state s) {
  switch (s) {
  case skill_state::degraded:
    return "degrade";
  case skill_state::archived:
    return "reap";
  case skill_state::enabled:
  case skill_state::disabled:
    break;
  }
  return "recover";
}

std::string reason_of(const graph::learned_skill& s, skill_state now) {
  switch (now) {
  case skill_state::degraded:
    return std::to_string(std::ranges::count(s.recent, '-')) + " of its last " +
           std::to_string(s.recent.size()) + " uses failed, confidence " +
           json(s.counts.confidence).dump();
  case skill_state::archived:
    return "worth little, and not used for long";
  case skill_state::enabled:
  case skill_state::disabled:
    break;
  }
  return "it went well " + std::to_string(s.streak) + " times in a row";
}

void judge_skill(const lesson_input& in, const lesson_skill& s, std::vector<graph::edge>& facts) {
  if (s.successes + s.failures > 0)
    for (const auto& source : s.skill.sources)
      facts.push_back({s.id, source, "supports", in.at,
                       dump({{"successes", s.successes},
                             {"failures", s.failures},
                             {"reason", "uses of the skill in cycle " + in.cycle_id},
                             // Of one skill and item each cycle has its own.
                             {"fence", to_unix_ms(in.at)}})});
  const auto now = state_of(s.skill, in.at, in.reaping);
  const auto told =
      s.skill.told.empty() ? name_of(skill_state::enabled) : std::string_view(s.skill.told);
  if (now == skill_state::disabled || name_of(now) == told)
    return;
  facts.push_back({s.id, "decision_" + in.cycle_id, "managed_by", in.at,
                   dump({{"action", action_of(now)},
                         {"state", name_of(now)},
                         {"reason", reason_of(s.skill, now)},
                         {"by", "rule"}})});
}

} // namespace

std::vector<graph::edge> lessons_of(const lesson_input& input) {
  std::vector<graph::edge> facts;
  for (const auto& i : input.items)
    judge_item(input, i, facts);
  for (const auto& s : input.skills)
    if (!s.skill.versions.empty())
      judge_skill(input, s, facts);
  return facts;
}

} // namespace boyd::skills
