#pragma once

#include <nlohmann/json.hpp>
#include <valijson/schema_parser.hpp>

#include <string>

namespace boyd::exec {

/// A schema in a form that valijson can check against any value. What it would give to std::regex,
/// whose recursion over a long text overflows the stack, is under words of our own (see
/// add_text_rules): `pattern` and `format`. `patternProperties` becomes `properties`, for the names
/// that `value` has. Throws std::runtime_error with the reason when the schema cannot be used: a
/// pattern that RE2 does not know, a reference that leads back to itself without a step into the
/// value, or out of the schema.
nlohmann::json usable_schema(nlohmann::json schema, const nlohmann::json& value);

/// Teaches the parser those words. They are checked by RE2, in linear time and without recursion.
void add_text_rules(valijson::SchemaParser& parser);

/// A value that would keep a thread for minutes: `uniqueItems` compares each with each. Empty:
/// none.
std::string too_large_for(const nlohmann::json& schema, const nlohmann::json& value);

} // namespace boyd::exec
