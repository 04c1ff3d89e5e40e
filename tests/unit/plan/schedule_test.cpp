#include "support/pch.hpp"
#include "unit/plan/cron_oracle.hpp"
#include "unit/plan/fake_zones.hpp"

#include <algorithm>

namespace boyd::schedule_test {

using namespace boyd;
using namespace boyd::test;

TEST_CASE("five fields, names, lists, steps and the day rule") {
  const auto next = [](const char* expression, const char* after) {
    return format_rfc3339(*rule_of(expression).next_after(at(after)));
  };
  CHECK(next("*/10 * * * *", "2026-02-13T10:00:00Z") == "2026-02-13T10:10:00Z");
  CHECK(next("*/10 * * * *", "2026-02-13T09:59:59.999Z") == "2026-02-13T10:00:00Z");
  CHECK(next("5,35 8-10/2 * * *", "2026-02-13T08:35:00Z") == "2026-02-13T10:05:00Z");
  CHECK(next("0 9 * * MON-fri", "2026-02-13T09:00:00Z") == "2026-02-16T09:00:00Z");
  CHECK(next("0 0 1 jan *", "2026-02-13T00:00:00Z") == "2027-01-01T00:00:00Z");
  CHECK(next("0 0 * * 7", "2026-02-13T00:00:00Z") == "2026-02-15T00:00:00Z");
  CHECK(next("0 0 13 * 5", "2026-02-13T00:00:00Z") == "2026-02-20T00:00:00Z"); // day or weekday
  CHECK(next("0 0 29 2 *", "2026-02-13T00:00:00Z") == "2028-02-29T00:00:00Z");
  CHECK(next("@hourly", "2026-02-13T10:00:00Z") == "2026-02-13T11:00:00Z");
  CHECK(next("@daily", "2026-02-13T10:00:00Z") == "2026-02-14T00:00:00Z");
  CHECK(next("@weekly", "2026-02-13T10:00:00Z") == "2026-02-15T00:00:00Z");
  CHECK(next("@monthly", "2026-02-13T10:00:00Z") == "2026-03-01T00:00:00Z");
  CHECK(next("@yearly", "2026-02-13T10:00:00Z") == "2027-01-01T00:00:00Z");
  CHECK(next("@every 30s", "2026-02-13T10:00:00Z") == "2026-02-13T10:00:30Z");
}

TEST_CASE("@every counts from the epoch, whoever asks and whenever") {
  const auto rule = rule_of("@every 7s");
  REQUIRE(rc::check("multiples of the period", [&] {
    const auto t = from_unix_ms(*rc::gen::inRange<std::int64_t>(-1'000'000'000, 2'000'000'000'000));
    const auto next = *rule.next_after(t);
    RC_ASSERT(to_unix_ms(next) % 7000 == 0);
    RC_ASSERT(next > t);
    RC_ASSERT(next - t <= 7s);
    RC_ASSERT(*rule.latest_at_or_before(t) == next - 7s);
  }));
}

TEST_CASE("at: one slot, in the schedule's zone, by the rule for fixed times") {
  const auto rule = rule_of("at 2026-03-29T02:30", "Test/Jump");
  const auto slot = at("2026-03-29T01:00:00Z"); // the jump: 02:30 is not on the clock
  CHECK(rule.next_after(at("2026-01-01T00:00:00Z")) == slot);
  CHECK(rule.next_after(slot - 1ms) == slot);
  CHECK(rule.next_after(slot) == std::nullopt);
  CHECK(rule.latest_at_or_before(slot) == slot);
  CHECK(rule.latest_at_or_before(at("2050-01-01T00:00:00Z")) == slot);
  CHECK(rule.latest_at_or_before(slot - 1ms) == std::nullopt);
  CHECK(rule.due_at("default", slot) == slot);
  // Of a time that comes twice the first one; a moment needs no zone.
  CHECK(rule_of("at 2026-10-25T02:30", "Test/Jump").next_after(slot) == at("2026-10-25T00:30:00Z"));
  CHECK(rule_of("at 2026-10-25T02:30Z", "Test/Jump").next_after(slot) ==
        at("2026-10-25T02:30:00Z"));
}

TEST_CASE("the rarest schedule is found across a century without a leap day") {
  // A leap day that is a Sunday: "*/7" is Sunday, and a star makes both day fields bind.
  const auto rule = rule_of("0 0 29 2 */7");
  const auto next = *rule.next_after(at("2072-03-01T00:00:00Z"));
  CHECK(std::chrono::weekday{std::chrono::floor<std::chrono::days>(next)} == std::chrono::Sunday);
  CHECK(format_rfc3339(next).substr(4, 6) == "-02-29");
}

TEST_CASE("a wrong schedule says which field and what is expected") {
  const auto complaint = [](const char* expression, const char* tz = "UTC") {
    config::schedule s;
    s.expression = expression;
    s.tz = tz;
    const auto rule = plan::schedule_rule::make(s, fake_zones{});
    REQUIRE_FALSE(rule.has_value());
    return to_string(rule.error());
  };
  CHECK_THAT(complaint("61 * * * *"),
             Catch::Matchers::Contains("minute") && Catch::Matchers::Contains("0-59"));
  CHECK_THAT(complaint("* * * foo *"), Catch::Matchers::Contains("month"));
  CHECK_THAT(complaint("0 0 30 2 *"), Catch::Matchers::Contains("never fire"));
  CHECK_THAT(complaint("* * * *"), Catch::Matchers::Contains("five fields"));
  CHECK_THAT(complaint("* * * * *", "Test/Jmup"), Catch::Matchers::Contains("Test/Jmup"));
}

TEST_CASE("dst-change: a skipped local time fires once, at the jump") {
  const auto rule = rule_of("30 2 * * *", "Test/Jump");
  CHECK(*rule.next_after(at("2026-03-28T12:00:00Z")) == at("2026-03-29T01:00:00Z"));
  CHECK(*rule.next_after(at("2026-03-29T01:00:00Z")) == at("2026-03-30T00:30:00Z"));
  CHECK(*rule.latest_at_or_before(at("2026-03-29T12:00:00Z")) == at("2026-03-29T01:00:00Z"));
  // What was left out falls together with what is due at the jump anyway.
  const auto often = rule_of("*/20 * * * *", "Test/Jump");
  CHECK(*often.next_after(at("2026-03-29T00:40:00Z")) == at("2026-03-29T01:00:00Z"));
  CHECK(*often.next_after(at("2026-03-29T01:00:00Z")) == at("2026-03-29T01:20:00Z"));
}

TEST_CASE("dst-change: a repeated local time fires the first time only") {
  const auto rule = rule_of("30 2 * * *", "Test/Jump");
  CHECK(*rule.next_after(at("2026-10-24T12:00:00Z")) == at("2026-10-25T00:30:00Z"));
  CHECK(*rule.next_after(at("2026-10-25T00:30:00Z")) == at("2026-10-26T01:30:00Z"));
  CHECK(*rule.latest_at_or_before(at("2026-10-25T12:00:00Z")) == at("2026-10-25T00:30:00Z"));
  const auto often = rule_of("*/20 * * * *", "Test/Jump");
  CHECK(*often.next_after(at("2026-10-25T00:40:00Z")) == at("2026-10-25T01:00:00Z"));
}

TEST_CASE("dst-change: any cron agrees with walking the minutes") {
  const fake_zones zones;
  const auto zone = *zones.find("Test/Jump");
  const auto check = [&](std::chrono::sys_days first, int span) {
    const auto cron = arbitrary_cron();
    const auto rule = rule_of(cron.text().c_str(), "Test/Jump");
    const auto from = std::chrono::sys_seconds{first} +
                      std::chrono::minutes{*rc::gen::inRange(0, span * 24 * 60)};
    const auto to = from + std::chrono::hours{30};
    const auto expected = walk_minutes(cron, *zone, from, to);
    std::vector<utc_time> forward;
    for (auto t = rule.next_after(from); t && *t <= to; t = rule.next_after(*t))
      forward.push_back(*t);
    RC_LOG() << cron.text();
    RC_ASSERT(first_difference(forward, expected) == "");
    std::vector<utc_time> backward;
    for (auto t = rule.latest_at_or_before(to); t && *t > from;
         t = rule.latest_at_or_before(*t - 1ms))
      backward.push_back(*t);
    std::ranges::reverse(backward);
    RC_ASSERT(first_difference(backward, expected) == "");
  };
  using namespace std::chrono;
  REQUIRE(rc::check("on ordinary days", [&] { check(sys_days{2026y / 5 / 1}, 100); }));
  REQUIRE(rc::check("around the skipped hour", [&] { check(sys_days{2026y / 3 / 27}, 3); }));
  REQUIRE(rc::check("around the repeated hour", [&] { check(sys_days{2026y / 10 / 23}, 3); }));
}

TEST_CASE("jitter is the same everywhere, spread, and keeps the order of slots") {
  config::schedule s;
  s.expression = "*/10 * * * *";
  s.jitter = 1h; // cut to the ten minutes between slots
  const auto rule = rule_of(s);
  std::set<milliseconds> offsets;
  auto slot = at("2026-02-13T00:00:00Z");
  for (int i = 0; i < 144; ++i) {
    const auto next = *rule.next_after(slot);
    const auto due = rule.due_at("default", slot);
    CHECK(due >= slot);
    CHECK(due < next);
    CHECK(due == rule_of(s).due_at("default", slot));
    offsets.insert(due - slot);
    slot = next;
  }
  CHECK(offsets.size() > 130);
  CHECK(*offsets.begin() < 1min);
  CHECK(*offsets.rbegin() > 9min);
  CHECK(rule.due_at("a", slot) != rule.due_at("b", slot));
  CHECK(rule_of("*/10 * * * *").due_at("a", slot) == slot);
}

TEST_CASE("times at the ends of the calendar are answered, not overflowed") {
  const auto rule = rule_of("* * * * *", "Test/Jump");
  const auto every = rule_of("@every 1s");
  CHECK_FALSE(rule.next_after(utc_time::max()).has_value());
  CHECK_FALSE(every.next_after(utc_time::max()).has_value());
  CHECK(rule.next_after(utc_time::min()).has_value());
  CHECK_FALSE(rule.latest_at_or_before(utc_time::min()).has_value());
  CHECK(every.latest_at_or_before(utc_time::max()).has_value());
}

} // namespace boyd::schedule_test
