#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/ports/time_zones.hpp"

#include <string>
#include <string_view>

/// Times as people write and read them, in their own zone. The only place that reads and shows
/// them. Pure.
namespace boyd::plan {

/// All of what a text means: "10:00" is a minute, a date a day.
struct time_span {
  utc_time first{};
  utc_time last{}; ///< the last millisecond of it; never before `first`

  bool operator==(const time_span&) const = default;
};

/// Reads "now", "-2h" (a duration ago), "10:00" and "10:00:30" (the latest one that has begun),
/// "today", "yesterday", "monday" (the latest one, perhaps today), each of these with a time behind
/// it, "2026-11-28", "2026-11-28 10:00" (also with T and seconds), RFC 3339 ("…T10:00:00Z"), and
/// what show_time has written. A civil time that the change of the clocks leaves out is the moment
/// of the change; one that comes twice is both. Error `invalid_argument` with the forms.
result<time_span> parse_human_time(std::string_view text, utc_time now, const time_zone& zone);

/// The forms of parse_human_time in one line, for help and errors.
inline constexpr const char* human_time_forms =
    "10:00, yesterday 10:00, monday, 2026-11-28, -2h or 2026-11-28T10:00:00Z";

/// "2026-02-13 11:00:00 CET"; UTC is "2026-02-13 10:00:00Z", a zone without a name its offset.
std::string show_time(utc_time t, const time_zone& zone);

/// At most 16 characters: "now", "5 s ago", "3 min ago", "in 2 min" within an hour; else the time
/// of day with the day where that is another one ("10:00", "yesterday 10:00", "Mon 10:00"), and
/// beyond six days the date ("2026-02-13").
std::string show_time_briefly(utc_time t, utc_time now, const time_zone& zone);

/// "350 ms", "2.4 s", "3 min 5 s", "2 h 10 min", "3 d 4 h"; a negative one is shown as 0.
std::string show_length(milliseconds length);

} // namespace boyd::plan
