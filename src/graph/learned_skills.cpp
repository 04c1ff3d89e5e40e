#include "boyd/graph/learned_skills.hpp"

#include "fact_meta_internal.hpp"
#include "learned_json_internal.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace boyd::graph {

namespace {

using detail::json;

constexpr std::string_view skill_prefix = "skill_";
constexpr std::string_view candidate_prefix = "candidate_";
constexpr std::string_view rollback_words = "rollback to version ";
/// Versions and sources of one skill that are kept at hand; the log has them all.
constexpr std::size_t most_versions = 200;
constexpr std::size_t most_sources = 100;

std::int64_t whole(const fact_meta& meta, std::string_view key) {
  return static_cast<std::int64_t>(meta.number(key).value_or(0));
}

candidate_status status_named(std::string_view name) {
  for (const auto s :
       {candidate_status::approved, candidate_status::rejected, candidate_status::deferred})
    if (name == name_of(s))
      return s;
  return candidate_status::pending;
}

/// As if it had not been used yet.
void begin_again(learned_skill& s, utc_time at) {
  s.recent.clear();
  s.streak = 0;
  s.degraded = false;
  s.disabled = false;
  s.told.clear();
  s.touched = std::max(s.touched, at);
}

/// Reads a value of the index into `known`; one that is not there is new.
template <class Value, class Read>
result<Value*> value_at(std::map<std::string, Value>& known, index_area area, const std::string& id,
                        const skill_fold::look_up& look, Read read) {
  if (const auto it = known.find(id); it != known.end())
    return &it->second;
  auto text = look(area, id);
  if (!text)
    return fail(std::move(text.error()));
  auto value = *text ? read(**text) : std::nullopt;
  return &known.insert_or_assign(id, std::move(value).value_or(Value{})).first->second;
}

template <class Value>
void add_changed(std::vector<index_change>& to, index_area area, std::set<std::string>& changed,
                 const std::map<std::string, Value>& values) {
  for (const auto& id : std::exchange(changed, {}))
    to.push_back({area, id, to_text(values.at(id))});
}

} // namespace

std::string skill_id(std::string_view kernel_id, std::string_view name) {
  return std::string(skill_prefix) + std::string(kernel_id) + "/" + std::string(name);
}

std::optional<std::pair<std::string, std::string>> names_in_skill_id(std::string_view id) {
  if (!id.starts_with(skill_prefix))
    return std::nullopt;
  id.remove_prefix(skill_prefix.size());
  const auto slash = id.find('/');
  if (slash == id.npos || slash == 0 || slash + 1 == id.size())
    return std::nullopt;
  return std::pair(std::string(id.substr(0, slash)), std::string(id.substr(slash + 1)));
}

std::string rollback_reason(std::int64_t version, std::string_view why) {
  return std::string(rollback_words) + std::to_string(version) +
         (why.empty() ? std::string() : ": " + std::string(why));
}

std::optional<std::int64_t> version_in_rollback(std::string_view reason) {
  if (!reason.starts_with(rollback_words))
    return std::nullopt;
  reason.remove_prefix(rollback_words.size());
  std::int64_t version = 0;
  const auto* const end = reason.data() + reason.size();
  const auto read = std::from_chars(reason.data(), end, version);
  const bool is_whole = read.ec == std::errc{} && (read.ptr == end || *read.ptr == ':');
  return is_whole ? std::optional(version) : std::nullopt;
}

std::string_view name_of(candidate_status s) noexcept {
  switch (s) {
  case candidate_status::approved:
    return "approved";
  case candidate_status::rejected:
    return "rejected";
  case candidate_status::deferred:
    return "deferred";
  case candidate_status::pending:
    break;
  }
  return "pending";
}

std::string to_text(const learned_skill& s) {
  json j{{"degraded", s.degraded},
         {"disabled", s.disabled},
         {"recent", s.recent},
         {"sources", s.sources},
         {"streak", s.streak},
         {"told", s.told},
         {"touched", to_unix_ms(s.touched)}};
  detail::put_statistics(j, s.counts);
  auto versions = json::array();
  for (const auto& v : s.versions)
    versions.push_back({{"number", v.number},
                        {"hash", v.hash},
                        {"by", v.by},
                        {"reason", v.reason},
                        {"at", to_unix_ms(v.at)}});
  j["versions"] = std::move(versions);
  return dump(j);
}

