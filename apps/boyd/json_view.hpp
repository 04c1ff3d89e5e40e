#pragma once

#include "src/core/json_values.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

/// Reading answers of the control API without trusting them: what is missing or of another type is
/// empty.
namespace boyd::app {

using json = nlohmann::json;

/// The object in `body`, or an empty one.
json object_of(const std::string& body);

/// A member as text; numbers and booleans as JSON writes them, null and missing ones are empty.
std::string text_of(const json& object, const char* key);

std::int64_t number_of(const json& object, const char* key);

/// A member that is an array, or an empty one.
json rows_of(const json& object, const char* key);

/// A member that is an object, or an empty one.
json part_of(const json& object, const char* key);

} // namespace boyd::app
