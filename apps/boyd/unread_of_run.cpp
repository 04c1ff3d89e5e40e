#include "unread_of_run.hpp"

namespace boyd::app {

std::vector<std::string> unread_in(const json& execution) {
  std::vector<std::string> all;
  const auto attempts = rows_of(execution, "attempts");
  const auto turns = attempts.empty() ? json::array() : rows_of(attempts.back(), "turns");
  if (turns.empty())
    return all;
  for (const auto& item : rows_of(part_of(turns.front(), "snapshot"), "items"))
    if (text_of(item, "key").empty() && text_of(item, "hash").empty()) {
      const auto reason = text_of(item, "reason");
      all.push_back(text_of(item, "path") + " could not be read" +
                    (reason.empty() ? "" : " (" + reason + ")") + "; the run goes on without it");
    }
  return all;
}

std::vector<std::string> unread_of_run(client& c, const json& dispatch) {
  const auto path = "/api/v1/executions/" + text_of(dispatch, "dispatch_id") + "/explain";
  const auto body = c.ask(get(path, {{"facts", "no"}}));
  return body ? unread_in(part_of(object_of(*body), "record")) : std::vector<std::string>{};
}

} // namespace boyd::app
