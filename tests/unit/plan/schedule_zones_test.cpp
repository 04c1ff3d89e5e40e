#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"
#include "unit/plan/cron_oracle.hpp"
#include "unit/plan/fake_zones.hpp"

namespace boyd::schedule_zones_test {

using namespace boyd;
using namespace boyd::test;
using namespace std::chrono;

namespace {

/// A zone and a day on which its clock jumps.
struct change {
  const char* zone;
  sys_days day;
};

const std::vector<change> changes{
    {"Europe/Berlin", sys_days{2026y / 3 / 29}},
    {"Europe/Berlin", sys_days{2026y / 10 / 25}},
    {"America/New_York", sys_days{2026y / 3 / 8}},
    {"America/New_York", sys_days{2026y / 11 / 1}},
    {"Australia/Lord_Howe", sys_days{2026y / 4 / 4}},  // half an hour back
    {"Australia/Lord_Howe", sys_days{2026y / 10 / 3}}, // half an hour on
    {"America/Sao_Paulo", sys_days{2018y / 11 / 4}},   // midnight is left out
    {"America/Sao_Paulo", sys_days{2018y / 2 / 17}},   // 23:00 comes twice
    {"Pacific/Apia", sys_days{2011y / 12 / 30}},       // a whole day is left out
    {"Asia/Kolkata", sys_days{2026y / 3 / 29}},        // never changes
};

oracle_field every_day() {
  oracle_field all{"*", {}, true, true};
  for (int day = 1; day <= 31; ++day)
    all.values.insert(day);
  return all;
}

plan::schedule_rule real_rule(const std::string& expression, const std::string& zone) {
  config::schedule s;
  s.expression = expression;
  s.tz = zone;
  auto rule = plan::schedule_rule::make(s, *adapters::make_time_zones());
  if (!rule)
    throw std::logic_error{to_string(rule.error())};
  return *rule;
}

/// What a zone's clock shows at every minute around a day, read once: the walk asks a million
/// times.
class remembered_zone : public time_zone {
 public:
  remembered_zone(std::shared_ptr<const time_zone> zone, sys_days day)
      : zone_{std::move(zone)}, start_{sys_seconds{day} - span} {
    for (auto t = start_; t <= start_ + 2 * span; t += minutes{1})
      shown_.push_back(zone_->to_local(t));
  }

  local_seconds to_local(sys_seconds t) const override {
    return shown_.at(static_cast<std::size_t>(floor<minutes>(t - start_).count()));
  }
  mapping to_utc(local_seconds local) const override { return zone_->to_utc(local); }

