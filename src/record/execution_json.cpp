#include "../core/json_values.hpp"
#include "boyd/core/outside_json.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/record/execution.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace boyd::record {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr std::string_view schema = "boyd.execution/1";
/// The last member: SHA-256 of all that stands before it.
constexpr std::string_view seal_begin = ",\n \"seal\": \"";
constexpr std::string_view seal_end = "\"\n}\n";

ordered_json value_of(const std::string& text) {
  if (text.empty())
    return nullptr;
  auto value = ordered_json::parse(text, nullptr, false);
  return value.is_discarded() ? ordered_json(text) : value;
}

std::string text_of_value(const json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null()
             ? std::string()
             : it->dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The objects of a list.
std::vector<std::reference_wrapper<const json>> objects_in(const json& object, const char* key) {
  std::vector<std::reference_wrapper<const json>> all;
  const auto it = object.find(key);
  if (it != object.end() && it->is_array())
    for (const auto& one : *it)
      if (one.is_object())
        all.emplace_back(one);
  return all;
}

std::optional<utc_time> time_in(const json& object, const char* key) {
  const auto t = parse_rfc3339(text_in(object, key));
  return t ? std::optional(*t) : std::nullopt;
}

ordered_json time_json(const std::optional<utc_time>& t) {
  return t ? ordered_json(format_rfc3339(*t, true)) : ordered_json(nullptr);
}

ordered_json turn_json(const turn& t) {
  return {
      {"turn", t.number},
      {"snapshot", value_of(context::to_json(t.snapshot))},
      {"diff", {{"added", t.diff.added}, {"removed", t.diff.removed}, {"changed", t.diff.changed}}},
      {"action", value_of(t.action)},
      {"governance", value_of(t.governance)},
      {"result", value_of(t.result)}};
}

turn read_turn(const json& j) {
  turn t;
  t.number = static_cast<int>(number_in(j, "turn"));
  t.snapshot = context::read_snapshot(text_of_value(j, "snapshot"));
  if (const auto diff = j.find("diff"); diff != j.end() && diff->is_object())
    t.diff = {texts_in(*diff, "added"), texts_in(*diff, "removed"), texts_in(*diff, "changed")};
  t.action = text_of_value(j, "action");
  t.governance = text_of_value(j, "governance");
  t.result = text_of_value(j, "result");
  return t;
}

ordered_json text_json(const kept_text& t) {
  if (t.hash.empty())
    return nullptr;
  ordered_json places = ordered_json::array();
  for (const auto& p : t.places)
    places.push_back({{"at", p.at}, {"hash", p.hash}});
  ordered_json j{{"sha256", t.hash}, {"bytes", t.bytes}};
  if (t.frame.empty())
    j["text"] = t.text;
  else
    j["frame"] = t.frame;
  if (!t.places.empty())
    j["places"] = std::move(places);
  return j;
}

kept_text read_text(const json& object, const char* key) {
  kept_text t;
  const auto it = object.find(key);
  if (it == object.end() || !it->is_object())
    return t;
  t.hash = text_in(*it, "sha256");
  t.bytes = number_in(*it, "bytes");
  t.text = text_in(*it, "text");
  t.frame = text_in(*it, "frame");
  for (const json& p : objects_in(*it, "places"))
    t.places.push_back({static_cast<std::size_t>(std::max<std::int64_t>(0, number_in(p, "at"))),
                        text_in(p, "hash")});
  return t;
}

using statistics = context::item_statistics;
constexpr std::array<std::pair<const char*, std::int64_t statistics::*>, 7> counters{
    {{"injected", &statistics::injected},
     {"used", &statistics::use_count},
     {"referenced", &statistics::referenced},
     {"success", &statistics::success_count},
     {"failure", &statistics::failure_count},
     {"useful", &statistics::verified_useful},
     {"not_useful", &statistics::verified_not_useful}}};

ordered_json known_json(const known_item& k) {
  ordered_json j{{"id", k.id},
                 {"confidence", k.counts.confidence},
                 {"created", time_json(k.counts.created)},
                 {"last_used", time_json(k.counts.last_used)},
                 {"frozen", k.frozen}};
  for (const auto& [name, member] : counters)
    j[name] = k.counts.*member;
  if (k.counts.success_count + k.counts.failure_count > 0)
    j["average"] = k.counts.average;
  return j;
}

known_item read_known(const json& j) {
  known_item k;
  k.id = text_in(j, "id");
  if (const auto c = j.find("confidence"); c != j.end() && c->is_number())
    k.counts.confidence = c->get<double>();
  if (const auto a = j.find("average"); a != j.end() && a->is_number())
    k.counts.average = a->get<double>();
  k.counts.created = time_in(j, "created").value_or(utc_time{});
  k.counts.last_used = time_in(j, "last_used");
  k.frozen = flag_in(j, "frozen");
  for (const auto& [name, member] : counters)
    k.counts.*member = number_in(j, name);
  return k;
}

ordered_json attempt_json(const attempt& a) {
  ordered_json turns = ordered_json::array();
  for (const auto& t : a.turns)
    turns.push_back(turn_json(t));
  ordered_json known = ordered_json::array();
  for (const auto& k : a.known)
    known.push_back(known_json(k));
  return {{"fence", a.fence},
          {"attempt", a.number},
          {"level", a.level},
          {"version", a.version},
          {"executor", value_of(a.executor)},
          {"system", text_json(a.system)},
          {"tools", text_json(a.tools)},
          {"prompt", text_json(a.prompt)},
          {"answer", text_json(a.answer)},
          {"known", std::move(known)},
          {"started_at", time_json(a.started_at)},
          {"ended_at", time_json(a.ended_at)},
          {"outcome", value_of(a.outcome)},
          {"turns", std::move(turns)}};
}

attempt read_attempt(const json& j) {
  attempt a;
  a.fence = number_in(j, "fence");
  a.number = static_cast<int>(number_in(j, "attempt"));
  a.level = text_in(j, "level");
  a.version = text_in(j, "version");
  a.executor = text_of_value(j, "executor");
  a.system = read_text(j, "system");
  a.tools = read_text(j, "tools");
  a.prompt = read_text(j, "prompt");
  a.answer = read_text(j, "answer");
  for (const json& k : objects_in(j, "known"))
    a.known.push_back(read_known(k));
  a.started_at = time_in(j, "started_at").value_or(utc_time{});
  a.ended_at = time_in(j, "ended_at");
  a.outcome = text_of_value(j, "outcome");
  for (const json& t : objects_in(j, "turns"))
    a.turns.push_back(read_turn(t));
  return a;
}

ordered_json named_json(const std::vector<named_item>& items) {
  ordered_json all = ordered_json::array();
  for (const auto& i : items)
    all.push_back({{"key", i.key}, {"id", i.id}, {"path", i.path}});
  return all;
}

std::vector<named_item> named_in(const json& object, const char* key) {
  std::vector<named_item> all;
  for (const json& one : objects_in(object, key))
    all.push_back({text_in(one, "key"), text_in(one, "id"), text_in(one, "path")});
  return all;
}

ordered_json citations_json(const std::optional<citations>& c) {
  if (!c)
    return nullptr;
  return {{"contract", c->contract},
          {"valid", named_json(c->valid)},
          {"invented", c->invented},
          {"uncited", named_json(c->uncited)},
          {"used", named_json(c->used)},
          {"accuracy", c->accuracy ? ordered_json(*c->accuracy) : ordered_json(nullptr)},
          {"weak", c->weak}};
}

std::optional<citations> read_citations(const json& j) {
  const auto it = j.find("citations");
  if (it == j.end() || !it->is_object())
    return std::nullopt;
  citations c;
  c.contract = text_in(*it, "contract");
  c.valid = named_in(*it, "valid");
  c.invented = texts_in(*it, "invented");
  c.uncited = named_in(*it, "uncited");
  c.used = named_in(*it, "used");
  if (const auto a = it->find("accuracy"); a != it->end() && a->is_number())
    c.accuracy = a->get<double>();
  c.weak = flag_in(*it, "weak");
  return c;
}

/// What it led to.
void add_lessons(ordered_json& all, const execution& e) {
  ordered_json skills = ordered_json::array();
  for (const auto& s : e.skills)
    skills.push_back({{"name", s.name}, {"state", s.state}});
  ordered_json changes = ordered_json::array();
  for (const auto& c : e.stage_changes)
    changes.push_back(
        {{"id", c.id}, {"path", c.path}, {"from", c.from}, {"to", c.to}, {"reason", c.reason}});
  ordered_json evidence = ordered_json::array();
  for (const auto& f : e.evidence)
    evidence.push_back({{"from", f.from}, {"to", f.to}, {"type", f.type}, {"line", f.line}});
  all["skills"] = std::move(skills);
  all["stage_changes"] = std::move(changes);
  all["evidence"] = std::move(evidence);
}

void read_lessons(const json& all, execution& e) {
  for (const json& s : objects_in(all, "skills"))
    e.skills.push_back({text_in(s, "name"), text_in(s, "state")});
  for (const json& c : objects_in(all, "stage_changes"))
    e.stage_changes.push_back({text_in(c, "id"), text_in(c, "path"), text_in(c, "from"),
                               text_in(c, "to"), text_in(c, "reason")});
  for (const json& f : objects_in(all, "evidence"))
    e.evidence.push_back(
        {text_in(f, "from"), text_in(f, "to"), text_in(f, "type"), text_in(f, "line")});
}

} // namespace

