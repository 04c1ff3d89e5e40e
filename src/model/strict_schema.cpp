#include "strict_schema.hpp"

#include "json.hpp"

#include <algorithm>
#include <array>

namespace boyd::model {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 9> refused_words{"oneOf",
                                                   "allOf",
                                                   "not",
                                                   "if",
                                                   "then",
                                                   "else",
                                                   "dependentRequired",
                                                   "dependentSchemas",
                                                   "patternProperties"};

bool is_object_type(const json& schema) {
  const auto* type = member(schema, "type");
  if (!type)
    return schema.contains("properties");
  return *type == "object" ||
         (type->is_array() && std::find(type->begin(), type->end(), "object") != type->end());
}

/// Every property is required, and there are no others.
bool is_closed(const json& schema) {
  const auto* others = member(schema, "additionalProperties");
  if (!others || !others->is_boolean() || others->get<bool>())
    return false;
  const auto* properties = member(schema, "properties");
  if (!properties || !properties->is_object())
    return true;
  const auto* required = member(schema, "required");
  return std::all_of(properties->items().begin(), properties->items().end(), [&](const auto& p) {
    return required && required->is_array() &&
           std::find(required->begin(), required->end(), p.key()) != required->end();
  });
}

// NOLINTNEXTLINE(misc-no-recursion): parse_json has bounded the depth.
bool fits(const json& schema) {
  if (!schema.is_object())
    return false;
  if (std::any_of(refused_words.begin(), refused_words.end(),
                  [&](const char* word) { return schema.contains(word); }))
    return false;
  if (is_object_type(schema) && !is_closed(schema))
    return false;
  for (const char* key : {"properties", "$defs", "definitions"})
    if (const auto* inner = member(schema, key); inner && inner->is_object())
      if (!std::all_of(inner->begin(), inner->end(), fits))
        return false;
  if (const auto* any = member(schema, "anyOf"))
    if (!any->is_array() || !std::all_of(any->begin(), any->end(), fits))
      return false;
  const auto* items = member(schema, "items");
  return !items || fits(*items);
}

} // namespace

bool fits_strict(std::string_view schema) {
  const auto value = parse_json(schema);
  return value && value->is_object() && is_object_type(*value) && !value->contains("anyOf") &&
         fits(*value);
}

} // namespace boyd::model
