#include "boyd/skills/facts.hpp"

#include "../core/json_values.hpp"
#include "boyd/graph/learned_skills.hpp"

#include <nlohmann/json.hpp>

namespace boyd::skills {

namespace {

using json = nlohmann::json;

} // namespace

std::vector<graph::edge> facts_of(const approval& a, utc_time at) {
  const auto skill = graph::skill_id(a.kernel_id, a.name);
  json meta{{"by", a.by},
            {"confidence", a.confidence},
            {"fence", a.version},
            {"hash", a.hash},
            {"use_count", a.uses}};
  if (!a.candidate.empty())
    meta["candidate"] = a.candidate;
  if (!a.reason.empty())
    meta["reason"] = a.reason;
  return {{a.source, skill, "promoted_to", at, dump(meta)},
          {skill, a.source, "derived_from", at, dump({{"fence", a.version}, {"weight", 1}})}};
}

graph::edge fact_of(const decided& d, utc_time at) {
  json meta{{"action", d.action}, {"by", d.by}};
  if (!d.reason.empty())
    meta["reason"] = d.reason;
  if (d.evidence > 0)
    meta["evidence"] = d.evidence;
  return {d.about, "decision_" + d.decision_id, "managed_by", at, dump(meta)};
}

} // namespace boyd::skills
