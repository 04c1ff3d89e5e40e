#include "boyd/state/untold.hpp"

#include <nlohmann/json.hpp>

namespace boyd::state {

using nlohmann::json;

std::string untold_scope(std::string_view kernel_id) {
  return "carried:" + std::string(kernel_id);
}

std::string render_untold(const untold& u) {
  return json{{"cycle_id", u.cycle_id}, {"problems", u.problems}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

untold parse_untold(std::string_view text) {
  untold u;
  const auto kept = json::parse(text, nullptr, false);
  if (!kept.is_object())
    return u;
  const auto id = kept.find("cycle_id");
  const auto problems = kept.find("problems");
  if (id == kept.end() || !id->is_string() || problems == kept.end() || !problems->is_array())
    return u;
  u.cycle_id = id->get<std::string>();
  for (const auto& p : *problems)
    if (p.is_string())
      u.problems.push_back(p.get<std::string>());
  return u;
}

} // namespace boyd::state
