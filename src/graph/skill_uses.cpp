#include "boyd/graph/skill_uses.hpp"

#include "boyd/graph/learned_skills.hpp"
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
/// Texts of a skill, and versions that repeat one: a rollback to an older one begins without uses.
constexpr std::size_t most_texts = 20;
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
  const auto& last = s.in_force().last_used;
  return s.approved && last && !s.is_failing()
             ? std::optional(key_by_age(std::max(*last, s.begun.value_or(*last)), name))
             : std::nullopt;
}

template <class T>
void keep_newest(std::vector<T>& all) {
  if (all.size() > most_texts)
    all.erase(all.begin());
}

/// The uses of the text that came with this version stand last from now on.
void put_in_force(skill_uses& s, std::int64_t version) {
  const auto known = std::ranges::find(s.texts, version, &text_uses::version);
  if (known != s.texts.end()) {
    std::rotate(known, known + 1, s.texts.end());
    return;
  }
  s.texts.push_back({.version = version});
  keep_newest(s.texts);
}

/// Approved: once for each of its sources.
void take_version(skill_uses& s, const fact_meta& meta, utc_time at) {
  const auto version = static_cast<std::int64_t>(meta.number("fence").value_or(0));
  auto hash = meta.text("hash");
  if (hash.empty() || (version == s.version && hash == s.hash))
    return;
  s.version = version;
  s.hash = std::move(hash);
  s.begun = at;
  // A skill that was removed and made anew counts its versions anew.
  std::erase_if(s.texts, [&](const text_uses& t) { return t.version == version; });
  put_in_force(s, version);
}

/// The newest version has the text of an earlier one.
void take_rollback(skill_uses& s, std::int64_t to) {
  const auto again =
      std::ranges::find(s.repeated, to, &std::pair<std::int64_t, std::int64_t>::first);
  const auto first = again == s.repeated.end() ? to : again->second;
  if (std::ranges::find(s.texts, first, &text_uses::version) == s.texts.end())
    return;
  std::erase_if(s.texts, [&](const text_uses& t) { return t.version == s.version; });
  s.repeated.emplace_back(s.version, first);
  keep_newest(s.repeated);
  put_in_force(s, first);
}

json to_json(const text_uses& t) {
  json j{{"version", t.version},
         {"newest", t.newest},
         {"used_line", t.used_line},
         {"helped", t.helped},
         {"failed", t.failed}};
  if (t.last_used)
    j["last_used"] = to_unix_ms(*t.last_used);
  return j;
}

text_uses text_uses_in(const json& j) {
  text_uses t;
  t.version = number_in(j, "version");
  t.newest = text_in(j, "newest");
  t.last_used = detail::time_in(j, "last_used");
  t.used_line = static_cast<std::uint64_t>(number_in(j, "used_line"));
  t.helped = texts_in(j, "helped");
  t.failed = texts_in(j, "failed");
  return t;
}

void take_use(text_uses& t, const edge& fact, std::uint64_t line) {
  const fact_meta meta(fact.meta_json);
  const bool teaches = meta.has("success");
  const bool good = meta.flag("success");
  t.newest += !teaches ? '0' : good ? '+' : '-';
  if (t.newest.size() > newest_uses)
    t.newest.erase(0, t.newest.size() - newest_uses);
  t.last_used = fact.timestamp;
  t.used_line = line;
  if (teaches)
    note_agent(good ? t.helped : t.failed, meta.text("agent"));
}

} // namespace

std::size_t text_uses::failures() const {
  return static_cast<std::size_t>(std::ranges::count(newest, '-'));
}

bool skill_uses::is_failing() const {
  return approved && in_force().failures() >= most_failures;
}

bool skill_uses::is_overfitted() const {
  const auto& t = in_force();
  return approved && t.helped.size() == 1 &&
         std::ranges::any_of(t.failed, [&](const std::string& a) { return a != t.helped.front(); });
}

std::string to_text(const skill_uses& s) {
  json j{{"approved", s.approved}, {"has_source", s.has_source},
         {"line", s.line},         {"version", s.version},
         {"hash", s.hash},         {"repeated", s.repeated}};
  if (s.begun)
    j["begun"] = to_unix_ms(*s.begun);
  for (const auto& t : s.texts)
    j["texts"].push_back(to_json(t));
  return dump(j);
}

std::optional<skill_uses> read_skill_uses(std::string_view text) {
  const auto j = json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains("texts") || j["texts"].empty())
    return std::nullopt;
  skill_uses s;
  s.approved = flag_in(j, "approved");
  s.has_source = flag_in(j, "has_source");
  s.line = static_cast<std::uint64_t>(number_in(j, "line"));
  s.version = number_in(j, "version");
  s.hash = text_in(j, "hash");
  s.begun = detail::time_in(j, "begun");
  s.texts.clear();
  for (const auto& t : j["texts"])
    s.texts.push_back(text_uses_in(t));
  const auto repeated = j.find("repeated");
  for (const auto& pair : repeated == j.end() ? json::array() : *repeated)
    if (pair.is_array() && pair.size() == 2 && pair[0].is_number() && pair[1].is_number())
      s.repeated.emplace_back(pair[0].get<std::int64_t>(), pair[1].get<std::int64_t>());
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
    if (fact.type == "promoted_to" && is_to) {
      s.approved = true;
      take_version(s, fact_meta(fact.meta_json), fact.timestamp);
    } else if (fact.type == "derived_from" && !is_to) {
      s.has_source = true;
    } else if (fact.type == "validated_by" && is_to) {
      take_use(s.texts.back(), fact, line);
    } else if (fact.type == "managed_by") {
      const fact_meta meta(fact.meta_json);
      const auto to = version_in_rollback(meta.text("reason"));
      if (to && meta.text("action") == "rollback")
        take_rollback(s, *to);
    }
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
