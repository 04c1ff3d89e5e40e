#include "json_view.hpp"

namespace boyd::app {

namespace {

/// "2026-02-13T10:00:00": the part of an RFC 3339 time that people read.
constexpr std::size_t readable_time = 19;
constexpr std::size_t place_of_t = 10;

} // namespace

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

std::string moment_of(const json& object, const char* key) {
  auto text = text_of(object, key);
  if (text.size() < readable_time)
    return "-";
  text.resize(readable_time);
  text[place_of_t] = ' ';
  text += 'Z';
  return text;
}

} // namespace boyd::app