std::optional<learned_skill> read_learned_skill(std::string_view text) {
  const auto j = json::parse(text, nullptr, false);
  if (!j.is_object())
    return std::nullopt;
  learned_skill s;
  s.counts = detail::statistics_in(j);
  s.recent = text_in(j, "recent");
  s.streak = number_in(j, "streak");
  s.degraded = flag_in(j, "degraded");
  s.disabled = flag_in(j, "disabled");
  s.sources = texts_in(j, "sources");
  s.touched = detail::time_in(j, "touched").value_or(utc_time{});
  s.told = text_in(j, "told");
  if (const auto versions = j.find("versions"); versions != j.end() && versions->is_array())
    for (const auto& v : *versions)
      if (v.is_object())
        s.versions.push_back({number_in(v, "number"), text_in(v, "hash"), text_in(v, "by"),
                              text_in(v, "reason"), detail::time_in(v, "at").value_or(utc_time{})});
  return s;
}

std::string to_text(const learned_candidate& c) {
  return dump({{"context", c.context_id},
               {"kernel", c.kernel_id},
               {"scope", c.scope},
               {"path", c.path},
               {"status", name_of(c.status)},
               {"evidence", c.evidence},
               {"skill", c.skill},
               {"by", c.by},
               {"reason", c.reason},
               {"confidence", c.confidence},
               {"created", to_unix_ms(c.created)}});
}

std::optional<learned_candidate> read_learned_candidate(std::string_view text) {
  const auto j = json::parse(text, nullptr, false);
  if (!j.is_object())
    return std::nullopt;
  learned_candidate c;
  c.context_id = text_in(j, "context");
  c.kernel_id = text_in(j, "kernel");
  c.scope = text_in(j, "scope");
  c.path = text_in(j, "path");
  c.status = status_named(text_in(j, "status"));
  c.evidence = number_in(j, "evidence");
  c.skill = text_in(j, "skill");
  c.by = text_in(j, "by");
  c.reason = text_in(j, "reason");
  c.confidence = share_in(j, "confidence");
  c.created = detail::time_in(j, "created").value_or(utc_time{});
  return c;
}

result<learned_skill*> skill_fold::skill(const std::string& id) {
  return value_at(skills_, index_area::skills, id, look_, read_learned_skill);
}

result<learned_candidate*> skill_fold::candidate(const std::string& id) {
  return value_at(candidates_, index_area::candidates, id, look_, read_learned_candidate);
}

result<void> skill_fold::take(const edge& fact) {
  if (fact.type == "promoted_to")
    return fact.to.starts_with(candidate_prefix) ? take_candidate(fact) : take_approval(fact);
  if (fact.type == "validated_by")
    return take_use(fact);
  if (fact.type == "derived_from")
    return take_source(fact);
  if (fact.type == "managed_by")
    return take_decision(fact);
  return {};
}

result<void> skill_fold::take_candidate(const edge& fact) {
  auto found = candidate(fact.to);
  if (!found)
    return fail(std::move(found.error()));
  auto& c = **found;
  if (!c.context_id.empty())
    return {}; // one for each, for ever
  const fact_meta meta(fact.meta_json);
  c.context_id = fact.from;
  c.kernel_id = meta.text("kernel");
  c.scope = meta.text("scope");
  c.path = meta.text("path");
  c.confidence = meta.number("confidence").value_or(0);
  c.created = fact.timestamp;
  changed_candidates_.insert(fact.to);
  return {};
}