std::string to_json(const execution& e) {
  ordered_json attempts = ordered_json::array();
  for (const auto& a : e.attempts)
    attempts.push_back(attempt_json(a));
  ordered_json all{{"schema", schema},         {"dispatch_id", e.dispatch_id},
                   {"kernel_id", e.kernel_id}, {"cycle_id", e.cycle_id},
                   {"agent_id", e.agent_id},   {"citations", citations_json(e.cited)}};
  add_lessons(all, e);
  all["explanation"] = e.explanation;
  all["attempts"] = std::move(attempts);
  auto text = all.dump(1, ' ', false, ordered_json::error_handler_t::replace);
  text.resize(text.size() - std::string_view("\n}").size());
  const auto seal = sha256_hex(text);
  return text.append(seal_begin).append(seal).append(seal_end);
}

seal_state seal_of(std::string_view text) {
  const auto begin = text.rfind(seal_begin);
  if (begin == text.npos)
    return seal_state::none;
  const auto sealed = text.substr(0, begin);
  const auto seal = std::string(seal_begin) + sha256_hex(sealed) + std::string(seal_end);
  return text.substr(begin) == seal ? seal_state::whole : seal_state::broken;
}

result<execution> read_execution(std::string_view text) {
  const auto broken = [](std::string what) {
    return fail(errc::corrupt, "the record cannot be read: " + std::move(what), "record.json");
  };
  const auto sound = mend_json(text);
  if (!sound)
    return broken(sound.error().what);
  const auto j = json::parse(sound->text, nullptr, false);
  if (!j.is_object() || text_in(j, "schema") != schema)
    return broken("it is no " + std::string(schema));
  execution e;
  e.dispatch_id = text_in(j, "dispatch_id");
  e.kernel_id = text_in(j, "kernel_id");
  e.cycle_id = text_in(j, "cycle_id");
  e.agent_id = text_in(j, "agent_id");
  e.cited = read_citations(j);
  read_lessons(j, e);
  e.explanation = text_in(j, "explanation");
  for (const json& a : objects_in(j, "attempts"))
    e.attempts.push_back(read_attempt(a));
  return e;
}

} // namespace boyd::record
