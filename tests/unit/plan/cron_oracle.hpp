#pragma once

#include "boyd/core/time.hpp"
#include "boyd/ports/time_zones.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace boyd::test {

/// One cron field: its text and, made without any parser, what it means.
struct oracle_field {
  std::string text;
  std::set<int> values;
  bool star = false;
  bool wild = false; ///< a star, also as a range of all values
};

struct oracle_cron {
  oracle_field minute, hour, day, month, weekday;

  std::string text() const {
    return minute.text + " " + hour.text + " " + day.text + " " + month.text + " " + weekday.text;
  }

  bool matches(local_seconds local) const {
    const auto midnight = std::chrono::floor<std::chrono::days>(local);
    const std::chrono::year_month_day date{midnight};
    const std::chrono::hh_mm_ss clock{local - midnight};
    const bool in_month = day.values.contains(static_cast<int>(unsigned{date.day()}));
    const bool in_week =
        weekday.values.contains(static_cast<int>(std::chrono::weekday{midnight}.c_encoding()));
    return minute.values.contains(static_cast<int>(clock.minutes().count())) &&
           hour.values.contains(static_cast<int>(clock.hours().count())) &&
           month.values.contains(static_cast<int>(unsigned{date.month()})) &&
           (day.star || weekday.star ? in_month && in_week : in_month || in_week);
  }
};

/// A random field: "*", "*/n", or a list of values, ranges and stepped ranges.
inline oracle_field arbitrary_field(int low, int high, int first_shape = 0) {
  oracle_field f;
  const int shape = *rc::gen::inRange(first_shape, 4);
  if (shape <= 1) {
    const int step = shape == 0 ? 1 : *rc::gen::inRange(1, high + 1);
    f.text = shape == 0 ? "*" : "*/" + std::to_string(step);
    f.star = f.wild = true;
    for (int v = low; v <= high; v += step)
      f.values.insert(v);
    return f;
  }
  const int parts = *rc::gen::inRange(1, 4);
  for (int i = 0; i < parts; ++i) {
    const int from = *rc::gen::inRange(low, high + 1);
    const int to = shape == 2 ? from : *rc::gen::inRange(from, high + 1);
    const int step = shape == 2 ? 1 : *rc::gen::inRange(1, 8);
    f.text += (i ? "," : "") + std::to_string(from);
    if (shape >= 3)
      f.text += "-" + std::to_string(to) + "/" + std::to_string(step);
    f.wild = f.wild || (shape >= 3 && from == low && to == high);
    for (int v = from; v <= to; v += step)
      f.values.insert(v);
  }
  f.wild = f.wild || static_cast<int>(f.values.size()) == high - low + 1;
  return f;
}

/// Any minute, hour, day and weekday, in every month. Few are dense: their many slots take long to
/// compare and teach little more.
inline oracle_cron arbitrary_cron() {
  const int minute_shape = *rc::gen::inRange(0, 8) == 0 ? 0 : 2;
  oracle_cron c{arbitrary_field(0, 59, minute_shape),
                arbitrary_field(0, 23),
                arbitrary_field(1, 31),
                {"*", {}, true},
                arbitrary_field(0, 7)};
  for (int m = 1; m <= 12; ++m)
    c.month.values.insert(m);
  if (c.weekday.values.erase(7) != 0)
    c.weekday.values.insert(0);
  return c;
}

/// "" when both are the same, else the first slot that only one of them has.
inline std::string first_difference(const std::vector<utc_time>& got,
                                    const std::vector<utc_time>& expected) {
  const auto [g, e] = std::ranges::mismatch(got, expected);
  if (g == got.end() && e == expected.end())
    return {};
  const auto name = [](auto it, auto end) { return it == end ? "end" : format_rfc3339(*it); };
  return "got " + name(g, got.end()) + ", expected " + name(e, expected.end());
}

/// The civil minutes between the match at or before `local` and the one behind it, at most so many
/// days apart; `forward`: from `local` to the next one, else from the one before it.
inline std::chrono::minutes civil_pause(const oracle_cron& cron, local_seconds local,
                                        bool forward) {
  const std::chrono::minutes step{forward ? 1 : -1};
  auto at = local + step;
  // Longer ones than what is walked are not told apart.
  while (!cron.matches(at) && std::chrono::abs(at - local) < std::chrono::days{8})
    at += step;
  return std::chrono::abs(std::chrono::duration_cast<std::chrono::minutes>(at - local));
}

/// The same as walk_minutes for a schedule with a star as minute or hour: every shown minute that
/// matches, and a change of the clock in a pause that it makes too long.
inline std::vector<utc_time> walk_pace(const oracle_cron& cron, const time_zone& zone,
                                       std::chrono::sys_seconds from, std::chrono::sys_seconds to) {
  using std::chrono::days;
  using std::chrono::minutes;
  using std::chrono::sys_seconds;
  std::vector<utc_time> slots;
  std::optional<sys_seconds> last, change;
  bool longer = false;
  const auto offset = [&](sys_seconds t) {
    return zone.to_local(t).time_since_epoch() - t.time_since_epoch();
  };
  for (auto t = from - days{2}; t <= to + days{2}; t += minutes{1}) {
    if (const auto was = offset(t - minutes{1}); was != offset(t))
      change = t, longer = offset(t) < was;
    if (!cron.matches(zone.to_local(t)))
      continue;
    if (last && change && *change > *last && *change < t) {
      const auto usual = std::max(civil_pause(cron, zone.to_local(*last), true),
                                  civil_pause(cron, zone.to_local(t), false));
      const auto midnight = std::chrono::floor<days>(zone.to_local(*change));
      auto noon = cron;
      noon.hour.values = {12}, noon.minute.values = {0};
      const bool keeps_hours = !cron.hour.wild || !noon.matches(midnight + std::chrono::hours{12});
      if (t - *last > usual && !(longer && keeps_hours))
        slots.push_back(*change);
    }
    slots.push_back(t);
    last = t;
  }
  std::erase_if(slots, [&](utc_time t) { return t <= from || t > to; });
  return slots;
}

/// Every slot in (from, to], found by walking the minutes on the civil clock: a minute fires when
/// it matches and is shown for the first time, and a jump fires when a minute it leaves out
/// matches.
inline std::vector<utc_time> walk_minutes(const oracle_cron& cron, const time_zone& zone,
                                          std::chrono::sys_seconds from,
                                          std::chrono::sys_seconds to) {
  using std::chrono::hours;
  using std::chrono::minutes;
  if (cron.minute.wild || cron.hour.wild)
    return walk_pace(cron, zone, from, to);
  std::vector<utc_time> slots;
  // Two days ahead, to have seen what a step back repeats.
  auto furthest = zone.to_local(from - hours{48});
  for (auto t = from - hours{48}; t <= to; t += minutes{1}) {
    const auto local = zone.to_local(t);
    bool fires = false;
    // From the first minute that the clock has not shown to the one it shows now.
    for (auto shown = furthest + minutes{1}; shown <= local; shown += minutes{1})
      fires = cron.matches(shown) || fires;
    furthest = std::max(furthest, local);
    if (fires && t > from)
      slots.push_back(t);
  }
  return slots;
}

} // namespace boyd::test
