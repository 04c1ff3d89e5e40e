#include "boyd/model/bounded_message.hpp"

#include "json.hpp"

namespace boyd::model {

message_json without_long_arguments(const message_json& message, std::size_t most) {
  auto value = parse_json(message);
  if (!value || !value->is_object())
    return message;
  const auto calls = value->find("tool_calls");
  if (calls == value->end() || !calls->is_array())
    return message;
  bool changed = false;
  for (auto& call : *calls) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object())
      continue;
    auto& function = call["function"];
    const auto found = function.find("arguments");
    if (found == function.end() || !found->is_string())
      continue;
    const auto size = found->get_ref<const std::string&>().size();
    if (size <= most)
      continue;
    *found = "{\"left_out\":\"" + std::to_string(size) + " bytes, at most " + std::to_string(most) +
             " are taken\"}";
    changed = true;
  }
  return changed ? to_text(*value) : message;
}

} // namespace boyd::model
