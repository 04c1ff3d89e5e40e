#pragma once

#include "../core/json_values.hpp"
#include "boyd/core/text.hpp"
#include "boyd/mcp/json_rpc.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

/// JSON inside the room: texts were checked for depth when they came in.
namespace boyd::mcp {

/// Members keep their order: schemas are shown and hashed as the server wrote them.
using json = nlohmann::ordered_json;

/// A text that is known to be JSON; null when it is not.
inline json parse(std::string_view text) {
  return json::parse(text, nullptr, false, false);
}

inline std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The member of an object, or null.
inline const json& member(const json& object, const char* name) {
  static const json none;
  if (!object.is_object())
    return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

/// An id as a message has it: a text or a whole number, also one that is written as 1.0.
std::optional<rpc_id> id_in(const json& value);

} // namespace boyd::mcp
