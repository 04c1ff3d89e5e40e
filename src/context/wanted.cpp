#include "boyd/context/wanted.hpp"

#include "../core/enum_names.hpp"
#include "../core/json_values.hpp"
#include "boyd/core/outside_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace boyd::context {

using nlohmann::json;

namespace {

constexpr std::array<std::string_view, 6> origin_names{"declared", "reference", "buffer",
                                                       "bank",     "memory",    "tool"};

bool holds(const buffer& b, const reference& r) {
  return std::ranges::find(b.entries, r, &buffer::entry::what) != b.entries.end();
}

} // namespace

std::string_view name_of(origin o) noexcept {
  return detail::name_in(origin_names, o);
}

std::vector<wanted> references_in(std::string_view text, bool configured) {
  std::vector<wanted> all;
  for (auto& c : find_candidates(text))
    if (c.verdict != reference_verdict::text)
      all.push_back({std::move(c.what), origin::reference, false,
                     c.verdict == reference_verdict::if_it_exists, configured});
  return all;
}

std::string to_json(const std::vector<wanted>& all) {
  json list = json::array();
  for (const auto& w : all) {
    json one{{"reference", to_text(w.what)}, {"origin", name_of(w.from)}};
    if (w.required)
      one["required"] = true;
    if (w.if_it_exists)
      one["if_it_exists"] = true;
    if (w.configured)
      one["configured"] = true;
    list.push_back(std::move(one));
  }
  return dump(list);
}

std::vector<wanted> read_wanted(std::string_view text) {
  std::vector<wanted> all;
  const auto list = json::parse(text, nullptr, false);
  if (!list.is_array())
    return all;
  for (const auto& one : list) {
    if (!one.is_object())
      continue;
    auto what = parse_declared(text_in(one, "reference"));
    const auto from = detail::value_in<origin>(origin_names, text_in(one, "origin"));
    if (what && from)
      all.push_back({std::move(*what), *from, flag_in(one, "required"),
                     flag_in(one, "if_it_exists"), flag_in(one, "configured")});
  }
  return all;
}

result<buffer> read_buffer(std::string_view text) {
  buffer b;
  if (text.empty())
    return b;
  const auto broken = [](std::string what) {
    return fail(errc::corrupt, "cannot read the context buffer: " + std::move(what),
                "context/buffer.json", "restore an earlier version, or run: boyd context clear");
  };
  const auto sound = mend_json(text);
  if (!sound)
    return broken(sound.error().what);
  const auto all = json::parse(sound->text, nullptr, false);
  if (!all.is_object() || !all.contains("items") || !all["items"].is_array())
    return broken("no list of items");
  for (const auto& one : all["items"]) {
    if (!one.is_object())
      return broken("an item is not an object");
    auto what = parse_declared(text_in(one, "reference"));
    if (!what)
      return broken(what.error().what);
    const auto added = parse_rfc3339(text_in(one, "added_at"));
    if (!holds(b, *what))
      b.entries.push_back({std::move(*what), added ? *added : utc_time{}});
  }
  if (b.entries.size() > buffer::most_entries)
    return broken("more than " + std::to_string(buffer::most_entries) + " items");
  return b;
}

std::string to_json(const buffer& b) {
  json list = json::array();
  for (const auto& e : b.entries)
    list.push_back({{"reference", to_text(e.what)}, {"added_at", format_rfc3339(e.added)}});
  return dump({{"version", 1}, {"items", std::move(list)}}, 2) + "\n";
}

result<buffer_outcome> change(const buffer& before, const buffer_change& what, utc_time now) {
  buffer_outcome out{before, {}, {}, {}};
  auto& entries = out.after.entries;
  if (what.clear)
    for (auto& e : std::exchange(entries, {}))
      out.removed.push_back(to_text(e.what));
  for (const auto& text : what.remove) {
    const auto r = parse_declared(text);
    if (!r)
      return fail(r.error());
    const auto it = std::ranges::find(entries, *r, &buffer::entry::what);
    if (it == entries.end())
      return fail(errc::not_found, "not in the context buffer", to_text(*r),
                  "list the items with: boyd context ls");
    out.removed.push_back(to_text(*r));
    entries.erase(it);
  }
  for (const auto& text : what.add) {
    auto r = parse_declared(text);
    if (!r)
      return fail(std::move(r.error()));
    if (r->kind == reference_kind::command)
      if (const auto words = words_of_command(r->target); !words)
        return fail(words.error());
    const bool known = holds(out.after, *r);
    (known ? out.known : out.added).push_back(to_text(*r));
    if (!known)
      entries.push_back({std::move(*r), now});
  }
  if (entries.size() > buffer::most_entries)
    return fail(errc::limit_exceeded,
                "the context buffer would have more than " + std::to_string(buffer::most_entries) +
                    " items",
                {}, "remove items first: boyd context rm, boyd context clear");
  return out;
}

std::vector<wanted> references_of(const buffer& b) {
  std::vector<wanted> all;
  all.reserve(b.entries.size());
  for (const auto& e : b.entries)
    all.push_back({e.what, origin::buffer, false, false, false});
  return all;
}

} // namespace boyd::context
