#include "boyd/core/day.hpp"
#include "support/pch.hpp"

namespace boyd::day_test {

using namespace boyd;

TEST_CASE("days are those of UTC", "[time]") {
  CHECK(utc_day(from_unix_ms(0)) == "1970-01-01");
  CHECK(utc_day(*parse_rfc3339("2026-02-13T23:59:59.999Z")) == "2026-02-13");
  CHECK(utc_day(*parse_rfc3339("2026-02-14T00:30:00+01:00")) == "2026-02-13");
  CHECK(is_day("2024-02-29"));
  for (const auto* text :
       {"", "2026-02-30", "2026-2-13", "2026-02-13T", "13.02.2026", "today", "2026-02-1x"}) {
    INFO(text);
    CHECK_FALSE(is_day(text));
  }
}

} // namespace boyd::day_test
