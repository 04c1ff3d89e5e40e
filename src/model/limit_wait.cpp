#include "boyd/model/limit_text.hpp"

#include <chrono>
#include <memory>

/// How far away a moment is that was told.
namespace boyd::model {
namespace {

using std::chrono::days;

/// A time of day that has just passed is this one, not tomorrow's.
constexpr milliseconds just_now = 1min;

std::optional<milliseconds> from(utc_time now, utc_time at) {
  if (at <= now)
    return std::nullopt;
  return at - now;
}

/// The later of the moments that a local time may be.
utc_time to_utc(const told_time::civil& c, const time_zone* zone,
                std::chrono::local_time<milliseconds> local) {
  if (c.offset)
    return utc_time{local.time_since_epoch() - *c.offset};
  if (zone == nullptr)
    return utc_time{local.time_since_epoch()};
  const auto whole = std::chrono::floor<seconds>(local);
  return utc_time{zone->to_utc(whole).second} + (local - whole);
}

std::optional<milliseconds> wait_until_clock(const told_time::civil& c, utc_time now,
                                             const time_zones* zones) {
  std::shared_ptr<const time_zone> zone;
  if (zones != nullptr && !c.offset) {
    if (!c.zone.empty())
      zone = zones->find(c.zone).value_or(nullptr);
    if (!zone)
      zone = zones->local();
  }
  const auto whole = std::chrono::floor<seconds>(now);
  const auto here =
      c.offset ? local_seconds{whole.time_since_epoch() + std::chrono::floor<seconds>(*c.offset)}
      : zone   ? zone->to_local(whole)
               : local_seconds{whole.time_since_epoch()};
  const auto today = std::chrono::floor<days>(here);
  const auto at = [&](std::chrono::local_days day) {
    return to_utc(c, zone.get(), std::chrono::local_time<milliseconds>{day} + c.of_day);
  };
  if (c.day) {
    const auto this_year = static_cast<int>(std::chrono::year_month_day{today}.year());
    for (int year = c.year.value_or(this_year);; ++year) {
      const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{*c.month},
                                             std::chrono::day{*c.day}};
      if (!date.ok())
        return std::nullopt;
      const auto moment = at(std::chrono::local_days{date});
      // Without a year it is the next such day; one that was yesterday is over.
      if (c.year || moment + days{1} > now || year > this_year)
        return from(now, moment);
    }
  }
  auto day = today;
  if (c.weekday)
    day += std::chrono::weekday{*c.weekday} - std::chrono::weekday{today};
  else if (c.tomorrow)
    day += days{1};
  const auto moment = at(day);
  if (moment + just_now > now || c.tomorrow)
    return from(now, moment);
  return from(now, at(day + days{c.weekday ? 7 : 1}));
}

} // namespace

std::optional<milliseconds> wait_until(const told_time& told, utc_time now,
                                       const time_zones* zones) {
  if (told.wait)
    return told.wait->count() > 0 ? told.wait : std::nullopt;
  if (told.at)
    return from(now, *told.at);
  return told.clock ? wait_until_clock(*told.clock, now, zones) : std::nullopt;
}

} // namespace boyd::model
