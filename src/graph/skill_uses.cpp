#include "boyd/graph/skill_uses.hpp"

#include "boyd/graph/lists.hpp"
#include "fact_meta_internal.hpp"
#include "learned_json_internal.hpp"

#include <algorithm>
#include <iterator>

namespace boyd::graph {

namespace {

using detail::json;

constexpr std::string_view skill_prefix = "skill_";
constexpr char between = '\x1f';
constexpr std::size_t newest_uses = 5;
constexpr std::size_t most_failures = 3;
/// One is the only one, or there is another.
constexpr std::size_t most_agents = 2;
/// Skills that are kept at hand between saves.
constexpr std::size_t most_skills = 1000;

void note_agent(std::vector<std::string>& agents, const std::string& agent) {
  if (!agent.empty() && agents.size() < most_agents &&
      std::ranges::find(agents, agent) == agents.end())
    agents.push_back(agent);
}

std::set<std::string> faults_of(const std::string& name, const skill_uses& s) {
  std::set<std::string> keys;
  const auto add = [&](bool holds, std::string_view fault) {
    if (holds)
      keys.insert(name + between + std::string(fault));
  };
  add(s.is_orphaned(), orphaned_skill);
  add(s.is_failing(), failing_skill);
  add(s.is_overfitted(), overfitted_skill);
  return keys;
}

std::optional<std::string> age_of(const std::string& name, const skill_uses& s) {
  return s.approved && s.last_used && !s.is_failing()
             ? std::optional(key_by_age(*s.last_used, name))
             : std::nullopt;
}

} // namespace

std::size_t skill_uses::failures() const {
  return static_cast<std::size_t>(std::ranges::count(newest, '-'));
}

bool skill_uses::is_failing() const {
  return approved && failures() >= most_failures;
}

bool skill_uses::is_overfitted() const {
  return approved && helped.size() == 1 &&
         std::ranges::any_of(failed, [&](const std::string& a) { return a != helped.front(); });
}

std::string to_text(const skill_uses& s) {
  json j{{"approved", s.approved}, {"has_source", s.has_source},
         {"newest", s.newest},     {"used_line", s.used_line},
         {"line", s.line},         {"helped", s.helped},
         {"failed", s.failed}};
  if (s.last_used)
    j["last_used"] = to_unix_ms(*s.last_used);
  return dump(j);
}

std::optional<skill_uses> read_skill_uses(std::string_view text) {
  const auto j = json::parse(text, nullptr, false);
  if (!j.is_object())
    return std::nullopt;
  skill_uses s;
  s.approved = flag_in(j, "approved");
  s.has_source = flag_in(j, "has_source");
  s.newest = text_in(j, "newest");
  s.last_used = detail::time_in(j, "last_used");
  s.used_line = static_cast<std::uint64_t>(number_in(j, "used_line"));
  s.line = static_cast<std::uint64_t>(number_in(j, "line"));
  s.helped = texts_in(j, "helped");
  s.failed = texts_in(j, "failed");
  return s;
}

std::pair<std::string, std::string> fault_in_key(std::string_view key) {
  const auto at = std::min(key.rfind(between), key.size());
  return {std::string(key.substr(0, at)), std::string(key.substr(std::min(at + 1, key.size())))};
}

result<skill_use_fold::skill_at_hand*> skill_use_fold::changing(const std::string& name) {
  auto known = skills_.find(name);
  if (known == skills_.end()) {
    auto text = look_(index_area::uses, name);
    if (!text)
      return fail(std::move(text.error()));
    skill_at_hand s{*text ? read_skill_uses(**text).value_or(skill_uses{}) : skill_uses{}, {}, {}};
    s.listed = faults_of(name, s.now);
    s.aged = age_of(name, s.now);
    known = skills_.emplace(name, std::move(s)).first;
  }
  changed_.insert(name);
  return &known->second;
}

result<void> skill_use_fold::take(const edge& fact, std::uint64_t line) {
  for (const auto* name : {&fact.from, &fact.to}) {
    if (!name->starts_with(skill_prefix))
      continue;
    auto found = changing(*name);
    if (!found)
      return fail(std::move(found.error()));
    auto& s = (*found)->now;
    s.line = line;
    const bool is_to = name == &fact.to;
    if (fact.type == "promoted_to" && is_to)
      s.approved = true;
    if (fact.type == "derived_from" && !is_to)
      s.has_source = true;
    if (fact.type != "validated_by" || !is_to)
      continue;
    const fact_meta meta(fact.meta_json);
    const bool teaches = meta.has("success");
    const bool good = meta.flag("success");
    s.newest += !teaches ? '0' : good ? '+' : '-';
    if (s.newest.size() > newest_uses)
      s.newest.erase(0, s.newest.size() - newest_uses);
    s.last_used = fact.timestamp;
    s.used_line = line;
    if (teaches)
      note_agent(good ? s.helped : s.failed, meta.text("agent"));
  }
  return {};
}

void skill_use_fold::each_change(const std::function<void(const index_change& c)>& put) {
  for (const auto& name : std::exchange(changed_, {})) {
    auto& s = skills_.at(name);
    put({index_area::uses, name, to_text(s.now)});
    auto listed = faults_of(name, s.now);
    for (const auto& key : s.listed)
      if (!listed.contains(key))
        put({index_area::skill_faults, key, std::nullopt});
    for (const auto& key : listed)
      if (!s.listed.contains(key))
        put({index_area::skill_faults, key, std::string()});
    s.listed = std::move(listed);
    auto aged = age_of(name, s.now);
    if (aged != s.aged && s.aged)
      put({index_area::skills_by_use, *s.aged, std::nullopt});
    if (aged != s.aged && aged)
      put({index_area::skills_by_use, *aged, std::string()});
    s.aged = std::move(aged);
  }
  if (skills_.size() > most_skills)
    skills_.clear();
}

} // namespace boyd::graph
