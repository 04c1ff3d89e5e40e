#include "boyd/plan/schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace boyd::plan {
namespace {

using std::chrono::days;
using std::chrono::local_days;

/// February 29 on one weekday can be 40 years apart (around 2100).
constexpr days search_span{366 * 50};

/// Beyond these years calendars and zones say nothing useful, and sums stay far from overflow.
constexpr utc_time earliest = std::chrono::sys_days{std::chrono::year{1} / 1 / 1};
constexpr utc_time latest = std::chrono::sys_days{std::chrono::year{9000} / 1 / 1};

constexpr std::size_t last_hour = 23;
constexpr std::size_t last_minute = 59;

/// FNV-1a over the owner, then the finalizer of splitmix64 over it and the slot: well spread, and
/// the same on every node and in every version.
std::uint64_t spread(std::string_view owner, utc_time slot) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : owner)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  hash += static_cast<std::uint64_t>(to_unix_ms(slot)) * 0x9E3779B97F4A7C15U;
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9U;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBU;
  return hash ^ (hash >> 31);
}

/// The multiple of `period` since 1970 at or before `t`.
utc_time floor_to(utc_time t, milliseconds period) {
  const std::int64_t ms = to_unix_ms(t);
  const std::int64_t remainder = ms % period.count();
  return from_unix_ms(ms - remainder - (remainder < 0 ? period.count() : 0));
}

} // namespace

schedule_rule::schedule_rule(config::schedule settings, config::cron_fields fields,
                             std::shared_ptr<const time_zone> zone)
    : settings_{std::move(settings)}, fields_{fields}, zone_{std::move(zone)} {}

result<schedule_rule> schedule_rule::make(const config::schedule& settings,
                                          const time_zones& zones) {
  auto fields = config::parse_cron(settings.expression);
  if (!fields)
    return fail(fields.error());
  auto zone = zones.find(settings.tz);
  if (!zone)
    return fail(zone.error());
  schedule_rule rule{settings, *fields, *zone};
  if (!rule.next_after(utc_time{}))
    return fail(errc::invalid_argument,
                "the schedule \"" + settings.expression + "\" never fires in " + settings.tz);
  return rule;
}

bool schedule_rule::day_matches(local_days day) const {
  const std::chrono::year_month_day date{day};
  if (!fields_.month.test(static_cast<unsigned>(date.month())))
    return false;
  const bool in_month = fields_.day.test(static_cast<unsigned>(date.day()));
  const bool in_week = fields_.weekday.test(std::chrono::weekday{day}.c_encoding());
  return fields_.day_star || fields_.weekday_star ? in_month && in_week : in_month || in_week;
}

utc_time schedule_rule::moment(local_days day, std::size_t hour, std::size_t minute) const {
  const local_seconds local =
      local_seconds{day} + std::chrono::hours{hour} + std::chrono::minutes{minute};
  return zone_->to_utc(local).first;
}

// Civil times map to moments in ascending order (a skipped one to the jump, a repeated one to its
// first pass), so an hour or a day whose last minute is too early is passed over as a whole.

std::optional<utc_time> schedule_rule::first_in_day(local_days day, utc_time after) const {
  if (moment(day, last_hour, last_minute) <= after)
    return std::nullopt;
  for (std::size_t hour = 0; hour <= last_hour; ++hour) {
    if (!fields_.hour.test(hour) || moment(day, hour, last_minute) <= after)
      continue;
    for (std::size_t minute = 0; minute <= last_minute; ++minute) {
      if (!fields_.minute.test(minute))
        continue;
      const utc_time t = moment(day, hour, minute);
      if (t > after)
        return t;
    }
  }
  return std::nullopt;
}

std::optional<utc_time> schedule_rule::last_in_day(local_days day, utc_time until) const {
  if (moment(day, 0, 0) > until)
    return std::nullopt;
  for (std::size_t hour = last_hour + 1; hour-- > 0;) {
    if (!fields_.hour.test(hour) || moment(day, hour, 0) > until)
      continue;
    for (std::size_t minute = last_minute + 1; minute-- > 0;) {
      if (!fields_.minute.test(minute))
        continue;
      const utc_time t = moment(day, hour, minute);
      if (t <= until)
        return t;
    }
  }
  return std::nullopt;
}

std::optional<utc_time> schedule_rule::next_after(utc_time t) const {
  t = std::max(t, earliest);
  if (t >= latest)
    return std::nullopt;
  if (fields_.every)
    return floor_to(t, *fields_.every) + *fields_.every;
  // One day back: the civil date can run ahead of the moments that are still to come.
  const auto start =
      std::chrono::floor<days>(zone_->to_local(std::chrono::floor<seconds>(t))) - days{1};
  for (days offset{0}; offset <= search_span; ++offset) {
    if (!day_matches(start + offset))
      continue;
    if (const auto found = first_in_day(start + offset, t))
      return found;
  }
  return std::nullopt;
}

std::optional<utc_time> schedule_rule::latest_at_or_before(utc_time t) const {
  t = std::min(t, latest);
  if (t <= earliest)
    return std::nullopt;
  if (fields_.every)
    return floor_to(t, *fields_.every);
  const auto start =
      std::chrono::floor<days>(zone_->to_local(std::chrono::floor<seconds>(t))) + days{1};
  for (days offset{0}; offset <= search_span; ++offset) {
    if (!day_matches(start - offset))
      continue;
    if (const auto found = last_in_day(start - offset, t))
      return found;
  }
  return std::nullopt;
}

utc_time schedule_rule::due_at(std::string_view owner, utc_time slot) const {
  milliseconds window = settings_.jitter;
  if (window <= milliseconds{0})
    return slot;
  if (const auto next = next_after(slot))
    window = std::min(window, *next - slot);
  const std::uint64_t offset = spread(owner, slot) % static_cast<std::uint64_t>(window.count());
  return slot + milliseconds{static_cast<std::int64_t>(offset)};
}

} // namespace boyd::plan
