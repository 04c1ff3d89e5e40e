#include "actors/planner/core.hpp"
#include "pch.hpp"

namespace boyd::planner_core_test {

using namespace boyd;
using plan::fallback_reason;

TEST_CASE("planner: every end of a conversation has its class", "[llm]") {
  const auto reason = [](exec::chat_end end, std::optional<model::trouble_kind> t = {}) {
    exec::chat_outcome o;
    o.end = end;
    o.trouble = t;
    return planning::reason_of(o);
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
  const auto refused = [&](model::trouble_kind k) { return reason(exec::chat_end::no_place, k); };
  CHECK(refused(model::trouble_kind::unavailable) == fallback_reason::breaker_open);
  CHECK(refused(model::trouble_kind::not_found) == fallback_reason::provider);
  CHECK(refused(model::trouble_kind::rate_limited) == fallback_reason::rate_limited);
}

TEST_CASE("planner: a conversation that was cut short has its class", "[llm]") {
  const auto cut = [](errc code) {
    return planning::advice_of(nullptr, error{code, "why\nmore", {}, {}}).facts;
  };
  CHECK(cut(errc::timed_out).fell_back == fallback_reason::timeout);
  CHECK(cut(errc::cancelled).fell_back == fallback_reason::stopped);
  CHECK(cut(errc::not_found).fell_back == fallback_reason::provider);
  CHECK(cut(errc::not_found).why == "why");
  CHECK(cut(errc::not_found).calls == 0);
}

} // namespace boyd::planner_core_test
