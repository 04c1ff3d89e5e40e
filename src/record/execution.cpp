#include "boyd/record/execution.hpp"

#include "boyd/core/outside_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace boyd::record {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr std::string_view schema = "boyd.execution/1";

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

std::string text_in(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::int64_t number_in(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<std::int64_t>() : 0;
}

std::vector<std::string> texts_in(const json& object, const char* key) {
  std::vector<std::string> all;
  const auto it = object.find(key);
  if (it != object.end() && it->is_array())
    for (const auto& one : *it)
      if (one.is_string())
        all.push_back(one.get<std::string>());
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

ordered_json attempt_json(const attempt& a) {
  ordered_json turns = ordered_json::array();
  for (const auto& t : a.turns)
    turns.push_back(turn_json(t));
  return {{"fence", a.fence},
          {"attempt", a.number},
          {"level", a.level},
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
  a.started_at = time_in(j, "started_at").value_or(utc_time{});
  a.ended_at = time_in(j, "ended_at");
  a.outcome = text_of_value(j, "outcome");
  if (const auto turns = j.find("turns"); turns != j.end() && turns->is_array())
    for (const auto& t : *turns)
      if (t.is_object())
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
  const auto it = object.find(key);
  if (it != object.end() && it->is_array())
    for (const auto& one : *it)
      if (one.is_object())
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
  const auto weak = it->find("weak");
  c.weak = weak != it->end() && weak->is_boolean() && weak->get<bool>();
  return c;
}

} // namespace

std::string to_json(const execution& e) {
  ordered_json attempts = ordered_json::array();
  for (const auto& a : e.attempts)
    attempts.push_back(attempt_json(a));
  const ordered_json all{{"schema", schema},
                         {"dispatch_id", e.dispatch_id},
                         {"kernel_id", e.kernel_id},
                         {"cycle_id", e.cycle_id},
                         {"agent_id", e.agent_id},
                         {"citations", citations_json(e.cited)},
                         {"attempts", std::move(attempts)}};
  return all.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
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
  if (const auto attempts = j.find("attempts"); attempts != j.end() && attempts->is_array())
    for (const auto& a : *attempts)
      if (a.is_object())
        e.attempts.push_back(read_attempt(a));
  return e;
}

context::snapshot latest_snapshot(const execution& e) {
  for (auto a = e.attempts.rbegin(); a != e.attempts.rend(); ++a)
    if (!a->turns.empty())
      return a->turns.back().snapshot;
  return {};
}

void begin_attempt(execution& e, attempt begun, const context::snapshot& last) {
  std::erase_if(e.attempts, [&](const attempt& a) { return a.fence == begun.fence; });
  const auto before = e.attempts.empty() ? last : latest_snapshot(e);
  if (!begun.turns.empty())
    begun.turns.front().diff = context::diff_of(before, begun.turns.front().snapshot);
  e.attempts.push_back(std::move(begun));
}

namespace {

/// `turns` stand for the attempt's first one, whose snapshot and diff stay, and those after it.
void put_turns(attempt& a, std::vector<turn> turns) {
  for (std::size_t i = 0; i < turns.size(); ++i) {
    auto& t = turns[i];
    if (i == 0 && !a.turns.empty()) {
      t.snapshot = std::move(a.turns.front().snapshot);
      t.diff = std::move(a.turns.front().diff);
    } else if (i > 0) {
      t.diff = context::diff_of(turns[i - 1].snapshot, t.snapshot);
    }
  }
  if (!turns.empty())
    a.turns = std::move(turns);
}

} // namespace

bool go_on(execution& e, std::int64_t fence, std::vector<turn> turns) {
  const auto it = std::ranges::find(e.attempts, fence, &attempt::fence);
  if (it == e.attempts.end())
    return false;
  put_turns(*it, std::move(turns));
  return true;
}

bool end_attempt(execution& e, attempt_end end) {
  const auto it = std::ranges::find(e.attempts, end.fence, &attempt::fence);
  if (it == e.attempts.end())
    return false;
  put_turns(*it, std::move(end.turns));
  it->ended_at = end.at;
  it->outcome = std::move(end.outcome);
  const bool is_newest = std::ranges::none_of(
      e.attempts, [&](const attempt& a) { return a.fence > end.fence && a.ended_at; });
  if (is_newest)
    e.cited = std::move(end.cited);
  return true;
}

citations judge(std::string_view answer, std::string_view rest_of_prompt,
                const std::vector<context::citable>& items,
                const std::vector<std::string>& paths_of_actions, bool enforced) {
  const auto used = context::find_used(answer, rest_of_prompt, items, paths_of_actions);
  const auto report = context::judge_citations(context::find_citations(answer, items), used);
  citations c;
  c.contract = enforced ? "enforce" : "observe";
  const auto named = [&](const std::vector<std::size_t>& indices) {
    std::vector<named_item> all;
    for (const auto i : indices)
      all.push_back({items.at(i).key, items.at(i).id, items.at(i).path});
    return all;
  };
  c.valid = named(report.valid);
  c.invented = report.invented;
  c.uncited = named(report.uncited);
  c.used = named(used);
  c.accuracy = report.accuracy;
  c.weak = enforced && report.is_weak();
  return c;
}

std::vector<context::citable> citables_of(const std::vector<context::offered_item>& items,
                                          const context::context_block& block) {
  std::vector<context::citable> all;
  for (const auto& p : block.placed) {
    if (p.key.empty())
      continue;
    const auto& i = items.at(p.offered);
    all.push_back(
        {p.key, i.id, i.path, p.as == context::shown_as::summary ? p.summary : i.content});
  }
  return all;
}

} // namespace boyd::record
