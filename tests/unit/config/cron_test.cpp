#include "boyd/config/cron.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

namespace boyd::cron_test {

using boyd::config::cron_fields;
using boyd::config::parse_cron;

namespace {

cron_fields good(std::string_view text) {
  const auto fields = parse_cron(text);
  INFO(text << (fields ? "" : ": " + fields.error().what));
  REQUIRE(fields.has_value());
  return *fields;
}

std::string bad(std::string_view text) {
  const auto fields = parse_cron(text);
  INFO(text);
  REQUIRE_FALSE(fields.has_value());
  CHECK(fields.error().code == boyd::errc::invalid_argument);
  return fields.error().what + "; " + fields.error().next;
}

template <std::size_t N>
std::string bits(const std::bitset<N>& set) {
  std::string out;
  for (std::size_t i = 0; i < N; ++i) {
    out += set.test(i) ? std::to_string(i) + " " : "";
  }
  return out;
}

} // namespace

TEST_CASE("cron: lists, ranges, steps and names", "[cron]") {
  const auto f = good("*/15 8-10,20 1,15-17 jan,Mar-MAY mon-fri");
  CHECK(bits(f.minute) == "0 15 30 45 ");
  CHECK(bits(f.hour) == "8 9 10 20 ");
  CHECK(bits(f.day) == "1 15 16 17 ");
  CHECK(bits(f.month) == "1 3 4 5 ");
  CHECK(bits(f.weekday) == "1 2 3 4 5 ");
  CHECK_FALSE(f.day_star);
  CHECK_FALSE(f.weekday_star);
  CHECK(bits(good("5/20 1-9/4 * * *").minute) == "5 25 45 ");
  CHECK(bits(good("5/20 1-9/4 * * *").hour) == "1 5 9 ");
}

TEST_CASE("cron: stars cover the field and are remembered", "[cron]") {
  const auto f = good("  *\t* * *  */2 ");
  CHECK(f.minute.all());
  CHECK(f.hour.all());
  CHECK(f.day.count() == 31);
  CHECK_FALSE(f.day.test(0));
  CHECK(f.month.count() == 12);
  CHECK(f.day_star);
  CHECK(f.weekday_star);
}

TEST_CASE("cron: Sunday is 0, 7 and sun", "[cron]") {
  CHECK(bits(good("0 0 * * 0").weekday) == "0 ");
  CHECK(bits(good("0 0 * * 7").weekday) == "0 ");
  CHECK(bits(good("0 0 * * SUN").weekday) == "0 ");
  CHECK(bits(good("0 0 * * 5-7").weekday) == "0 5 6 ");
  CHECK(bits(good("0 0 * * fri-sun").weekday) == "0 5 6 ");
  CHECK(good("0 0 * * *").weekday.all());
}

TEST_CASE("cron: names of whole schedules", "[cron]") {
  CHECK(good("@hourly") == good("0 * * * *"));
  CHECK(good("@daily") == good("0 0 * * *"));
  CHECK(good("@midnight") == good("@daily"));
  CHECK(good("@weekly") == good("0 0 * * 0"));
  CHECK(good("@monthly") == good("0 0 1 * *"));
  CHECK(good("@yearly") == good("0 0 1 1 *"));
  CHECK(good("@annually") == good("@yearly"));
  CHECK(bad("@hourl").find("did you mean @hourly?") != std::string::npos);
  CHECK(bad("daily") ==
        "a schedule has five fields (minute hour day month weekday), not 1; did you "
        "mean @daily?");
  CHECK(bad("10:05").ends_with("did you mean \"5 10 * * *\"?"));
  CHECK(bad("24:00").find("did you mean") == std::string::npos);
  CHECK(bad("every 5m").ends_with("did you mean \"@every 5m\"?"));
  CHECK(bad("5m").ends_with("did you mean \"@every 5m\"?"));
  CHECK(bad("0 10").find("did you mean") == std::string::npos);
  bad("@reboot");
  bad("@");
}

TEST_CASE("cron: @every", "[cron]") {
  using namespace std::chrono_literals;
  CHECK(good("@every 30s").every == boyd::milliseconds{30s});
  CHECK(good("@every 1h30m").every == boyd::milliseconds{90min});
  CHECK_FALSE(good("* * * * *").every.has_value());
  for (const auto* text : {"@every", "@every 0", "@every 999ms", "@every 30", "@every 367d",
                           "@every -1s", "@every30s"}) {
    bad(text);
  }
}

TEST_CASE("cron: at, once", "[cron]") {
  using namespace std::chrono;
  const auto civil = [](hours h, minutes m, boyd::seconds s) {
    return std::variant<boyd::local_seconds, boyd::utc_time>(
        boyd::local_seconds{local_days{2026y / 12 / 1}} + h + m + s);
  };
  CHECK(good("at 2026-12-01T09:00").once == civil(9h, 0min, 0s));
  CHECK(good(" at: 2026-12-01 23:59:58 ").once == civil(23h, 59min, 58s));
  const boyd::utc_time moment = sys_days{2026y / 12 / 1} + 8h;
  for (const auto* text :
       {"at 2026-12-01T09:00:00+01:00", "at 2026-12-01T08:00Z", "at 2026-12-01T08:00:00Z"})
    CHECK(good(text).once == std::variant<boyd::local_seconds, boyd::utc_time>(moment));
  CHECK_FALSE(good("* * * * *").once.has_value());
  for (const auto* text :
       {"at", "at 2026-12-01", "at 09:00", "at 2026-13-01T09:00", "at 2026-02-30T09:00",
        "at 2026-12-01T24:00", "at 2026-12-01T09:60", "at 2026-12-01T09:00:60",
        "at 2026-12-01T9:00", "at 2026-12-01T09:00x", "at 2026-12-01T09.00", "at tomorrow"})
    bad(text);
  CHECK(bad("at tomorrow").find("\"tomorrow\" is not a date and time") != std::string::npos);
}

TEST_CASE("cron: an error names its field", "[cron]") {
  CHECK(bad("60 * * * *").find("minute") != std::string::npos);
  CHECK(bad("* 24 * * *").find("hour") != std::string::npos);
  CHECK(bad("* * 0 * *").find("day") != std::string::npos);
  CHECK(bad("* * * 13 *").find("month") != std::string::npos);
  CHECK(bad("* * * * 8").find("weekday") != std::string::npos);
  CHECK(bad("* * * *").find(", not 4") != std::string::npos);
  CHECK(bad("* * * * * *").find(", not 6") != std::string::npos);
  CHECK(bad("9-5 * * * *").find("is reversed") != std::string::npos);
  for (const auto* text : {"", "*/0 * * * *", "*/ * * * *", "1, * * * *", "1-2-3 * * * *",
                           "a * * * *", "** * * * *", "-1 * * * *", "1/2/3 * * * *",
                           "99999999999 * * * *", "* * ? * *", "* * L * *", "jan * * * *"}) {
    bad(text);
  }
  bad(std::string(100'000, '*'));
}

TEST_CASE("cron: what can never fire is refused", "[cron]") {
  CHECK(bad("0 0 31 2 *").find("never fire") != std::string::npos);
  bad("0 0 30,31 feb *");
  bad("0 0 31 4,6,9,11 *");
  bad("0 0 31 2 */2");
  good("0 0 29 2 *");
  good("0 0 31 1,2 *");
  good("0 0 31 2 mon");
}

TEST_CASE("cron: the shortest time between two slots", "[cron]") {
  const auto pause = [](std::string_view text) {
    return shortest_pause(parse_cron(text).value()).value_or(0ms);
  };
  CHECK(pause("* * * * *") == 1min);
  CHECK(pause("*/10 * * * *") == 10min);
  CHECK(pause("*/7 * * * *") == 4min); // from :56 to :00
  CHECK(pause("@hourly") == 1h);
  CHECK(pause("0 9,18 * * *") == 9h);
  CHECK(pause("0 7 * * mon-fri") == 24h);
  CHECK(pause("0 7 * * fri") == 7 * 24h);
  CHECK(pause("0 0 1 * *") == 28 * 24h);
  CHECK(pause("@every 30s") == 30s);
  CHECK(pause("at 2026-12-01T09:00") == 0ms);
}

TEST_CASE("cron: any text gives fields or an error", "[cron][property]") {
  REQUIRE(rc::check("no text breaks the parser", [](const std::string& text) {
    const auto fields = parse_cron(text);
    RC_ASSERT((fields.has_value() || !fields.error().what.empty()));
  }));
  REQUIRE(rc::check("near-valid texts give non-empty fields or an error", [] {
    const auto part =
        rc::gen::container<std::string>(rc::gen::elementOf(std::string("*0123459,-/mon")));
    std::string text = *part;
    for (int i = 0; i < 4; ++i) {
      text += " " + *part;
    }
    if (const auto f = parse_cron(text)) {
      RC_ASSERT(f->minute.any() && f->hour.any() && f->day.any());
      RC_ASSERT(f->month.any() && f->weekday.any());
      RC_ASSERT(!f->day.test(0) && !f->month.test(0));
    }
  }));
}

} // namespace boyd::cron_test
