#include "boyd/queue/usage_json.hpp"

#include "usage_object.hpp"

#include <type_traits>
#include <utility>
#include <vector>

namespace boyd::queue {

namespace {

using json = nlohmann::json;

template <class T>
constexpr bool is_report_list = false;
template <class T>
constexpr bool is_report_list<std::vector<T>> = !std::is_same_v<T, std::string>;

/// What says nothing is left out.
template <class Report>
json object_of(const Report& report) {
  json j;
  each_member(report, [&](const char* key, const auto& member) {
    using type = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<type, bool>) {
      if (member)
        j[key] = true;
    } else if constexpr (is_report_list<type>) {
      for (const auto& one : member)
        j[key].push_back(object_of(one));
    } else if constexpr (requires { member.empty(); }) {
      if (!member.empty())
        j[key] = member;
    } else if constexpr (std::is_class_v<typename type::value_type>) {
      if (member)
        j[key] = object_of(*member);
    } else if (member) {
      j[key] = *member;
    }
  });
  return j;
}

/// A member of another type counts as missing.
void read(const json& j, std::string& to) {
  if (j.is_string())
    to = j.get<std::string>();
}

void read(const json& j, bool& to) {
  to = j.is_boolean() && j.get<bool>();
}

void read(const json& j, std::optional<bool>& to) {
  if (j.is_boolean())
    to = j.get<bool>();
}

void read(const json& j, usage_figure& to) {
  if (j.is_number_integer() &&
      (!j.is_number_unsigned() || std::in_range<std::int64_t>(j.get<std::uint64_t>())))
    to = j.get<std::int64_t>();
}

void read(const json& j, std::vector<std::string>& to) {
  if (j.is_array())
    for (const auto& one : j)
      if (one.is_string())
        to.push_back(one.get<std::string>());
}

void read(const json& j, std::optional<double>& to) {
  if (j.is_number())
    to = j.get<double>();
}

template <class Report>
void read(const json& j, boxed<Report>& to);

template <class Report>
requires is_report_list<std::vector<Report>>
void read(const json& j, std::vector<Report>& to) {
  for (const auto& one : j.is_array() ? j : json::array()) {
    boxed<Report> report;
    read(one, report);
    if (report)
      to.push_back(std::move(*report));
  }
}

template <class Report>
void read(const json& j, boxed<Report>& to) {
  if (!j.is_object())
    return;
  to.emplace();
  each_member(*to, [&](const char* key, auto& member) {
    if (const auto at = j.find(key); at != j.end())
      read(*at, member);
  });
}

run_usage usage_of(const json& j) {
  boxed<run_usage> u;
  read(j, u);
  return u ? std::move(*u) : run_usage{};
}

std::string to_text(const json& value) {
  return value.is_null() ? std::string()
                         : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

json usage_object(const run_usage& u) {
  return object_of(u);
}

std::string usage_json(const run_usage& u) {
  // Figures alone, nearly always so where no model was called, need no object.
  std::string out;
  bool plain = true;
  each_member(u, [&](const char* key, const auto& member) {
    using type = std::decay_t<decltype(member)>;
    if constexpr (!std::is_same_v<type, usage_figure>)
      plain = plain && member == type{};
    else if (member)
      out.append(out.empty() ? "{\"" : ",\"")
          .append(key)
          .append("\":")
          .append(std::to_string(*member));
  });
  if (!plain)
    return to_text(object_of(u));
  return out.empty() ? out : out + '}';
}

run_usage usage_from(std::string_view text) {
  return text.empty() ? run_usage{} : usage_of(json::parse(text, nullptr, false));
}

std::string to_json(const sandbox_report& s) {
  return to_text(object_of(s));
}

std::vector<earlier_attempt> earlier_attempts(std::string_view attempts_json) {
  std::vector<earlier_attempt> all;
  if (attempts_json.size() < 3) // "[]": nearly always
    return all;
  const auto attempts = json::parse(attempts_json, nullptr, false);
  for (const auto& a : attempts.is_array() ? attempts : json::array()) {
    if (!a.is_object())
      continue;
    std::string execution;
    if (const auto at = a.find("execution"); at != a.end())
      read(*at, execution);
    const auto usage = a.find("usage");
    all.push_back({execution_verdict_from(execution).value_or(execution_verdict::none),
                   usage == a.end() ? run_usage{} : usage_of(*usage)});
  }
  return all;
}

} // namespace boyd::queue
