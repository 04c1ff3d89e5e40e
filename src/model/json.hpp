#pragma once

#include "boyd/core/result.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace boyd::model {

/// Parses JSON from outside. `limit_exceeded` when it is too deep (measured before it is parsed),
/// `parse_error` when it is none or no UTF-8.
result<nlohmann::json> parse_json(std::string_view text);

/// The member `key` of an object; null when `value` is none or has no such member.
const nlohmann::json* member(const nlohmann::json& value, const char* key);

/// The text of the member `key`; empty when there is none.
std::string text_of(const nlohmann::json& value, const char* key);

/// The number of the member `key`, at least 0 and within reason; nothing when there is none.
std::optional<std::int64_t> count_of(const nlohmann::json& value, const char* key);

/// JSON text of `value`; bytes that are no UTF-8 are replaced.
std::string to_text(const nlohmann::json& value);

} // namespace boyd::model
