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
  static constexpr hours span{96};
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
      const auto cron = arbitrary_cron();
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

} // namespace boyd::schedule_zones_test
