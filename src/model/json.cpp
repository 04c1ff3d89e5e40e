#include "json.hpp"

#include "boyd/core/json_depth.hpp"
#include "boyd/core/outside_json.hpp"

#include <algorithm>

namespace boyd::model {
namespace {

/// Of tokens, milliseconds, codes: what is larger is a slip, and sums must not overflow.
constexpr std::int64_t count_limit = 1'000'000'000'000;

/// Nearly all is strict JSON, which is parsed once.
result<nlohmann::json> parse(std::string_view text, const outside_json_options& options) {
  if (const auto shallow = check_json_depth(text); !shallow)
    return fail(shallow.error());
  auto value = nlohmann::json::parse(text, nullptr, false);
  if (!value.is_discarded())
    return value;
  const auto mended = mend_json(text, options);
  if (!mended)
    return fail(mended.error());
  return nlohmann::json::parse(mended->text);
}

} // namespace

result<nlohmann::json> parse_json(std::string_view text) {
  return parse(text, {});
}

result<nlohmann::json> parse_piece(std::string_view text) {
  return parse(text, {.is_piece = true});
}

const nlohmann::json* member(const nlohmann::json& value, const char* key) {
  if (!value.is_object())
    return nullptr;
  const auto it = value.find(key);
  return it == value.end() ? nullptr : &*it;
}

std::string text_of(const nlohmann::json& value, const char* key) {
  const auto* found = member(value, key);
  return found && found->is_string() ? found->get<std::string>() : std::string{};
}

std::optional<std::int64_t> count_of(const nlohmann::json& value, const char* key) {
  const auto* found = member(value, key);
  if (!found || !found->is_number())
    return std::nullopt;
  const auto number = found->get<double>();
  return static_cast<std::int64_t>(std::clamp(number, 0.0, static_cast<double>(count_limit)));
}

std::string to_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace boyd::model
