#pragma once

#include "boyd/core/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace boyd {

using milliseconds = std::chrono::milliseconds;
using seconds = std::chrono::seconds;
using namespace std::chrono_literals;

/// A point in UTC with millisecond resolution: what rows, files and schedules hold.
using utc_time = std::chrono::sys_time<milliseconds>;

/// A point on a clock that never jumps, for durations inside one process.
using steady_time = std::chrono::time_point<std::chrono::steady_clock, milliseconds>;

/// Milliseconds since 1970-01-01T00:00:00Z.
inline std::int64_t to_unix_ms(utc_time t) {
  return t.time_since_epoch().count();
}

/// The inverse of `to_unix_ms`.
inline utc_time from_unix_ms(std::int64_t ms) {
  return utc_time{milliseconds{ms}};
}

/// "2026-02-13T10:00:00Z"; with `millis` "2026-02-13T10:00:00.123Z" (RFC 3339, always UTC).
std::string format_rfc3339(utc_time t, bool millis = false);

/// Reads RFC 3339 with `Z` or a numeric offset, fraction optional (cut to milliseconds).
result<utc_time> parse_rfc3339(std::string_view text);

/// Reads "250ms", "30s", "10m", "1h", "7d" and sums such as "1h30m" (units from long to short, each
/// once, at most 100 years). A number without a unit is refused, but for "0".
result<milliseconds> parse_duration(std::string_view text);

/// The shortest form that `parse_duration` reads back: "1h30m", "250ms", "0". A negative duration
/// gets a leading "-", which is for people only.
std::string format_duration(milliseconds d);

} // namespace boyd
