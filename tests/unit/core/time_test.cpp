#include "boyd/core/time.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

namespace boyd::time_test {

using namespace boyd;

TEST_CASE("RFC 3339 times render and read back") {
  CHECK(format_rfc3339(from_unix_ms(0)) == "1970-01-01T00:00:00Z");
  CHECK(format_rfc3339(from_unix_ms(1'770'976'800'123), true) == "2026-02-13T10:00:00.123Z");
  CHECK(format_rfc3339(from_unix_ms(-1), true) == "1969-12-31T23:59:59.999Z");
  CHECK(to_unix_ms(*parse_rfc3339("2026-02-13T12:00:00.1234+02:00")) == 1'770'976'800'123);
  CHECK(to_unix_ms(*parse_rfc3339("2026-02-13t09:30:00-00:30")) == 1'770'976'800'000);
  CHECK(*parse_rfc3339("2016-12-31T23:59:60Z") == *parse_rfc3339("2017-01-01T00:00:00Z"));
  REQUIRE(rc::check("parse(format(t)) == t", [] {
    // 1900 to 2500.
    const auto t =
        from_unix_ms(*rc::gen::inRange<std::int64_t>(-2'208'988'800'000, 16'725'225'600'000));
    RC_ASSERT(*parse_rfc3339(format_rfc3339(t, true)) == t);
    RC_ASSERT(*parse_rfc3339(format_rfc3339(t)) == std::chrono::floor<seconds>(t));
  }));
}

TEST_CASE("the years RFC 3339 cannot write are clamped") {
  CHECK(format_rfc3339(utc_time::max()) == "9999-12-31T23:59:59Z");
  CHECK(format_rfc3339(utc_time::min()) == "0000-01-01T00:00:00Z");
}

TEST_CASE("malformed times are refused") {
  for (const char* text :
       {"", "2026", "2026-02-13", "2026-02-13T10:00:00", "2026-02-30T10:00:00Z",
        "2026-02-13T24:00:00Z", "2026-02-13T10:60:00Z", "2026-02-13T10:00:61Z",
        "2026-02-13T10:00:00.Z", "2026-02-13T10:00:00Zx", "2026-02-13T10:00:00+2:00",
        "2026-02-13T10:00:00+24:00", "+026-02-13T10:00:00Z"}) {
    INFO(text);
    const auto t = parse_rfc3339(text);
    REQUIRE_FALSE(t.has_value());
    CHECK(t.error().code == errc::parse_error);
  }
  REQUIRE(rc::check("any text is read or refused", [](const std::string& text) {
    (void)parse_rfc3339(text);
    (void)parse_duration(text);
  }));
}

TEST_CASE("durations render and read back") {
  CHECK(*parse_duration("250ms") == 250ms);
  CHECK(*parse_duration("30s") == 30s);
  CHECK(*parse_duration("1h30m") == 90min);
  CHECK(*parse_duration("7d") == std::chrono::hours{168});
  CHECK(*parse_duration("0") == 0ms);
  CHECK(*parse_duration("1m5ms") == 60'005ms);
  CHECK(format_duration(90min) == "1h30m");
  CHECK(format_duration(0ms) == "0");
  CHECK(format_duration(-1500ms) == "-1s500ms");
  REQUIRE(rc::check("parse(format(d)) == d", [] {
    const milliseconds d{*rc::gen::inRange<std::int64_t>(0, 36'500LL * 86'400'000)};
    RC_ASSERT(*parse_duration(format_duration(d)) == d);
  }));
}

TEST_CASE("malformed durations are refused with an example") {
  for (const char* text : {"", "10", "s", "1x", "-1s", "1h1h", "1m1h", "1.5h", " 1s", "1 s",
                           "99999999999999999999s", "36501d", "1h30", "9223372036854775807ms"}) {
    INFO(text);
    const auto d = parse_duration(text);
    REQUIRE_FALSE(d.has_value());
    CHECK(d.error().code == errc::parse_error);
    CHECK_FALSE(d.error().next.empty());
  }
}

} // namespace boyd::time_test