 private:
  static constexpr hours span{24 * 7};
  std::shared_ptr<const time_zone> zone_;
  sys_seconds start_;
  std::vector<local_seconds> shown_;
};

} // namespace

TEST_CASE("case 24 dst-change: six real zones agree with walking the minutes") {
  const auto zones = adapters::make_time_zones();
  for (const change& c : changes) {
    const remembered_zone zone{*zones->find(c.zone), c.day};
    REQUIRE(rc::check(std::string{c.zone} + " around its change", [&] {
      auto cron = arbitrary_cron();
      // Changes at midnight: whether the moment of the change belongs to the day before or to the
      // day after is not the walk's to say, and a week's pause is longer than the walk.
      if (c.zone == std::string_view{"Pacific/Apia"} ||
          c.zone == std::string_view{"America/Sao_Paulo"})
        cron.day = every_day(), cron.weekday = {"*", {0, 1, 2, 3, 4, 5, 6}, true, true};
      const auto rule = real_rule(cron.text(), c.zone);
      const auto from = sys_seconds{c.day} - hours{24} + minutes{*rc::gen::inRange(0, 24 * 60)};
      const auto to = from + hours{30};
      std::vector<boyd::utc_time> forward;
      for (auto t = rule.next_after(from); t && *t <= to; t = rule.next_after(*t))
        forward.push_back(*t);
      RC_LOG() << cron.text();
      RC_ASSERT(first_difference(forward, walk_minutes(cron, zone, from, to)) == "");
    }));
  }
}

TEST_CASE("case 24 dst-change: 02:30 in Berlin and New York, 01:45 on Lord Howe, midnight in Sao "
          "Paulo, a day in Apia") {
  const auto next = [](const char* expression, const char* zone, const char* after) {
    return format_rfc3339(*real_rule(expression, zone).next_after(at(after)));
  };
  CHECK(next("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z") == "2026-03-29T01:00:00Z");
  CHECK(next("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z") == "2026-10-26T01:30:00Z");
  CHECK(next("30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z") == "2026-03-08T07:00:00Z");
  CHECK(next("30 1 * * *", "America/New_York", "2026-11-01T05:30:00Z") == "2026-11-02T06:30:00Z");
  CHECK(next("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:45:00Z") ==
        "2026-04-05T15:15:00Z");
  CHECK(next("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z") == "2018-11-04T03:00:00Z");
  CHECK(next("0 12 30 12 *", "Pacific/Apia", "2011-12-30T00:00:00Z") == "2011-12-30T10:00:00Z");
}

TEST_CASE("field case 24: a schedule with a star as minute or hour goes on in real time") {
  const auto slots = [](const char* expression, const char* zone, const char* after, int count) {
    const auto rule = real_rule(expression, zone);
    std::string all;
    auto t = at(after);
    for (int i = 0; i < count; ++i) {
      t = *rule.next_after(t);
      all += format_rfc3339(t).substr(11, 5) + " ";
    }
    return all;
  };
  const auto autumn = "2026-10-25T00:51:00Z";
  CHECK(slots("*/10 * * * *", "Europe/Berlin", autumn, 4) == "01:00 01:10 01:20 01:30 ");
  CHECK(slots("0-59/10 * * * *", "Europe/Berlin", autumn, 2) == "01:00 01:10 ");
  CHECK(slots("0 * * * *", "Europe/Berlin", autumn, 3) == "01:00 02:00 03:00 ");
  CHECK(slots("30 0-23 * * *", "Europe/Berlin", autumn, 2) == "01:30 02:30 ");
  CHECK(slots("@hourly", "Europe/Berlin", autumn, 2) == "01:00 02:00 ");
  CHECK(slots("5,35 * * * *", "Europe/Berlin", autumn, 3) == "01:05 01:35 02:05 ");
  CHECK(slots("*/30 1-3 * * *", "Europe/Berlin", "2026-10-24T23:00:00Z", 6) ==
        "23:30 00:00 00:30 01:00 01:30 02:00 ");
  // Lists of fixed minutes in a fixed hour run once.
  CHECK(slots("0,30 2 * * *", "Europe/Berlin", "2026-10-24T23:00:00Z", 3) == "00:00 00:30 01:00 ");
  CHECK(slots("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3) == "00:30 01:30 02:30 ");
  CHECK(slots("*/30 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2) == "01:00 00:00 ");
  // Half an hour on and back: the pause stays an hour at most.
  CHECK(slots("0 * * * *", "Australia/Lord_Howe", "2026-10-03T14:30:00Z", 3) ==
        "15:30 16:00 17:00 ");
  CHECK(slots("0 * * * *", "Australia/Lord_Howe", "2026-04-04T14:00:00Z", 3) ==
        "15:00 15:30 16:30 ");
  CHECK(slots("0 * * * *", "Pacific/Apia", "2011-12-30T08:30:00Z", 3) == "09:00 10:00 11:00 ");
}

TEST_CASE(
    "field case 24: around any change no pause of a pace is longer than its longest, and a fixed "
    "time runs once a day") {
  for (const change& c : changes) {
    const auto zone = *adapters::make_time_zones()->find(c.zone);
    for (const char* pace :
         {"* * * * *", "*/7 * * * *", "*/15 * * * *", "0 * * * *", "17 * * * *", "@hourly",
          "0 */2 * * *", "30 */3 * * *", "0-59/20 0-23 * * *", "5,50 * * * *"}) {
      INFO(c.zone << " " << pace);
      const auto ordinary = real_rule(pace, "UTC");
      milliseconds longest{0};
      for (auto t = at("2026-05-01T00:00:00Z"); t < at("2026-05-03T00:00:00Z");
           t = *ordinary.next_after(t))
        longest = std::max<milliseconds>(longest, *ordinary.next_after(t) - t);
      const auto rule = real_rule(pace, c.zone);
      auto last = *rule.latest_at_or_before(c.day - days{1});
      while (last < c.day + days{2}) {
        const auto next = *rule.next_after(last);
        REQUIRE(next - last <= longest);
        REQUIRE(*rule.latest_at_or_before(next) == next);
        REQUIRE(*rule.latest_at_or_before(next - 1ms) == last);
        last = next;
      }
    }
    for (int minute = 0; minute < 24 * 60; minute += 15) {
      const auto fixed = std::to_string(minute % 60) + " " + std::to_string(minute / 60) + " * * *";
      INFO(c.zone << " " << fixed);
      const auto rule = real_rule(fixed, c.zone);
      int runs = 0;
      const auto end = c.day + days{4};
      for (auto t = *rule.next_after(c.day - days{3}); t <= end; t = *rule.next_after(t))
        ++runs;
      // Once for each civil day, also for one that is left out; with a whole day left out midnight
      // of that day and of the next are one moment.
      const auto first = floor<days>(zone->to_local(c.day - days{3}) - minutes{minute});
      const auto behind = floor<days>(zone->to_local(end) - minutes{minute});
      const bool day_is_out =
          zone->to_utc(local_seconds{c.day.time_since_epoch()} + hours{12}).kind ==
          time_zone::mapping::skipped;
      const auto expected = (behind - first).count() - (day_is_out && minute == 0 ? 1 : 0);
      CHECK(runs == expected);
    }
  }
}

} // namespace boyd::schedule_zones_test
