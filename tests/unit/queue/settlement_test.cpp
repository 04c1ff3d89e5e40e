#include "boyd/queue/settlement.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

namespace boyd::settlement_test {

using namespace boyd;
using namespace boyd::queue;

namespace {

claimed_dispatch claimed(int attempt, int max_attempts = 3) {
  claimed_dispatch c;
  c.row.dispatch_id = "d";
  c.row.fence = 4;
  c.row.attempt = attempt;
  c.row.max_attempts = max_attempts;
  return c;
}

run_outcome ended(execution_verdict e, failure_class f = failure_class::none) {
  run_outcome o;
  o.execution = e;
  o.failure = f;
  return o;
}

settle_to decided(const claimed_dispatch& c, const run_outcome& o,
                  stop_cause stop = stop_cause::none) {
  return decide_settlement(c, o, {}, 0.5, stop).to;
}

} // namespace

TEST_CASE("an attempt leads where its outcome says") {
  const auto good = ended(execution_verdict::succeeded);
  const auto slow = ended(execution_verdict::timed_out, failure_class::transient);
  const auto wrong = ended(execution_verdict::failed, failure_class::deterministic);
  REQUIRE(decided(claimed(1), good) == settle_to::done);
  REQUIRE(decided(claimed(1), good, stop_cause::shutting_down) == settle_to::done);
  REQUIRE(decided(claimed(1), slow) == settle_to::retry);
  REQUIRE(decided(claimed(3), slow) == settle_to::failed);
  REQUIRE(decided(claimed(1, 1), slow) == settle_to::failed);
  REQUIRE(decided(claimed(1), wrong) == settle_to::failed);
  REQUIRE(decided(claimed(3), slow, stop_cause::shutting_down) == settle_to::release);
  REQUIRE(decided(claimed(1), slow, stop_cause::by_operator) == settle_to::cancelled);
  REQUIRE(decided(claimed(1), ended(execution_verdict::indeterminate)) == settle_to::failed);
  REQUIRE(decide_settlement(claimed(1), good, {}, 0, stop_cause::none).fence == 4);
}

TEST_CASE(
    "case 46 fd-exhaustion: what a node has no room to begin is given back for a while, and no "
    "attempt") {
  auto none_left = ended(execution_verdict::failed, failure_class::transient);
  none_left.no_room = true;
  for (const double unit : {0.0, 1.0}) {
    const auto s = decide_settlement(claimed(1, 1), none_left, {}, unit, stop_cause::none);
    CHECK(s.to == settle_to::release);
    CHECK(s.delay == (unit == 0.0 ? 2s : 4s));
  }
  CHECK(decided(claimed(1), none_left, stop_cause::by_operator) == settle_to::cancelled);
}

TEST_CASE("case R10: who died with the process host comes back without an attempt, not for ever") {
  auto killed = ended(execution_verdict::failed, failure_class::transient);
  killed.host_lost = true;
  auto c = claimed(1, 1);
  milliseconds before{0};
  for (int given_back = 0; given_back < 8; ++given_back) {
    c.row.fence = 1 + given_back;
    const auto latest = decide_settlement(c, killed, {}, 1.0, stop_cause::none);
    CHECK(latest.to == settle_to::release);
    CHECK(latest.delay > before); // further and further apart
    before = latest.delay;
    CHECK(decide_settlement(c, killed, {}, 0.0, stop_cause::none).delay == 2s);
  }
  CHECK(before <= 6min);
  c.row.fence = 9;
  CHECK(decided(c, killed) == settle_to::failed);
  c.row.max_attempts = 3;
  CHECK(decided(c, killed) == settle_to::retry);
  CHECK(decided(claimed(1), killed, stop_cause::by_operator) == settle_to::cancelled);
  killed.failure = failure_class::deterministic;
  CHECK(decided(claimed(1), killed) == settle_to::failed);
}

TEST_CASE("field case 20: an attempt is not repeated before the time that its provider asked for") {
  auto asked = ended(execution_verdict::failed, failure_class::transient);
  const auto delay = [&](usage_figure wait) {
    asked.usage.retry_after_ms = wait;
    return decide_settlement(claimed(1), asked, {}, 0, stop_cause::none).delay;
  };
  CHECK(delay(300'000) == 5min);
  CHECK(delay(86'400'000) == 24h);
  CHECK(delay(1'000'000'000'000) == 8 * 24h);
  CHECK(delay(std::nullopt) == 0ms);
  CHECK(delay(-5) == 0ms);
  // Never earlier than without it.
  asked.usage.retry_after_ms = 1;
  CHECK(decide_settlement(claimed(1), asked, {}, 1, stop_cause::none).delay ==
        backoff_delay({}, 1, 1));
}

TEST_CASE("back-off is exponential with full jitter under a cap") {
  const retry_limits limits{10, 100ms, 1s};
  REQUIRE(backoff_delay(limits, 1, 1.0) == 100ms);
  REQUIRE(backoff_delay(limits, 3, 0.5) == 200ms);
  REQUIRE(backoff_delay(limits, 60, 1.0) == 1s);
  REQUIRE(rc::check("within [0, cap] for any attempt", [&] {
    const auto d =
        backoff_delay(limits, *rc::gen::arbitrary<int>(), *rc::gen::inRange(0, 1000) / 1000.0);
    RC_ASSERT(d >= 0ms);
    RC_ASSERT(d <= limits.cap);
  }));
}

} // namespace boyd::settlement_test
