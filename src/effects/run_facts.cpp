#include "boyd/effects/run_facts.hpp"

#include "../core/json_values.hpp"
#include "boyd/core/text.hpp"
#include "boyd/graph/learned.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace boyd::effects {

namespace {

using json = nlohmann::json;

/// Of the lines of one part, which the recorder writes at once.
constexpr std::size_t part_bytes = std::size_t{1} << 20;
/// What a line has besides its ids and meta.
constexpr std::size_t line_bytes = 256;

constexpr std::string_view execution_prefix = "exec_";

/// So many digits as a reader sees.
double rounded(double share) {
  constexpr double steps = 1e4;
  return std::round(share * steps) / steps;
}

graph::edge used_in(const dispatch& d, const read_item& item, const reading_report& reading,
                    utc_time at) {
  json meta{{"as", item.as},           {"cited", item.cited}, {"fence", d.fence},
            {"from", item.from},       {"hash", item.hash},   {"path", item.path},
            {"section", item.section}, {"type", item.type},   {"used", item.used},
            {"kernel", d.kernel_id}};
  if (!item.scope.empty())
    meta["scope"] = item.scope;
  if (item.frozen)
    meta["frozen"] = true;
  if (reading.accuracy)
    meta["accuracy"] = rounded(*reading.accuracy);
  if (reading.enforced)
    meta["enforced"] = true;
  return {item.id, std::string(execution_prefix) + d.dispatch_id, "used_in", at, dump(meta)};
}

std::string meta_of(const dispatch& d) {
  const auto& o = d.outcome;
  json meta{{"agent", d.agent_id},
            {"attempt", d.attempt},
            {"claim", name_of(o.claim)},
            {"class", name_of(o.failure)},
            {"execution", name_of(o.execution)},
            {"fence", d.fence},
            {"kernel", d.kernel_id},
            {"status", name_of(d.status)},
            {"verification", name_of(o.verification)}};
  const auto& used = o.usage;
  if (used.input_tokens || used.output_tokens)
    meta["tokens"] = used.input_tokens.value_or(0) + used.output_tokens.value_or(0);
  if (used.cost_microusd)
    meta["cost_microusd"] = *used.cost_microusd;
  for (const auto& fact : used.told)
    meta["told"][fact.name] = fact.value;
  if (used.reading && used.reading->weak)
    meta["weak"] = true;
  if (used.reading && !used.reading->question.empty())
    meta["question"] = used.reading->question;
  return dump(meta);
}

std::string dispatch_of(const std::string& execution) {
  return execution.substr(execution_prefix.size());
}

/// A declared skill, and whether the run speaks for it.
graph::edge validated_by(const dispatch& d, const std::string& skill, graph::credit credit,
                         utc_time at) {
  json meta{{"agent", d.agent_id}, {"fence", d.fence}};
  if (credit != graph::credit::none)
    meta["success"] = credit == graph::credit::success;
  return {std::string(execution_prefix) + d.dispatch_id, graph::skill_id(d.kernel_id, skill),
          "validated_by", at, dump(meta)};
}

} // namespace

graph::edge decision_of(const dispatch& d, const std::string& cycle_id, std::string_view planner,
                        std::string_view reason, utc_time at) {
  json meta{{"agent", d.agent_id}, {"kernel", d.kernel_id}, {"planner", planner}};
  if (!reason.empty())
    meta["reason"] = sanitize_utf8(reason);
  return {std::string(execution_prefix) + d.dispatch_id, "decision_" + cycle_id, "decided_by", at,
          dump(meta)};
}

std::vector<graph::edge> facts_of(const dispatch& d, utc_time at) {
  std::vector<graph::edge> all;
  if (const auto& reading = d.outcome.usage.reading)
    for (const auto& item : reading->items)
      all.push_back(used_in(d, item, *reading, at));
  auto meta = meta_of(d);
  const auto credit = graph::credit_of(meta);
  all.push_back({std::string(execution_prefix) + d.dispatch_id, "outcome_" + d.dispatch_id,
                 "resulted_in", at, std::move(meta)});
  for (const auto& skill : d.outcome.usage.skills)
    all.push_back(validated_by(d, skill, credit, at));
  return all;
}

lessons_about about_of(const std::vector<graph::edge>& facts) {
  lessons_about all;
  std::set<std::string> items;
  std::set<std::string> runs;
  std::map<std::string, used_skill> skills;
  for (const auto& f : facts) {
    if (f.type == "used_in") {
      items.insert(f.from);
      runs.insert(dispatch_of(f.to));
    }
    if (f.type != "validated_by")
      continue;
    runs.insert(dispatch_of(f.from));
    auto& s = skills[f.to];
    s.id = f.to;
    const auto meta = json::parse(f.meta_json, nullptr, false);
    if (const auto good = meta.find("success"); good != meta.end() && good->is_boolean())
      ++(good->get<bool>() ? s.successes : s.failures);
  }
  all.items.assign(items.begin(), items.end());
  all.runs.assign(runs.begin(), runs.end());
  for (auto& [id, s] : skills)
    all.skills.push_back(std::move(s));
  return all;
}

std::vector<std::vector<graph::edge>> in_parts(std::vector<graph::edge> facts) {
  std::vector<std::vector<graph::edge>> parts;
  std::size_t bytes = part_bytes;
  for (auto& f : facts) {
    const auto size = f.from.size() + f.to.size() + f.meta_json.size() + line_bytes;
    if (parts.empty() || bytes + size > part_bytes) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += size;
    parts.back().push_back(std::move(f));
  }
  return parts;
}

} // namespace boyd::effects
