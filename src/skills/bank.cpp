#include "boyd/skills/bank.hpp"

#include "../core/json_values.hpp"
#include "boyd/context/block.hpp"
#include "boyd/core/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace boyd::skills {

namespace {

using json = nlohmann::json;
using nlohmann::ordered_json;

constexpr int index_version = 1;
constexpr std::int64_t summary_tokens = 120;
constexpr std::size_t most_tags = 12;

std::string dump(const ordered_json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::optional<utc_time> time_in(const json& object, const char* key) {
  const auto t = parse_rfc3339(text_in(object, key));
  return t ? std::optional(*t) : std::nullopt;
}

context::item_type type_in(const json& object) {
  using context::item_type;
  const auto name = text_in(object, "type");
  for (const auto t : {item_type::directory, item_type::runtime, item_type::generated})
    if (name == context::name_of(t))
      return t;
  return item_type::file;
}

std::string source_of(std::string_view scope) {
  if (scope.starts_with("kernel:"))
    return "global";
  return scope.starts_with("repo:") || scope.starts_with("dir:") ? "project" : "external";
}

tl::unexpected<error> broken(const char* what) {
  return fail(errc::corrupt, std::string("not ") + what, "context/bank",
              "it is written anew after the next cycle that changes it");
}

} // namespace

std::string bank_file(std::string_view id) {
  return "context/bank/" + std::string(id) + ".json";
}

std::vector<std::string> tags_of(std::string_view path) {
  std::vector<std::string> tags{std::string(context::name_of(context::semantic_of(path, {})))};
  std::string word;
  const auto add = [&] {
    if (word.size() > 1 && tags.size() < most_tags && std::ranges::find(tags, word) == tags.end())
      tags.push_back(word);
    word.clear();
  };
  for (const char c : path) {
    const bool is_capital = c >= 'A' && c <= 'Z';
    if (is_capital || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
        static_cast<unsigned char>(c) >= 0x80)
      word += is_capital ? static_cast<char>(c - 'A' + 'a') : c;
    else
      add();
  }
  add();
  return tags;
}

std::optional<context::reference> reference_of(const graph::learned_item& item) {
  using context::reference_kind;
  if (item.type == context::item_type::directory)
    return context::reference{reference_kind::directory, item.path, 0, 0};
  if (item.type != context::item_type::file)
    return std::nullopt;
  context::reference r{reference_kind::file, item.path, 0, 0};
  const auto colon = item.path.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return r;
  const auto* const end = item.path.data() + item.path.size();
  int first = 0;
  const auto read = std::from_chars(item.path.data() + colon + 1, end, first);
  int last = first;
  auto stop = read.ptr;
  if (read.ec == std::errc{} && stop != end && *stop == '-')
    stop = stop + 1 == end ? end : std::from_chars(stop + 1, end, last).ptr;
  // Anything else behind a colon belongs to the name.
  if (read.ec == std::errc{} && stop == end && first > 0)
    r = {reference_kind::file, item.path.substr(0, colon), first, last};
  return r;
}

bank_item bank_item_of(std::string_view id, const graph::learned_item& item,
                       std::string_view content) {
  bank_item i;
  i.id = id;
  i.path = item.path;
  i.type = item.type;
  i.source = source_of(item.scope);
  i.scope = item.scope;
  i.content_hash = item.hash;
  i.summary = context::summarize(content, context::semantic_of(item.path, content), summary_tokens);
  i.tags = tags_of(item.path);
  i.first_seen = item.counts.created;
  i.frozen = item.frozen;
  return i;
}

bank_entry bank_entry_of(std::string_view id, const graph::learned_item& item) {
  return {std::string(id),
          item.path,
          item.type,
          item.counts.confidence,
          item.counts.use_count,
          item.counts.last_used,
          tags_of(item.path)};
}

std::string to_json(const bank_item& i) {
  return dump({{"id", i.id},
               {"path", i.path},
               {"type", context::name_of(i.type)},
               {"source", i.source},
               {"scope", i.scope},
               {"content_hash", i.content_hash},
               {"summary", i.summary},
               {"tags", i.tags},
               {"first_seen", format_rfc3339(i.first_seen, true)},
               {"frozen", i.frozen},
               {"deprecated", i.deprecated}});
}

result<bank_item> read_bank_item(std::string_view text) {
  const auto j = json::parse(text, nullptr, false);
  if (!j.is_object() || text_in(j, "id").empty())
    return broken("an item of the bank");
  bank_item i;
  i.id = text_in(j, "id");
  i.path = text_in(j, "path");
  i.type = type_in(j);
  i.source = text_in(j, "source");
  i.scope = text_in(j, "scope");
  i.content_hash = text_in(j, "content_hash");
  i.summary = text_in(j, "summary");
  i.tags = texts_in(j, "tags");
  i.first_seen = time_in(j, "first_seen").value_or(utc_time{});
  i.frozen = flag_in(j, "frozen");
  i.deprecated = flag_in(j, "deprecated");
  return i;
}

std::string to_json(std::vector<bank_entry> all) {
  std::ranges::sort(all, {}, &bank_entry::id);
  auto items = ordered_json::array();
  for (const auto& e : all)
    items.push_back({{"id", e.id},
                     {"path", e.path},
                     {"type", context::name_of(e.type)},
                     {"confidence", e.confidence},
                     {"use_count", e.use_count},
                     {"last_used", e.last_used ? ordered_json(format_rfc3339(*e.last_used, true))
                                               : ordered_json(nullptr)},
                     {"tags", e.tags}});
  return dump({{"version", index_version}, {"items", std::move(items)}});
}

result<std::vector<bank_entry>> read_bank_index(std::string_view text) {
  const auto j = json::parse(text, nullptr, false);
  const auto items = j.is_object() ? j.find("items") : j.end();
  if (!j.is_object() || items == j.end() || !items->is_array())
    return broken("the index of the bank");
  std::vector<bank_entry> all;
  for (const auto& i : *items) {
    if (!i.is_object())
      return broken("the index of the bank");
    const auto confidence = i.find("confidence");
    const auto uses = i.find("use_count");
    all.push_back({text_in(i, "id"), text_in(i, "path"), type_in(i),
                   confidence != i.end() && confidence->is_number() ? confidence->get<double>() : 0,
                   uses != i.end() && uses->is_number_integer() ? uses->get<std::int64_t>() : 0,
                   time_in(i, "last_used"), texts_in(i, "tags")});
  }
  return all;
}

} // namespace boyd::skills
