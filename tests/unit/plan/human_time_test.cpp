#include "boyd/plan/human_time.hpp"
#include "support/pch.hpp"
#include "unit/plan/fake_zones.hpp"

#include <rapidcheck.h>

namespace boyd::human_time_test {

using namespace boyd;
using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

/// UTC+1, in summer UTC+2 (see fake_zones); with a name for each.
class named_zone final : public time_zone {
 public:
  local_seconds to_local(std::chrono::sys_seconds t) const override { return rules_->to_local(t); }
  mapping to_utc(local_seconds local) const override { return rules_->to_utc(local); }
  std::string abbreviation(std::chrono::sys_seconds t) const override {
    return to_local(t).time_since_epoch() - t.time_since_epoch() == std::chrono::hours{2} ? "CEST"
                                                                                          : "CET";
  }

 private:
  std::shared_ptr<const time_zone> rules_ = *fake_zones{}.find("Test/Jump");
};

const named_zone berlin;
/// A Saturday; 13:30 in the zone.
const utc_time now = at("2026-11-28T12:30:00Z");

std::string read(const char* text, utc_time when = now) {
  const auto span = plan::parse_human_time(text, when, berlin);
  return span ? format_rfc3339(span->first) + " to " + format_rfc3339(span->last, true)
              : span.error().what;
}

std::string brief(const char* text) {
  return plan::show_time_briefly(at(text), now, berlin);
}

} // namespace

TEST_CASE("times are read as people write them, in their zone") {
  CHECK(read("now") == "2026-11-28T12:30:00Z to 2026-11-28T12:30:00.000Z");
  CHECK(read("10:00") == "2026-11-28T09:00:00Z to 2026-11-28T09:00:59.999Z");
  CHECK(read("9:05:07") == "2026-11-28T08:05:07Z to 2026-11-28T08:05:07.999Z");
  // The latest one that has begun.
  CHECK(read("13:30") == "2026-11-28T12:30:00Z to 2026-11-28T12:30:59.999Z");
  CHECK(read("13:31") == "2026-11-27T12:31:00Z to 2026-11-27T12:31:59.999Z");
  CHECK(read("yesterday 10:00") == "2026-11-27T09:00:00Z to 2026-11-27T09:00:59.999Z");
  CHECK(read("today") == "2026-11-27T23:00:00Z to 2026-11-28T22:59:59.999Z");
  CHECK(read("Monday 07:00") == "2026-11-23T06:00:00Z to 2026-11-23T06:00:59.999Z");
  CHECK(read("sat") == "2026-11-27T23:00:00Z to 2026-11-28T22:59:59.999Z");
  CHECK(read("2026-11-28") == "2026-11-27T23:00:00Z to 2026-11-28T22:59:59.999Z");
  CHECK(read(" 2026-11-01 10:00 ") == "2026-11-01T09:00:00Z to 2026-11-01T09:00:59.999Z");
  CHECK(read("2026-12-01T09:00:30") == "2026-12-01T08:00:30Z to 2026-12-01T08:00:30.999Z");
  CHECK(read("-2h") == "2026-11-28T10:30:00Z to 2026-11-28T10:30:00.000Z");
  CHECK(read("1h30m ago") == "2026-11-28T11:00:00Z to 2026-11-28T11:00:00.000Z");
  CHECK(read("2026-02-13T10:00:00Z") == "2026-02-13T10:00:00Z to 2026-02-13T10:00:00.999Z");
  CHECK(read("2026-02-13T10:00:00.250+01:00") ==
        "2026-02-13T09:00:00Z to 2026-02-13T09:00:00.250Z");
}

TEST_CASE("where the clocks change, a time that comes twice is both, and one that is left out the "
          "change") {
  CHECK(read("2026-10-25 02:30") == "2026-10-25T00:30:00Z to 2026-10-25T01:30:59.999Z");
  CHECK(read("2026-10-25 02:30:00 CET") == "2026-10-25T01:30:00Z to 2026-10-25T01:30:00.999Z");
  CHECK(read("2026-10-25 02:30:00 CEST") == "2026-10-25T00:30:00Z to 2026-10-25T00:30:00.999Z");
  CHECK_THAT(read("2026-03-29 02:30"), Catch::Matchers::StartsWith("2026-03-29T01:00:00Z"));
  CHECK(read("2026-10-25") == "2026-10-24T22:00:00Z to 2026-10-25T22:59:59.999Z");
}

