#include "actors/adviser/core.hpp"
#include "pch.hpp"

namespace boyd::adviser_core_test {

using namespace boyd;
using plan::fallback_reason;

TEST_CASE("adviser: every end of a conversation has its class", "[llm]") {
  const auto reason = [](exec::chat_end end, std::optional<model::trouble_kind> t = {}) {
    exec::chat_outcome o;
    o.end = end;
    o.trouble = t;
    return adviser::reason_of(o);
  };
  CHECK(reason(exec::chat_end::answered) == fallback_reason::none);
  CHECK(reason(exec::chat_end::refusal) == fallback_reason::refusal);
  CHECK(reason(exec::chat_end::bad_answer) == fallback_reason::bad_answer);
  CHECK(reason(exec::chat_end::budget) == fallback_reason::budget);
  CHECK(reason(exec::chat_end::store) == fallback_reason::store);
  CHECK(reason(exec::chat_end::none) == fallback_reason::bad_answer);
  const auto trouble = [&](model::trouble_kind k) { return reason(exec::chat_end::trouble, k); };
  CHECK(trouble(model::trouble_kind::rate_limited) == fallback_reason::rate_limited);
  CHECK(trouble(model::trouble_kind::refused) == fallback_reason::refusal);
  CHECK(trouble(model::trouble_kind::bad_answer) == fallback_reason::bad_answer);
  for (const auto k : {model::trouble_kind::unavailable, model::trouble_kind::overloaded,
                       model::trouble_kind::quota, model::trouble_kind::unauthorized,
                       model::trouble_kind::not_found, model::trouble_kind::too_long})
    CHECK(trouble(k) == fallback_reason::provider);
  model::trouble closed;
  CHECK(adviser::reason_of_place(closed) == fallback_reason::breaker_open);
  closed.kind = model::trouble_kind::not_found;
  CHECK(adviser::reason_of_place(closed) == fallback_reason::provider);
}

TEST_CASE("adviser: what a question cost is read from the conversation's usage", "[llm]") {
  const auto a = adviser::cost_of(
      R"({"calls":2,"input_tokens":10,"output_tokens":3,"cost_microusd":7,"provider":"p","model":"m"})");
  CHECK(a.provider_id == "p");
  CHECK(a.model == "m");
  CHECK(a.calls == 2);
  CHECK(a.input_tokens == 10);
  CHECK(a.output_tokens == 3);
  CHECK(a.cost == 7);
  CHECK(adviser::cost_of("nonsense") == plan::advice{});
}

} // namespace boyd::adviser_core_test
