#include "boyd/plan/advice.hpp"

#include "../core/json_values.hpp"
#include "advice_json.hpp"
#include "boyd/core/json_depth.hpp"
#include "boyd/core/money.hpp"
#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <array>

namespace boyd::plan {

using nlohmann::json;

namespace {

constexpr std::array<std::string_view, 11> reason_names{
    "none",         "timeout",  "refusal",  "bad_answer", "budget", "breaker_open",
    "rate_limited", "provider", "cooldown", "stopped",    "store"};

/// What some readers take for the end of a line: U+0085, U+2028 and U+2029 in UTF-8.
constexpr std::array<std::string_view, 3> line_ends{"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"};

} // namespace

bool is_kernel_voice(std::string_view id) noexcept {
  return id.starts_with("kernel:");
}

std::string_view name_of(fallback_reason r) noexcept {
  const auto index = static_cast<std::size_t>(r);
  return index < reason_names.size() ? reason_names[index] : std::string_view{"unknown"};
}

std::optional<fallback_reason> fallback_reason_from(std::string_view name) noexcept {
  const auto at = std::ranges::find(reason_names, name);
  if (at == reason_names.end())
    return std::nullopt;
  return static_cast<fallback_reason>(at - reason_names.begin());
}

std::string say_cost(const advice& a) {
  if (a.model.empty())
    return "no model was called";
  return "model " + a.provider_id + "/" + a.model + ", " + std::to_string(a.calls) +
         (a.calls == 1 ? " call, " : " calls, ") + std::to_string(a.input_tokens) + "+" +
         std::to_string(a.output_tokens) + " tokens, " + format_dollars(a.cost) + " dollars, " +
         format_duration(a.latency);
}

json advice_json(const advice& a) {
  return {{"fallback", name_of(a.fell_back)},
          {"why", a.why},
          {"provider", a.provider_id},
          {"model", a.model},
          {"calls", a.calls},
          {"input_tokens", a.input_tokens},
          {"output_tokens", a.output_tokens},
          {"cost_microusd", a.cost},
          {"latency_ms", a.latency.count()}};
}

advice advice_from(const json& j) {
  advice a;
  // A record that says something else was not written by this version: its word is not taken.
  a.fell_back = fallback_reason_from(text_in(j, "fallback")).value_or(fallback_reason::bad_answer);
  a.why = text_in(j, "why");
  a.provider_id = text_in(j, "provider");
  a.model = text_in(j, "model");
  a.calls = static_cast<int>(std::clamp<std::int64_t>(number_in(j, "calls"), 0, 1'000'000));
  a.input_tokens = number_in(j, "input_tokens");
  a.output_tokens = number_in(j, "output_tokens");
  a.cost = number_in(j, "cost_microusd");
  a.latency = milliseconds{number_in(j, "latency_ms")};
  return a;
}

json parse_bounded(std::string_view text) {
  if (text.size() > answer_bytes || !check_json_depth(text))
    return json(json::value_t::discarded);
  return json::parse(text, nullptr, false);
}

json parse_answer(std::string_view text) {
  if (text.size() > answer_bytes)
    return json(json::value_t::discarded);
  const auto found = find_json(text);
  return found ? json::parse(found->text) : json(json::value_t::discarded);
}

std::string one_line(std::string_view text, std::size_t characters) {
  std::string clean = sanitize_utf8(text);
  for (const auto end : line_ends)
    for (auto at = clean.find(end); at != std::string::npos; at = clean.find(end, at))
      clean.replace(at, end.size(), " ");
  std::ranges::replace_if(
      clean, [](char c) { return (c >= 0 && c < ' ') || c == '\x7F'; }, ' ');
  return std::string(cut_characters(trim(clean), characters));
}

} // namespace boyd::plan