/// Without a hash nothing is approved: an older log may tell of skills that no bytes belong to.
result<void> skill_fold::take_approval(const edge& fact) {
  const fact_meta meta(fact.meta_json);
  const auto hash = meta.text("hash");
  if (!names_in_skill_id(fact.to) || hash.empty())
    return {};
  auto found = skill(fact.to);
  if (!found)
    return fail(std::move(found.error()));
  auto& s = **found;
  const auto version = whole(meta, "fence");
  const auto known = std::ranges::any_of(
      s.versions, [&](const skill_version& v) { return v.number == version && v.hash == hash; });
  if (!known) {
    if (s.versions.empty()) {
      s.counts.created = fact.timestamp;
      s.counts.confidence = meta.number("confidence").value_or(rules_.confidence_of_imported);
    }
    s.versions.push_back({version, hash, meta.text("by"), meta.text("reason"), fact.timestamp});
    if (s.versions.size() > most_versions)
      s.versions.erase(s.versions.begin());
    begin_again(s, fact.timestamp);
    changed_skills_.insert(fact.to);
  }
  const auto of = meta.text("candidate");
  if (of.empty())
    return {};
  auto decided = candidate(of);
  if (!decided)
    return fail(std::move(decided.error()));
  auto& c = **decided;
  c.status = candidate_status::approved;
  c.skill = fact.to;
  c.by = meta.text("by");
  c.reason = meta.text("reason");
  changed_candidates_.insert(of);
  return {};
}

result<void> skill_fold::take_use(const edge& fact) {
  if (!names_in_skill_id(fact.to))
    return {};
  auto found = skill(fact.to);
  if (!found)
    return fail(std::move(found.error()));
  auto& s = **found;
  if (s.versions.empty())
    return {}; // nothing that somebody approved
  changed_skills_.insert(fact.to);
  ++s.counts.use_count;
  ++s.counts.referenced;
  s.counts.last_used = std::max(s.counts.last_used.value_or(fact.timestamp), fact.timestamp);
  const fact_meta meta(fact.meta_json);
  if (!meta.has("success"))
    return {}; // it teaches nothing
  const bool good = meta.flag("success");
  detail::count_outcome(s.counts, good, good ? rules_.success_step : -rules_.failure_step);
  s.recent += good ? '+' : '-';
  if (s.recent.size() > rules_.recent_uses)
    s.recent.erase(0, s.recent.size() - rules_.recent_uses);
  s.streak = good ? s.streak + 1 : 0;
  const bool is_bad = s.counts.confidence < rules_.degrade_confidence ||
                      std::ranges::count(s.recent, '-') >= rules_.degrade_failures;
  if (!s.degraded && !good && is_bad) {
    s.degraded = true;
  } else if (s.degraded && s.streak >= rules_.recover_successes) {
    s.degraded = false;
    s.recent.clear();
  }
  return {};
}

result<void> skill_fold::take_source(const edge& fact) {
  if (!names_in_skill_id(fact.from))
    return {};
  auto found = skill(fact.from);
  if (!found)
    return fail(std::move(found.error()));
  auto& sources = (*found)->sources;
  if (std::ranges::find(sources, fact.to) == sources.end() && sources.size() < most_sources) {
    sources.push_back(fact.to);
    changed_skills_.insert(fact.from);
  }
  return {};
}

/// What a rule has found is told for people: it changes what was told, and nothing else.
result<void> skill_fold::take_decision(const edge& fact) {
  const fact_meta meta(fact.meta_json);
  const auto action = meta.text("action");
  if (fact.from.starts_with(candidate_prefix)) {
    if (action != "reject" && action != "defer")
      return {};
    auto found = candidate(fact.from);
    if (!found)
      return fail(std::move(found.error()));
    auto& c = **found;
    c.status = action == "reject" ? candidate_status::rejected : candidate_status::deferred;
    c.evidence = whole(meta, "evidence");
    c.by = meta.text("by");
    c.reason = meta.text("reason");
    changed_candidates_.insert(fact.from);
    return {};
  }
  if (!names_in_skill_id(fact.from))
    return {};
  auto found = skill(fact.from);
  if (!found)
    return fail(std::move(found.error()));
  auto& s = **found;
  if (action == "enable") {
    begin_again(s, fact.timestamp);
  } else if (action == "disable") {
    s.disabled = true;
    s.touched = std::max(s.touched, fact.timestamp);
  } else if (const auto state = meta.text("state"); !state.empty()) {
    s.told = state;
  }
  changed_skills_.insert(fact.from);
  return {};
}

void skill_fold::add_changes(std::vector<index_change>& to) {
  add_changed(to, index_area::skills, changed_skills_, skills_);
  add_changed(to, index_area::candidates, changed_candidates_, candidates_);
}

} // namespace boyd::graph
