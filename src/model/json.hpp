#pragma once

#include "boyd/core/result.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace boyd::model {

/// Parses JSON from outside, as boyd/core/outside_json.hpp reads it. `limit_exceeded` when it is
/// too deep (measured before it is parsed), `parse_error` when it is none.
result<nlohmann::json> parse_json(std::string_view text);

/// The same of an event of a stream: a later join_pieces() joins characters that events cut in two.
result<nlohmann::json> parse_piece(std::string_view text);

/// The member `key` of an object; null when `value` is none or has no such member.
const nlohmann::json* member(const nlohmann::json& value, const char* key);

/// The text of the member `key`; empty when there is none.
std::string text_of(const nlohmann::json& value, const char* key);

/// The number of the member `key`, at least 0 and within reason; nothing when there is none.
std::optional<std::int64_t> count_of(const nlohmann::json& value, const char* key);

/// JSON text of `value`; bytes that are no UTF-8 are replaced.
std::string to_text(const nlohmann::json& value);

} // namespace boyd::model
