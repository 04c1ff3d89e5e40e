#include "json_view.hpp"

namespace boyd::app {

json object_of(const std::string& body) {
  auto parsed = json::parse(body, nullptr, false);
  return parsed.is_object() ? parsed : json::object();
}

std::string text_of(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null())
    return {};
  return it->is_string() ? it->get<std::string>()
                         : it->dump(-1, ' ', false, json::error_handler_t::replace);
}

std::int64_t number_of(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<std::int64_t>() : 0;
}

json rows_of(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_array() ? *it : json::array();
}

json part_of(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_object() ? *it : json::object();
}

} // namespace boyd::app
