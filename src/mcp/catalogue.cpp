#include "boyd/mcp/catalogue.hpp"

#include "boyd/core/sha256.hpp"
#include "json.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace boyd::mcp {

namespace {

constexpr std::size_t hash_digits = 8;

std::string plain(std::string_view name) {
  std::string out(name);
  std::ranges::replace_if(
      out,
      [](char c) {
        return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-');
      },
      '_');
  return out;
}

/// `prefix` and `name` with a part of the hash of `original` at the end.
std::string hashed(const std::string& prefix, const std::string& name,
                   const std::string& original) {
  const auto room = tool_name_bytes - prefix.size() - hash_digits - 1;
  return prefix + name.substr(0, room) + "_" + sha256_hex(original).substr(0, hash_digits);
}

offered_tool list_resources(std::string_view server) {
  offered_tool t;
  t.kind = offered_tool::kind_t::list_resources;
  t.name = "list_resources";
  t.definition.description = "Lists the resources (documents, data) of the server " +
                             std::string(server) + ": their URIs, names and descriptions.";
  t.definition.parameters_json =
      R"({"type":"object","properties":{"cursor":{"type":"string","description":"To continue a list that was too long: the cursor at its end"}},"additionalProperties":false})";
  return t;
}

offered_tool read_resource(std::string_view server) {
  offered_tool t;
  t.kind = offered_tool::kind_t::read_resource;
  t.name = "read_resource";
  t.definition.description =
      "Reads one resource of the server " + std::string(server) + " by its URI.";
  t.definition.parameters_json =
      R"({"type":"object","properties":{"uri":{"type":"string","description":"The URI, as list_resources shows it"}},"required":["uri"],"additionalProperties":false})";
  return t;
}

} // namespace

std::vector<offered_tool> offer(std::string_view server, const std::vector<server_tool>& tools,
                                bool resources) {
  const auto prefix = std::string(tool_prefix) + std::string(server) + "__";
  std::vector<offered_tool> all;
  for (const auto& t : tools) {
    offered_tool o;
    o.name = t.name;
    o.definition.description = t.description;
    o.definition.parameters_json = t.schema_json;
    all.push_back(std::move(o));
  }
  const auto has = [&](std::string_view name) {
    return std::ranges::find(all, name, &offered_tool::name) != all.end();
  };
  if (resources && !has("list_resources") && !has("read_resource")) {
    all.push_back(list_resources(server));
    all.push_back(read_resource(server));
  }
  std::map<std::string, int> users;
  for (const auto& o : all)
    ++users[plain(o.name)];
  for (auto& o : all) {
    const auto name = plain(o.name);
    const bool fits = prefix.size() + name.size() <= tool_name_bytes;
    o.definition.name = fits && users[name] == 1 ? prefix + name : hashed(prefix, name, o.name);
  }
  return all;
}

std::string_view server_of(std::string_view name) noexcept {
  if (!name.starts_with(tool_prefix))
    return {};
  name.remove_prefix(tool_prefix.size());
  const auto end = name.find("__");
  return end == std::string_view::npos || end + 2 >= name.size() ? std::string_view()
                                                                 : name.substr(0, end);
}

bool may_name(std::string_view pattern, std::string_view server) {
  const auto begin = std::string(tool_prefix) + std::string(server) + "__";
  const auto fixed = pattern.substr(0, pattern.find_first_of("*?"));
  if (fixed.size() >= begin.size())
    return fixed.starts_with(begin);
  // A name without a pattern in it must be longer than what all names begin with.
  return fixed.size() < pattern.size() && std::string_view(begin).starts_with(fixed);
}

} // namespace boyd::mcp
