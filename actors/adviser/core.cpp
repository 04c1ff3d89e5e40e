#include "actors/adviser/core.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>

namespace boyd::adviser {

namespace {

plan::fallback_reason reason_of_trouble(model::trouble_kind kind) {
  switch (kind) {
  case model::trouble_kind::rate_limited:
    return plan::fallback_reason::rate_limited;
  case model::trouble_kind::refused:
    return plan::fallback_reason::refusal;
  case model::trouble_kind::bad_answer:
    return plan::fallback_reason::bad_answer;
  case model::trouble_kind::cancelled:
    return plan::fallback_reason::stopped;
  default:
    return plan::fallback_reason::provider;
  }
}

} // namespace

plan::fallback_reason reason_of(const exec::chat_outcome& out) {
  switch (out.end) {
  case exec::chat_end::answered:
    return plan::fallback_reason::none;
  case exec::chat_end::refusal:
    return plan::fallback_reason::refusal;
  case exec::chat_end::budget:
    return plan::fallback_reason::budget;
  case exec::chat_end::store:
    return plan::fallback_reason::store;
  case exec::chat_end::trouble:
    return reason_of_trouble(out.trouble.value_or(model::trouble_kind::unavailable));
  default:
    break;
  }
  return plan::fallback_reason::bad_answer;
}

plan::fallback_reason reason_of_place(const model::trouble& why) {
  if (why.kind == model::trouble_kind::unavailable)
    return plan::fallback_reason::breaker_open;
  return reason_of_trouble(why.kind);
}

plan::advice cost_of(const std::string& usage_json) {
  plan::advice a;
  const auto j = nlohmann::json::parse(usage_json, nullptr, false);
  if (!j.is_object())
    return a;
  a.provider_id = j.value("provider", "");
  a.model = j.value("model", "");
  a.calls = j.value("calls", 0);
  a.input_tokens = j.value("input_tokens", std::int64_t{0});
  a.output_tokens = j.value("output_tokens", std::int64_t{0});
  a.cost = j.value("cost_microusd", std::int64_t{0});
  return a;
}

} // namespace boyd::adviser