TEST_CASE("what is no time is refused with the forms") {
  for (const char* text : {"", "noon", "25:00", "10:60", "10:0", "10:00:0", "2026-02-30",
                           "2026-13-01", "yesterday noon", "-2", "2h", "10:00 yesterday",
                           "2026-11-28 10:00:00 XYZ", "+1h", "yesterdayy"}) {
    INFO(text);
    const auto span = plan::parse_human_time(text, now, berlin);
    REQUIRE_FALSE(span.has_value());
    CHECK(span.error().code == errc::invalid_argument);
    CHECK_THAT(span.error().what, Contains("not a time: "));
    CHECK_THAT(span.error().next, Contains("yesterday 10:00"));
  }
}

TEST_CASE("any bytes are a time or refused, and a time never ends before it begins") {
  REQUIRE(rc::check([](const std::string& text) {
    if (const auto span = plan::parse_human_time(text, now, berlin))
      RC_ASSERT(span->first <= span->last);
  }));
}

TEST_CASE("what is shown can be read again, and means the same second") {
  REQUIRE(rc::check([] {
    // Around both changes of the clocks, and far from them.
    const auto t =
        from_unix_ms(1000 * *rc::gen::inRange<std::int64_t>(1'770'000'000, 1'800'000'000));
    const auto span = plan::parse_human_time(plan::show_time(t, berlin), now, berlin);
    RC_ASSERT(span.has_value());
    RC_ASSERT(span->first == t);
    RC_ASSERT(span->last == t + 999ms);
  }));
}

TEST_CASE("a time of day without a day has begun, at most a day ago") {
  REQUIRE(rc::check([] {
    const auto when =
        from_unix_ms(1000 * *rc::gen::inRange<std::int64_t>(1'770'000'000, 1'800'000'000));
    const auto h = *rc::gen::inRange(0, 24);
    const auto m = *rc::gen::inRange(0, 60);
    const auto text = std::to_string(h) + (m < 10 ? ":0" : ":") + std::to_string(m);
    const auto span = plan::parse_human_time(text, when, berlin);
    RC_ASSERT(span.has_value());
    RC_ASSERT(span->first <= when);
    RC_ASSERT(when - span->first <= std::chrono::hours{25});
  }));
}

TEST_CASE("times are shown with their zone") {
  CHECK(plan::show_time(at("2026-02-13T10:00:00Z"), berlin) == "2026-02-13 11:00:00 CET");
  CHECK(plan::show_time(at("2026-07-13T22:00:00.9Z"), berlin) == "2026-07-14 00:00:00 CEST");
  const auto unnamed = *fake_zones{}.find("Test/Jump");
  CHECK(plan::show_time(at("2026-02-13T10:00:00Z"), *unnamed) == "2026-02-13 11:00:00 +01:00");
}

TEST_CASE("brief times are near by distance, and far by day") {
  CHECK(brief("2026-11-28T12:30:00.400Z") == "now");
  CHECK(brief("2026-11-28T12:29:55Z") == "5 s ago");
  CHECK(brief("2026-11-28T12:27:00Z") == "3 min ago");
  CHECK(brief("2026-11-28T12:40:00Z") == "in 10 min");
  CHECK(brief("2026-11-28T09:00:00Z") == "10:00");
  CHECK(brief("2026-11-27T09:00:00Z") == "yesterday 10:00");
  CHECK(brief("2026-11-29T06:00:00Z") == "tomorrow 07:00");
  CHECK(brief("2026-12-01T06:00:00Z") == "Tue 07:00");
  CHECK(brief("2026-11-20T06:00:00Z") == "2026-11-20");
  REQUIRE(rc::check([](std::int64_t away) {
    const auto t = now + milliseconds{away % (std::int64_t{1} << 42)};
    RC_ASSERT(plan::show_time_briefly(t, now, berlin).size() <= 16U);
  }));
}

TEST_CASE("lengths are shown in at most two units") {
  CHECK(plan::show_length(0ms) == "0 ms");
  CHECK(plan::show_length(-5s) == "0 ms");
  CHECK(plan::show_length(350ms) == "350 ms");
  CHECK(plan::show_length(2449ms) == "2.4 s");
  CHECK(plan::show_length(185s) == "3 min 5 s");
  CHECK(plan::show_length(3min) == "3 min");
  CHECK(plan::show_length(130min) == "2 h 10 min");
  CHECK(plan::show_length(std::chrono::hours{76}) == "3 d 4 h");
}

} // namespace boyd::human_time_test
