#include "actors/planner/core.hpp"

#include "boyd/core/text.hpp"
#include "boyd/model/trouble.hpp"

namespace boyd::planning {

namespace {

plan::fallback_reason reason_of_trouble(model::trouble_kind kind) {
  using enum plan::fallback_reason;
  switch (kind) {
  case model::trouble_kind::rate_limited:
    return rate_limited;
  case model::trouble_kind::refused:
    return refusal;
  case model::trouble_kind::bad_answer:
    return bad_answer;
  case model::trouble_kind::cancelled:
    return stopped;
  default:
    return provider;
  }
}

plan::fallback_reason reason_of_cut(errc code) {
  using enum plan::fallback_reason;
  return code == errc::timed_out           ? timeout
         : code == errc::cancelled         ? stopped
         : code == errc::store_unavailable ? store
                                           : provider;
}

} // namespace

plan::fallback_reason reason_of(const exec::chat_outcome& out) {
  using enum plan::fallback_reason;
  const auto trouble = out.trouble.value_or(model::trouble_kind::unavailable);
  switch (out.end) {
  case exec::chat_end::answered:
    return none;
  case exec::chat_end::refusal:
    return refusal;
  case exec::chat_end::budget:
    return budget;
  case exec::chat_end::store:
    return store;
  case exec::chat_end::no_place:
    return trouble == model::trouble_kind::unavailable ? breaker_open : reason_of_trouble(trouble);
  case exec::chat_end::trouble:
    return reason_of_trouble(trouble);
  default:
    return bad_answer;
  }
}

advice_reply advice_of(const exec::chat_loop* talk, const std::optional<error>& cut) {
  advice_reply reply;
  auto& facts = reply.facts;
  if (talk != nullptr) {
    const auto used = talk->usage();
    facts.provider_id = used.provider;
    facts.model = used.model;
    facts.calls = static_cast<int>(used.calls.value_or(0));
    facts.input_tokens = used.input_tokens.value_or(0);
    facts.output_tokens = used.output_tokens.value_or(0);
    facts.cost = used.cost_microusd.value_or(0);
  }
  facts.fell_back = cut ? reason_of_cut(cut->code) : reason_of(talk->outcome());
  facts.why = first_line(cut ? to_string(*cut) : talk->outcome().error);
  if (facts.fell_back == plan::fallback_reason::none)
    reply.answer = talk->outcome().text;
  return reply;
}

} // namespace boyd::planning
