#include "boyd/core/limits.hpp"
#include "boyd/plan/quiet.hpp"
#include "boyd/plan/wake.hpp"
#include "support/pch.hpp"
#include "unit/plan/fake_zones.hpp"

#include <climits>
#include <rapidcheck.h>

namespace boyd::wake_quiet_test {

using namespace boyd;
using namespace boyd::test;

TEST_CASE("quiet hours begin at their slot and end by themselves") {
  config::quiet_hours night;
  night.from.expression = "0 22 * * *";
  night.from.tz = "Test/Jump";
  night.length = 8h;
  night.reason = "night";
  config::quiet_hours lunch;
  lunch.from.expression = "0 5 * * *";
  lunch.length = 2h;
  lunch.reason = "early";
  const auto rules = *plan::make_quiet_rules({night, lunch}, fake_zones{});
  const auto quiet = [&](const char* t) { return plan::is_quiet(rules, at(t)); };
  CHECK_FALSE(quiet("2026-02-13T20:59:59Z").has_value());
  CHECK(quiet("2026-02-13T21:00:00Z") == plan::quiet_now{"night", at("2026-02-14T05:00:00Z")});
  CHECK(quiet("2026-02-14T04:59:59Z")->reason == "night");
  CHECK(quiet("2026-02-14T05:00:00Z")->reason == "early");
  CHECK_FALSE(quiet("2026-02-14T07:00:00Z").has_value());
  night.length = 10h; // both hold: the one that lasts longer
  const auto longer = *plan::make_quiet_rules({lunch, night}, fake_zones{});
  CHECK(plan::is_quiet(longer, at("2026-02-14T05:30:00Z"))->until == at("2026-02-14T07:00:00Z"));
  lunch.from.expression = "0 25 * * *";
  CHECK_FALSE(plan::make_quiet_rules({lunch}, fake_zones{}).has_value());
}

TEST_CASE("the wait between wake checks doubles up to its limit") {
  CHECK(plan::wake_delay(0, 1min, 1h) == 0ms);
  CHECK(plan::wake_delay(1, 1min, 1h) == 1min);
  CHECK(plan::wake_delay(5, 1min, 1h) == 16min);
  CHECK(plan::wake_delay(6, 1min, 1h) == 32min);
  CHECK(plan::wake_delay(7, 1min, 1h) == 1h);
  CHECK(plan::wake_delay(INT_MAX, 1min, 1h) == 1h);
  CHECK(plan::wake_delay(3, 1min, 30s) == 30s);
}

TEST_CASE("unchanged answers count, a change starts again") {
  const auto t = at("2026-02-13T10:00:00Z");
  config::wake_policy policy;
  auto step = plan::advance_wake(std::nullopt, "h1", t);
  CHECK(step.answer.kind == plan::wake_kind::changed);
  CHECK(plan::wake_due_at(step.memory, policy, t) == t);
  step = plan::advance_wake(step.memory, "h1", t);
  CHECK(step.answer.kind == plan::wake_kind::unchanged);
  CHECK(plan::wake_due_at(step.memory, policy, t) == t + limits::wake_base);
  step = plan::advance_wake(step.memory, "h1", t + 5min);
  CHECK(plan::wake_due_at(step.memory, policy, t + 5min) == t + 5min + 2 * limits::wake_base);
  step = plan::advance_wake(step.memory, "h2", t + 9min);
  CHECK(step.answer.kind == plan::wake_kind::changed);
  CHECK(step.memory.noops == 0);
}

TEST_CASE("clock-step: a wake check from the future is made at once") {
  const plan::wake_memory memory{5, at("2026-02-13T10:00:00Z"), "h"};
  const auto now = at("2026-02-13T09:00:00Z");
  CHECK(plan::wake_due_at(memory, {}, now) == now);
}

TEST_CASE("what is remembered of wake checks reads back") {
  REQUIRE(rc::check("read(write(m)) == m", [](const std::string& hash) {
    const plan::wake_memory m{*rc::gen::inRange(0, 1000),
                              from_unix_ms(*rc::gen::inRange<std::int64_t>(-1000, 1LL << 42)),
                              hash};
    RC_ASSERT(plan::read_wake_memory(plan::write_wake_memory(m)) == m);
  }));
  for (const char* text : {"", "1", "1 2", "x 2 h", "1 x h", "-1 2 h", "1  h"})
    CHECK_FALSE(plan::read_wake_memory(text).has_value());
}

} // namespace boyd::wake_quiet_test
