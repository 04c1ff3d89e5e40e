#include "fact_meta_internal.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace boyd::graph {

namespace {

using json = nlohmann::json;

/// Members of an object without nesting, escapes and blanks; false: it is read as JSON.
bool read_flat(std::string_view rest,
               std::vector<std::pair<std::string_view, std::string_view>>& to) {
  if (!rest.starts_with('{') || !rest.ends_with('}') || rest.find('\\') != rest.npos)
    return false;
  rest = rest.substr(1, rest.size() - 2);
  while (!rest.empty()) {
    const auto key_end = rest.find('"', 1);
    if (!rest.starts_with('"') || key_end == rest.npos || rest.substr(key_end + 1, 1) != ":")
      return false;
    const auto key = rest.substr(1, key_end - 1);
    rest.remove_prefix(key_end + 2);
    const bool is_text = rest.starts_with('"');
    auto end = is_text ? rest.find('"', 1) : rest.find(',');
    if (is_text && end == rest.npos)
      return false;
    end = is_text ? end + 1 : std::min(end, rest.size());
    const auto value = rest.substr(0, end);
    if (!is_text && value.find_first_of("[{\" ") != value.npos)
      return false;
    to.emplace_back(key, value);
    rest.remove_prefix(end);
    if (!rest.empty() && !rest.starts_with(','))
      return false;
    rest.remove_prefix(rest.empty() ? 0 : 1);
  }
  return true;
}

} // namespace

fact_meta::fact_meta(std::string_view text) {
  constexpr std::size_t usual_members = 16;
  members_.reserve(usual_members);
  if (read_flat(text, members_))
    return;
  members_.clear();
  const auto value = json::parse(text, nullptr, false);
  if (!value.is_object())
    return;
  for (const auto& [key, member] : value.items()) {
    const auto& name = made_.emplace_back(key);
    members_.emplace_back(
        name, made_.emplace_back(member.dump(-1, ' ', false, json::error_handler_t::replace)));
  }
}

std::string_view fact_meta::raw(std::string_view key) const {
  const auto it = std::ranges::find(members_, key, [](const auto& m) { return m.first; });
  return it == members_.end() ? std::string_view() : it->second;
}

std::string fact_meta::text(std::string_view key) const {
  const auto value = raw(key);
  if (!value.starts_with('"'))
    return {};
  if (value.find('\\') == value.npos)
    return std::string(value.substr(1, value.size() - 2));
  const auto parsed = json::parse(value, nullptr, false);
  return parsed.is_string() ? parsed.get<std::string>() : std::string();
}

bool fact_meta::flag(std::string_view key) const {
  return raw(key) == "true";
}

std::optional<double> fact_meta::number(std::string_view key) const {
  const auto value = raw(key);
  double n = 0;
  const auto* const end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, n);
  return !value.empty() && read.ec == std::errc{} && read.ptr == end ? std::optional(n)
                                                                     : std::nullopt;
}

} // namespace boyd::graph
