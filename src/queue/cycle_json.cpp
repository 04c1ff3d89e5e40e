#include "boyd/queue/cycle_json.hpp"

#include "../core/json_values.hpp"

#include <nlohmann/json.hpp>

namespace boyd::queue {

namespace {

using json = nlohmann::json;

} // namespace

std::string names_to_json(const std::vector<std::string>& names) {
  return dump(json(names));
}

std::vector<std::string> names_from_json(std::string_view text) {
  const auto all = json::parse(text, nullptr, false);
  std::vector<std::string> names;
  if (!all.is_array())
    return names;
  for (const auto& item : all)
    if (item.is_string())
      names.push_back(item.get<std::string>());
  return names;
}

std::string agents_to_json(const std::vector<agent_result>& agents) {
  auto all = json::array();
  for (const auto& a : agents)
    all.push_back({{"agent_id", a.agent_id}, {"status", a.status}, {"summary", a.summary}});
  return dump(all);
}

std::vector<agent_result> agents_from_json(std::string_view text) {
  const auto all = json::parse(text, nullptr, false);
  std::vector<agent_result> agents;
  if (!all.is_array())
    return agents;
  for (const auto& item : all)
    if (item.is_object())
      agents.push_back(
          {text_in(item, "agent_id"), text_in(item, "status"), text_in(item, "summary")});
  return agents;
}

} // namespace boyd::queue
