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

std::optional<utc_time> schedule_rule::only_slot() const {
  if (!fields_.once)
    return std::nullopt;
  const auto* civil = std::get_if<local_seconds>(&*fields_.once);
  return civil ? utc_time{zone_->to_utc(*civil).first} : std::get<utc_time>(*fields_.once);
}

bool schedule_rule::day_matches(local_days day) const {
  return config::fires_on(fields_, day);
}

time_zone::mapping schedule_rule::moment(reading how, local_days day, std::size_t hour,
                                         std::size_t minute) const {
  const local_seconds local =
      local_seconds{day} + std::chrono::hours{hour} + std::chrono::minutes{minute};
  if (how != reading::civil)
    return zone_->to_utc(local);
  const std::chrono::sys_seconds t{local.time_since_epoch()};
  return {time_zone::mapping::unique, t, t};
}

local_days schedule_rule::day_of(reading how, utc_time t) const {
  const auto second = std::chrono::floor<seconds>(t);
  return std::chrono::floor<days>(how == reading::civil ? local_seconds{second.time_since_epoch()}
                                                        : zone_->to_local(second));
}

// In each reading civil times map to moments in ascending order (a skipped one to the jump), so an
// hour or a day whose last minute is too early is passed over as a whole.

std::optional<utc_time> schedule_rule::first_in_day(reading how, local_days day,
                                                    utc_time after) const {
  const auto at = [&](std::size_t hour, std::size_t minute) -> utc_time {
    const auto m = moment(how, day, hour, minute);
    return how == reading::later ? m.second : m.first;
  };
  if (at(last_hour, last_minute) <= after)
    return std::nullopt;
  for (std::size_t hour = 0; hour <= last_hour; ++hour) {
    if (!fields_.hour.test(hour) || at(hour, last_minute) <= after)
      continue;
    for (std::size_t minute = 0; minute <= last_minute; ++minute)
      if (fields_.minute.test(minute) && at(hour, minute) > after && fires(how, day, hour, minute))
        return at(hour, minute);
  }
  return std::nullopt;
}

std::optional<utc_time> schedule_rule::last_in_day(reading how, local_days day,
                                                   utc_time until) const {
  const auto at = [&](std::size_t hour, std::size_t minute) -> utc_time {
    const auto m = moment(how, day, hour, minute);
    return how == reading::later ? m.second : m.first;
  };
  if (at(0, 0) > until)
    return std::nullopt;
  for (std::size_t hour = last_hour + 1; hour-- > 0;) {
    if (!fields_.hour.test(hour) || at(hour, 0) > until)
      continue;
    for (std::size_t minute = last_minute + 1; minute-- > 0;)
      if (fields_.minute.test(minute) && at(hour, minute) <= until && fires(how, day, hour, minute))
        return at(hour, minute);
  }
  return std::nullopt;
}

/// A time that is skipped fires at the jump only where it is a fixed one.
bool schedule_rule::fires(reading how, local_days day, std::size_t hour, std::size_t minute) const {
  return how == reading::once || moment(how, day, hour, minute).kind != time_zone::mapping::skipped;
}

std::optional<utc_time> schedule_rule::search_on(reading how, utc_time after) const {
  // Back a day or two: the civil date can run ahead of the moments that are still to come.
  const auto start = day_of(how, after) - days{2};
  for (days offset{0}; offset <= search_span; ++offset)
    if (day_matches(start + offset))
      if (const auto found = first_in_day(how, start + offset, after))
        return found;
  return std::nullopt;
}

std::optional<utc_time> schedule_rule::search_back(reading how, utc_time until) const {
  const auto start = day_of(how, until) + days{2};
  for (days offset{0}; offset <= search_span; ++offset)
    if (day_matches(start - offset))
      if (const auto found = last_in_day(how, start - offset, until))
        return found;
  return std::nullopt;
}

/// The first matching minute after `t` that the clock shows, for the first or the second time.
std::optional<utc_time> schedule_rule::shown_after(utc_time t) const {
  const auto earlier = search_on(reading::earlier, t);
  const auto later = search_on(reading::later, t);
  return earlier && later ? std::min(*earlier, *later) : earlier;
}

std::optional<utc_time> schedule_rule::shown_until(utc_time t) const {
  const auto earlier = search_back(reading::earlier, t);
  const auto later = search_back(reading::later, t);
  return earlier && later ? std::max(*earlier, *later) : earlier;
}

/// The moment between two shown slots at which the clock changes, where that makes the pause
/// between them longer than the same two pauses are by the civil clock.
std::optional<utc_time> schedule_rule::made_up(std::optional<utc_time> last,
                                               std::optional<utc_time> next) const {
  if (!last || !next)
    return std::nullopt;
  const auto local = [&](utc_time t) {
    return utc_time{zone_->to_local(std::chrono::floor<seconds>(t)).time_since_epoch()};
  };
  const auto offset = [&](utc_time t) { return local(t) - std::chrono::floor<seconds>(t); };
  const auto before = offset(*last);
  const auto behind = offset(*next);
  if (before == behind)
    return std::nullopt;
  const auto on = search_on(reading::civil, local(*last));
  const auto back = search_back(reading::civil, local(*next) - milliseconds{1});
  if (!on || !back || *next - *last <= std::max(*on - local(*last), local(*next) - *back))
    return std::nullopt;
  auto low = std::chrono::floor<seconds>(*last);
  auto high = std::chrono::floor<seconds>(*next);
  while (high - low > seconds{1}) {
    const auto middle = low + (high - low) / 2;
    (offset(middle) == before ? low : high) = middle;
  }
  // A longer day alone is no reason: a schedule of certain hours keeps them.
  if (behind < before && !(fields_.hour_star && day_matches(day_of(reading::once, high))))
    return std::nullopt;
  return high;
}

std::optional<utc_time> schedule_rule::next_after(utc_time t) const {
  t = std::max(t, earliest);
  if (t >= latest)
    return std::nullopt;
  if (fields_.every)
    return floor_to(t, *fields_.every) + *fields_.every;
  if (const auto only = only_slot())
    return *only > t ? only : std::nullopt;
  if (!fields_.is_pace())
    return search_on(reading::once, t);
  const auto next = shown_after(t);
  const auto change = made_up(shown_until(t), next);
  return change && *change > t ? change : next;
}

std::optional<utc_time> schedule_rule::latest_at_or_before(utc_time t) const {
  t = std::min(t, latest);
  if (t <= earliest)
    return std::nullopt;
  if (fields_.every)
    return floor_to(t, *fields_.every);
  if (const auto only = only_slot())
    return *only <= t ? only : std::nullopt;
  if (!fields_.is_pace())
    return search_back(reading::once, t);
  const auto last = shown_until(t);
  const auto change = made_up(last, shown_after(t));
  return change && *change <= t ? change : last;
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
