#include "boyd/context/snapshot.hpp"

#include "../core/enum_names.hpp"
#include "../core/json_values.hpp"
#include "boyd/core/sha256.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace boyd::context {

using nlohmann::json;

namespace {

constexpr std::array all_types{item_type::file, item_type::directory, item_type::runtime,
                               item_type::generated};
constexpr std::array all_sections{section::high, section::medium, section::low};
constexpr std::array all_shown{shown_as::full, shown_as::summary, shown_as::left_out};
constexpr std::array all_origins{origin::declared, origin::reference, origin::buffer,
                                 origin::bank,     origin::memory,    origin::tool};

/// The value with this name, else the first.
template <class List>
auto value_named(const List& values, std::string_view name) {
  const auto it = std::ranges::find_if(values, [&](auto v) { return name_of(v) == name; });
  return it == values.end() ? values.front() : *it;
}

std::string canonical(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json item_json(const snapshot_item& i) {
  json j{{"key", i.key},
         {"id", i.id},
         {"path", i.path},
         {"type", name_of(i.type)},
         {"hash", i.hash},
         {"tokens", i.tokens},
         {"as", name_of(i.as == shown_as::failed ? shown_as::left_out : i.as)},
         {"section", name_of(i.where)},
         {"score", i.score},
         {"origin", name_of(i.from)},
         {"reason", i.reason}};
  if (!i.shown.empty())
    j["shown"] = i.shown;
  if (!i.shortened_by.empty())
    j["shortened_by"] = i.shortened_by;
  if (i.whole > 0)
    j["whole"] = i.whole;
  return j;
}

json items_json(const std::vector<snapshot_item>& items) {
  json all = json::array();
  for (const auto& i : items)
    all.push_back(item_json(i));
  return all;
}

snapshot_item read_item(const json& j) {
  snapshot_item i;
  i.key = text_in(j, "key");
  i.id = text_in(j, "id");
  i.path = text_in(j, "path");
  i.type = value_named(all_types, text_in(j, "type"));
  i.hash = text_in(j, "hash");
  if (const auto tokens = j.find("tokens"); tokens != j.end() && tokens->is_number_integer())
    i.tokens = tokens->get<std::int64_t>();
  i.as = value_named(all_shown, text_in(j, "as"));
  i.where = value_named(all_sections, text_in(j, "section"));
  if (const auto score = j.find("score"); score != j.end() && score->is_number())
    i.score = score->get<double>();
  i.from = value_named(all_origins, text_in(j, "origin"));
  i.reason = text_in(j, "reason");
  i.shown = text_in(j, "shown");
  i.shortened_by = text_in(j, "shortened_by");
  i.whole = number_in(j, "whole");
  return i;
}

void name_it(snapshot& s) {
  s.id = sha256_hex(canonical(items_json(s.items)));
}

} // namespace

snapshot snapshot_of(const std::vector<offered_item>& items, const context_block& block) {
  snapshot s;
  for (const auto& p : block.placed) {
    const auto& i = items.at(p.offered);
    s.items.push_back({p.key, i.id, i.path, i.type, i.content_hash, p.tokens, p.as, p.where,
                       i.score, i.from, p.reason,
                       p.summary.empty() ? std::string() : sha256_hex(p.summary),
                       p.as != shown_as::summary ? ""
                       : p.is_by_model           ? "model"
                                                 : "rules",
                       p.as == shown_as::full ? 0 : p.whole});
  }
  name_it(s);
  return s;
}

snapshot with_result(const snapshot& before, const std::string& scope, const std::string& call,
                     const std::string& hash, std::int64_t tokens) {
  snapshot s = before;
  snapshot_item result;
  result.id = item_id(scope, item_type::runtime, call);
  result.path = call;
  result.type = item_type::runtime;
  result.hash = hash;
  result.tokens = tokens;
  result.where = section::medium;
  result.from = origin::tool;
  const auto known = std::ranges::find(s.items, result.id, &snapshot_item::id);
  if (known == s.items.end())
    s.items.push_back(std::move(result));
  else
    *known = std::move(result);
  name_it(s);
  return s;
}

std::string to_json(const snapshot& s) {
  return canonical({{"id", s.id}, {"items", items_json(s.items)}});
}

snapshot read_snapshot(std::string_view text) {
  snapshot s;
  const auto all = json::parse(text, nullptr, false);
  if (!all.is_object() || !all.contains("items") || !all["items"].is_array())
    return s;
  s.id = text_in(all, "id");
  for (const auto& i : all["items"])
    if (i.is_object())
      s.items.push_back(read_item(i));
  return s;
}

snapshot_diff diff_of(const snapshot& before, const snapshot& after) {
  std::map<std::string, std::string> hashes;
  for (const auto& i : before.items)
    hashes[i.path] = i.hash;
  snapshot_diff d;
  for (const auto& i : after.items) {
    const auto known = hashes.find(i.path);
    if (known == hashes.end()) {
      d.added.push_back(i.path);
      continue;
    }
    if (known->second != i.hash)
      d.changed.push_back(i.path);
    hashes.erase(known);
  }
  for (auto& [path, hash] : hashes)
    d.removed.push_back(path);
  std::ranges::sort(d.added);
  std::ranges::sort(d.changed);
  return d;
}

} // namespace boyd::context
