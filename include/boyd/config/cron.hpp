#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/ports/time_zones.hpp"

#include <bitset>
#include <chrono>
#include <optional>
#include <string_view>
#include <variant>

namespace boyd::config {

/// The shortest and longest period of "@every".
inline constexpr milliseconds cron_every_min = 1s;
inline constexpr milliseconds cron_every_max = std::chrono::hours{24 * 366};

/// A schedule expression taken apart (docs/planning.md). With `every` or `once` set the fields mean
/// nothing; else they say which local minutes fire. A value, made by parse_cron only.
///
/// A local minute fires when minute, hour and month match and the day matches. The day matches by
/// the rule of crontab(5): when either `day_star` or `weekday_star` is set, both fields must match;
/// when neither is, one of them is enough.
struct cron_fields {
  std::bitset<60> minute;            ///< 0–59
  std::bitset<24> hour;              ///< 0–23
  std::bitset<32> day;               ///< 1–31; bit 0 is never set
  std::bitset<13> month;             ///< 1–12; bit 0 is never set
  std::bitset<7> weekday;            ///< 0 = Sunday … 6 = Saturday; a written 7 is bit 0
  bool day_star = false;             ///< the day field began with `*`
  bool weekday_star = false;         ///< the weekday field began with `*`
  std::optional<milliseconds> every; ///< set for "@every …": a fixed period, no civil time
  /// Set for "at …": it fires once, at a civil time of the schedule's zone or at this moment.
  std::optional<std::variant<local_seconds, utc_time>> once;
  /// The field is `*` or a step of it, also when written as a range of all values ("0-59/10").
  bool minute_star = false;
  bool hour_star = false;

  /// The schedule is a pace, which changes of the clock do not interrupt (docs/planning.md).
  bool is_pace() const noexcept { return minute_star || hour_star; }

  bool operator==(const cron_fields&) const = default;
};

/// Reads five cron fields (minute hour day month weekday: `*`, numbers, names, lists, ranges,
/// steps),
/// "@hourly @daily @midnight @weekly @monthly @yearly @annually", "@every 30s" (a duration from
/// cron_every_min to cron_every_max), or "at 2026-12-01T09:00" (seconds, and `Z` or an offset, if
/// wanted). Names (jan, MON, …) are case-insensitive. Expressions that
/// can never fire ("0 0 31 2 *") are refused. Error `invalid_argument`; its text names the field.
result<cron_fields> parse_cron(std::string_view text);

/// Whether the local day matches month, day and weekday; not for `every` and `once`. Pure.
bool fires_on(const cron_fields& fields, std::chrono::local_days day);

/// The shortest time between two of its slots, on a clock that is never changed. Nothing for "at",
/// and for what does not come twice in a few years. Pure.
std::optional<milliseconds> shortest_pause(const cron_fields& fields);

} // namespace boyd::config
