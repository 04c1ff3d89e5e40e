#include "boyd/effects/effect.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace boyd::effects {

namespace {

using json = nlohmann::json;

constexpr std::size_t key_digits = 20;
constexpr std::array kinds{effect_kind::edges, effect_kind::lessons, effect_kind::history};

std::string_view name_of(effect_kind kind) {
  switch (kind) {
  case effect_kind::edges:
    return "edges";
  case effect_kind::lessons:
    return "lessons";
  case effect_kind::history:
    return "history";
  }
  return {};
}

json to_json(const graph::edge& e) {
  return {{"from", e.from},
          {"to", e.to},
          {"type", e.type},
          {"at", to_unix_ms(e.timestamp)},
          {"meta", e.meta_json}};
}

json to_json(const state::action_line& a) {
  return {{"at", to_unix_ms(a.at)}, {"agent", a.agent_id}, {"text", a.text}, {"status", a.status}};
}

std::string text_at(const json& object, const char* name) {
  const auto it = object.is_object() ? object.find(name) : object.end();
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

utc_time time_at(const json& object, const char* name) {
  const auto it = object.is_object() ? object.find(name) : object.end();
  return it != object.end() && it->is_number_integer() ? from_unix_ms(it->get<std::int64_t>())
                                                       : utc_time{};
}

const json& list_at(const json& object, const char* name) {
  static const json none = json::array();
  const auto it = object.find(name);
  return it != object.end() && it->is_array() ? *it : none;
}

std::int64_t count_at(const json& object, const char* name) {
  const auto it = object.is_object() ? object.find(name) : object.end();
  return it != object.end() && it->is_number_integer() ? it->get<std::int64_t>() : 0;
}

lessons_about about_in(const json& value) {
  lessons_about all;
  for (const auto& id : list_at(value, "items"))
    if (id.is_string())
      all.items.push_back(id.get<std::string>());
  for (const auto& s : list_at(value, "skills"))
    all.skills.push_back({text_at(s, "id"), count_at(s, "successes"), count_at(s, "failures")});
  for (const auto& id : list_at(value, "runs"))
    if (id.is_string())
      all.runs.push_back(id.get<std::string>());
  return all;
}

std::optional<effect> read_effect(const std::string& key, const std::string& text) {
  effect e;
  const auto* const end = key.data() + key.size();
  if (std::from_chars(key.data(), end, e.number).ptr != end || e.number == 0)
    return std::nullopt;
  const auto value = json::parse(text, nullptr, false);
  if (!value.is_object())
    return std::nullopt;
  const auto kind = text_at(value, "kind");
  e.cycle_id = text_at(value, "cycle");
  const auto known = std::ranges::find(kinds, kind, [](effect_kind k) { return name_of(k); });
  if (e.cycle_id.empty() || known == kinds.end())
    return std::nullopt;
  e.behind = text_at(value, "behind");
  e.kind = *known;
  e.ended = time_at(value, "ended");
  switch (e.kind) {
  case effect_kind::lessons:
    e.about = about_in(value);
    break;
  case effect_kind::edges:
    for (const auto& edge : list_at(value, "edges"))
      e.edges.push_back({text_at(edge, "from"), text_at(edge, "to"), text_at(edge, "type"),
                         time_at(edge, "at"), text_at(edge, "meta")});
    break;
  case effect_kind::history:
    e.status = cycle_status_from(text_at(value, "status")).value_or(cycle_status::error);
    for (const auto& line : list_at(value, "outcomes"))
      e.outcomes.push_back({time_at(line, "at"), text_at(line, "agent"), text_at(line, "text"),
                            text_at(line, "status")});
    break;
  }
  return e;
}

} // namespace

std::string scope_of(std::string_view kernel_id, std::string_view node_id) {
  return "effects:" + std::string(kernel_id) + "/" + std::string(node_id);
}

std::string key_of(std::uint64_t number) {
  auto digits = std::to_string(number);
  return std::string(key_digits - std::min(key_digits, digits.size()), '0') + digits;
}

std::string text_of(const effect& e) {
  json value{{"cycle", e.cycle_id}, {"kind", name_of(e.kind)}};
  if (!e.behind.empty())
    value["behind"] = e.behind;
  auto list = json::array();
  switch (e.kind) {
  case effect_kind::edges:
    for (const auto& edge : e.edges)
      list.push_back(to_json(edge));
    value["edges"] = std::move(list);
    break;
  case effect_kind::lessons:
    value["ended"] = to_unix_ms(e.ended);
    value["items"] = e.about.items;
    for (const auto& s : e.about.skills)
      list.push_back({{"id", s.id}, {"successes", s.successes}, {"failures", s.failures}});
    value["skills"] = std::move(list);
    value["runs"] = e.about.runs;
    break;
  case effect_kind::history:
    value["status"] = boyd::name_of(e.status);
    value["ended"] = to_unix_ms(e.ended);
    for (const auto& line : e.outcomes)
      list.push_back(to_json(line));
    value["outcomes"] = std::move(list);
    break;
  }
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<effect> read_effects(const std::map<std::string, std::string>& facts) {
  std::vector<effect> all;
  for (const auto& [key, text] : facts)
    if (auto e = read_effect(key, text))
      all.push_back(std::move(*e));
  std::ranges::sort(all, {}, &effect::number);
  return all;
}

std::vector<std::string> behind_of(const std::vector<effect>& all, std::string_view cycle_id) {
  std::vector<std::string> texts;
  for (const auto& e : all)
    if (!e.behind.empty() && (cycle_id.empty() || e.cycle_id == cycle_id) &&
        std::ranges::find(texts, e.behind) == texts.end())
      texts.push_back(e.behind);
  return texts;
}

} // namespace boyd::effects
