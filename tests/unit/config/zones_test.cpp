#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

namespace boyd::zones_test {

using namespace std::chrono;
using boyd::local_seconds;
using boyd::time_zone;

namespace {

std::shared_ptr<const time_zone> zone(const std::string& name) {
  static const auto all = boyd::adapters::make_time_zones();
  const auto found = all->find(name);
  INFO(name);
  REQUIRE(found.has_value());
  return *found;
}

sys_seconds utc(int y, unsigned m, unsigned d, int h, int min) {
  return sys_seconds{sys_days{year{y} / month{m} / day{d}} + hours{h} + minutes{min}};
}

local_seconds local(int y, unsigned m, unsigned d, int h, int min) {
  return local_seconds{utc(y, m, d, h, min).time_since_epoch()};
}

} // namespace

TEST_CASE("zones: ordinary times go there and back", "[tz]") {
  const auto berlin = zone("Europe/Berlin");
  CHECK(berlin->to_local(utc(2026, 1, 15, 11, 0)) == local(2026, 1, 15, 12, 0));
  CHECK(berlin->to_local(utc(2026, 7, 15, 10, 0)) == local(2026, 7, 15, 12, 0));
  const auto there = berlin->to_utc(local(2036, 7, 15, 12, 0));
  CHECK(there.kind == time_zone::mapping::unique);
  CHECK(there.first == utc(2036, 7, 15, 10, 0));
  CHECK(there.second == there.first);
  CHECK(zone("Asia/Kathmandu")->to_local(utc(2026, 1, 1, 0, 0)) == local(2026, 1, 1, 5, 45));
}

TEST_CASE("zones: a skipped local time is the jump", "[tz]") {
  const auto there = zone("Europe/Berlin")->to_utc(local(2026, 3, 29, 2, 30));
  CHECK(there.kind == time_zone::mapping::skipped);
  CHECK(there.first == utc(2026, 3, 29, 1, 0));
  CHECK(there.second == there.first);
}

TEST_CASE("zones: a repeated local time has two meanings", "[tz]") {
  const auto there = zone("America/New_York")->to_utc(local(2026, 11, 1, 1, 30));
  CHECK(there.kind == time_zone::mapping::repeated);
  CHECK(there.first == utc(2026, 11, 1, 5, 30));
  CHECK(there.second == utc(2026, 11, 1, 6, 30));
}

TEST_CASE("zones: UTC is itself", "[tz]") {
  const auto t = utc(2026, 3, 29, 2, 30);
  CHECK(zone("UTC")->to_local(t) == local(2026, 3, 29, 2, 30));
  CHECK(zone("UTC")->to_utc(local(2026, 3, 29, 2, 30)).first == t);
}

TEST_CASE("zones: an unknown name suggests the nearest", "[tz]") {
  const auto all = boyd::adapters::make_time_zones();
  const auto typo = all->find("Europe/Berlni");
  REQUIRE_FALSE(typo.has_value());
  CHECK(typo.error().code == boyd::errc::not_found);
  CHECK(typo.error().next == "did you mean Europe/Berlin?");
  for (const auto* name : {"", "../../etc/passwd", "/etc/passwd", "tzdata.zi", "Europe"}) {
    INFO(name);
    CHECK_FALSE(all->find(name).has_value());
  }
}

} // namespace boyd::zones_test
