#include "boyd/plan/single_run.hpp"

#include <nlohmann/json.hpp>

namespace boyd::plan {

using nlohmann::json;

std::string text_of(const single_run& run) {
  return json{{"agent", run.agent_id}, {"message", run.message}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

std::optional<single_run> read_single_run(std::string_view text) {
  const auto all = json::parse(text, nullptr, false);
  if (!all.is_object())
    return std::nullopt;
  const auto agent = all.find("agent");
  const auto message = all.find("message");
  if (agent == all.end() || !agent->is_string() || message == all.end() || !message->is_string())
    return std::nullopt;
  return single_run{agent->get<std::string>(), message->get<std::string>()};
}

} // namespace boyd::plan
