#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// Members of JSON objects, read generously: a member that is missing, null or of another type is
/// empty, and so is every member of a value that is no object. Nothing here throws for its input.
/// For `nlohmann::json` and `nlohmann::ordered_json`.
namespace boyd {

/// The member; null where it is missing.
template <class Json>
const Json& part_in(const Json& object, const char* key) {
  static const Json none;
  const auto it = object.find(key);
  return it == object.end() ? none : *it;
}

template <class Json>
std::string text_in(const Json& object, const char* key) {
  const auto& value = part_in(object, key);
  return value.is_string() ? value.template get<std::string>() : std::string();
}

template <class Json>
bool flag_in(const Json& object, const char* key, bool missing = false) {
  const auto& value = part_in(object, key);
  return value.is_boolean() ? value.template get<bool>() : missing;
}

template <class Json>
std::int64_t number_in(const Json& object, const char* key) {
  const auto& value = part_in(object, key);
  return value.is_number_integer() ? value.template get<std::int64_t>() : 0;
}

/// A number with a fraction, or without.
template <class Json>
double share_in(const Json& object, const char* key, double missing = 0) {
  const auto& value = part_in(object, key);
  return value.is_number() ? value.template get<double>() : missing;
}

/// The texts of a list; what is no text is passed over.
template <class Json>
std::vector<std::string> texts_in(const Json& object, const char* key) {
  std::vector<std::string> all;
  const auto& value = part_in(object, key);
  if (value.is_array())
    for (const auto& one : value)
      if (one.is_string())
        all.push_back(one.template get<std::string>());
  return all;
}

/// JSON text on one line, or indented by so many blanks; bytes that are no UTF-8 are replaced.
template <class Json>
std::string dump(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// The same of `{{"key", value}, …}`.
inline std::string dump(const nlohmann::json& value, int indent = -1) {
  return dump<nlohmann::json>(value, indent);
}

} // namespace boyd
