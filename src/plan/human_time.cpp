#include "boyd/plan/human_time.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

namespace boyd::plan {

namespace {

using std::chrono::days;
using std::chrono::local_days;

constexpr milliseconds one{1};
constexpr std::chrono::minutes minute{1};
constexpr seconds second{1};
constexpr days day{1};
constexpr int week = 7;

constexpr std::array<const char*, week> day_names{"sunday",   "monday", "tuesday", "wednesday",
                                                  "thursday", "friday", "saturday"};
constexpr std::array<const char*, week> short_names{"Sun", "Mon", "Tue", "Wed",
                                                    "Thu", "Fri", "Sat"};

/// A time of day, and how long it is.
struct clock_time {
  seconds since_midnight{0};
  seconds length{0};
};

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (auto& c : out)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return out;
}

/// `width` digits at `from`; nothing when there is something else.
std::optional<int> digits(std::string_view text, std::size_t from, std::size_t width) {
  if (from + width > text.size())
    return std::nullopt;
  int value = 0;
  for (const char c : text.substr(from, width)) {
    if (c < '0' || c > '9')
      return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

/// "9:05", "09:05", "09:05:30".
std::optional<clock_time> read_clock(std::string_view text) {
  const auto colon = text.find(':');
  if (colon != 1 && colon != 2)
    return std::nullopt;
  const auto hour = digits(text, 0, colon);
  const auto minutes = digits(text, colon + 1, 2);
  if (!hour || !minutes || *hour > 23 || *minutes > 59)
    return std::nullopt;
  const seconds whole = std::chrono::hours{*hour} + std::chrono::minutes{*minutes};
  const auto rest = text.substr(colon + 3);
  if (rest.empty())
    return clock_time{whole, minute};
  const auto s = rest.size() == 3 && rest.front() == ':' ? digits(rest, 1, 2) : std::nullopt;
  if (!s || *s > 59)
    return std::nullopt;
  return clock_time{whole + seconds{*s}, second};
}

/// "2026-11-28".
std::optional<local_days> read_date(std::string_view text) {
  const auto y = digits(text, 0, 4);
  const auto m = digits(text, 5, 2);
  const auto d = digits(text, 8, 2);
  if (text.size() != 10 || text[4] != '-' || text[7] != '-' || !y || !m || !d)
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*y},
                                         std::chrono::month{static_cast<unsigned>(*m)},
                                         std::chrono::day{static_cast<unsigned>(*d)}};
  return date.ok() ? std::optional(local_days{date}) : std::nullopt;
}

local_days today(utc_time now, const time_zone& zone) {
  return std::chrono::floor<days>(zone.to_local(std::chrono::floor<seconds>(now)));
}

/// "today", "yesterday", "mon", "monday", "2026-11-28".
std::optional<local_days> read_day(std::string_view text, utc_time now, const time_zone& zone) {
  if (const auto date = read_date(text))
    return date;
  const auto word = in_lower_case(text);
  const auto this_day = today(now, zone);
  if (word == "today")
    return this_day;
  if (word == "yesterday")
    return this_day - day;
  for (std::size_t i = 0; i < day_names.size(); ++i)
    if (word == day_names[i] || word == std::string_view(day_names[i]).substr(0, 3)) {
      const std::chrono::weekday wanted{static_cast<unsigned>(i)};
      return this_day - (std::chrono::weekday{this_day} - wanted);
    }
  return std::nullopt;
}

time_span span_of(local_seconds from, seconds length, const time_zone& zone) {
  const auto first = zone.to_utc(from).first;
  // The second of two equal civil times ends it, too.
  const auto last = zone.to_utc(from + length - second).second;
  return {first, std::max<utc_time>(first, utc_time{last} + second - one)};
}

/// The latest one that has begun.
time_span latest(const clock_time& clock, utc_time now, const time_zone& zone) {
  const auto this_day = today(now, zone);
  for (int back = 0; back < 2; ++back) {
    const auto span =
        span_of(local_seconds{this_day - day * back} + clock.since_midnight, clock.length, zone);
    if (span.first <= now)
      return span;
  }
  return span_of(local_seconds{this_day - day} + clock.since_midnight, clock.length, zone);
}

/// "-2h", "2h ago".
std::optional<utc_time> read_ago(std::string_view text, utc_time now) {
  constexpr std::string_view ago = "ago";
  if (text.starts_with('-'))
    text.remove_prefix(1);
  else if (text.ends_with(ago))
    text = trim(text.substr(0, text.size() - ago.size()));
  else
    return std::nullopt;
  const auto length = parse_duration(text);
  return length ? std::optional(now - *length) : std::nullopt;
}

/// A day with a time of day behind it, or alone.
std::optional<time_span> read_civil(std::string_view text, utc_time now, const time_zone& zone) {
  const auto gap = text.find_first_of(" T");
  if (const auto date = read_day(text, now, zone))
    return span_of(local_seconds{*date}, day, zone);
  if (gap == std::string_view::npos)
    return std::nullopt;
  const auto date = read_day(text.substr(0, gap), now, zone);
  const auto clock = read_clock(trim(text.substr(gap + 1)));
  if (!date || !clock)
    return std::nullopt;
  return span_of(local_seconds{*date} + clock->since_midnight, clock->length, zone);
}

/// As show_time writes it: "2026-02-13 11:00:00 CET", "2026-02-13 11:00:00 +05:30".
std::optional<time_span> read_shown(std::string_view text, const time_zone& zone) {
  const auto end = text.rfind(' ');
  const auto gap = text.find(' ');
  if (end == std::string_view::npos || gap == end)
    return std::nullopt;
  const auto name = text.substr(end + 1);
  const auto civil = text.substr(0, end);
  if (const auto exact = parse_rfc3339(std::string(civil) + std::string(name)))
    return time_span{*exact, *exact + second - one};
  const auto date = read_date(civil.substr(0, gap));
  const auto clock = read_clock(trim(civil.substr(gap + 1)));
  if (!date || !clock)
    return std::nullopt;
  const auto moments = zone.to_utc(local_seconds{*date} + clock->since_midnight);
  for (const auto t : {moments.first, moments.second})
    if (zone.abbreviation(t) == name)
      return time_span{t, utc_time{t} + clock->length - one};
  return std::nullopt;
}

std::string two_digits(std::int64_t n) {
  return (n < 10 ? "0" : "") + std::to_string(n);
}

std::string date_text(local_days of) {
  const std::chrono::year_month_day date{of};
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return text.data();
}

std::string clock_text(seconds since_midnight, bool with_seconds) {
  const auto s = since_midnight.count();
  return two_digits(s / 3600) + ":" + two_digits(s / 60 % 60) +
         (with_seconds ? ":" + two_digits(s % 60) : "");
}

std::string offset_text(seconds east) {
  const auto minutes = std::abs(east.count()) / 60;
  return (east.count() < 0 ? "-" : "+") + two_digits(minutes / 60) + ":" + two_digits(minutes % 60);
}

/// Within an hour: "3 min ago", "in 5 s".
std::string distance(milliseconds from_now) {
  const auto s = std::chrono::floor<seconds>(std::chrono::abs(from_now)).count();
  if (s == 0)
    return "now";
  const auto text = s < 60 ? std::to_string(s) + " s" : std::to_string(s / 60) + " min";
  return from_now.count() < 0 ? text + " ago" : "in " + text;
}

} // namespace

result<time_span> parse_human_time(std::string_view text, utc_time now, const time_zone& zone) {
  constexpr std::size_t shown_characters = 40;
  const auto wanted = trim(text);
  if (const auto exact = parse_rfc3339(wanted))
    // Without a fraction it means its whole second.
    return time_span{*exact,
                     wanted.find('.') == std::string_view::npos ? *exact + second - one : *exact};
  if (in_lower_case(wanted) == "now")
    return time_span{now, now};
  if (const auto moment = read_ago(wanted, now))
    return time_span{*moment, *moment};
  if (const auto clock = read_clock(wanted))
    return latest(*clock, now, zone);
  if (const auto span = read_civil(wanted, now, zone))
    return *span;
  if (const auto span = read_shown(wanted, zone))
    return *span;
  return fail(errc::invalid_argument,
              "not a time: \"" + sanitize_utf8(cut_characters(wanted, shown_characters)) + "\"", {},
              std::string("use ") + human_time_forms);
}

std::string show_time(utc_time t, const time_zone& zone) {
  const auto whole = std::chrono::floor<seconds>(t);
  const auto local = zone.to_local(whole);
  const auto date = std::chrono::floor<days>(local);
  auto text = date_text(date) + " " + clock_text(local - date, true);
  const auto name = zone.abbreviation(whole);
  if (name == "UTC")
    return text + "Z";
  const seconds east{local.time_since_epoch() - whole.time_since_epoch()};
  return text + " " + (name.empty() ? offset_text(east) : name);
}

std::string show_time_briefly(utc_time t, utc_time now, const time_zone& zone) {
  const auto from_now = t - now;
  if (std::chrono::abs(from_now) < std::chrono::hours{1})
    return distance(from_now);
  const auto local = zone.to_local(std::chrono::floor<seconds>(t));
  const auto date = std::chrono::floor<days>(local);
  const auto clock = clock_text(local - date, false);
  const auto away = (date - today(now, zone)).count();
  if (away == 0)
    return clock;
  if (away == -1)
    return "yesterday " + clock;
  if (away == 1)
    return "tomorrow " + clock;
  if (std::abs(away) < week)
    return std::string(short_names[std::chrono::weekday{date}.c_encoding()]) + " " + clock;
  return date_text(date);
}

std::string show_length(milliseconds length) {
  const auto ms = std::max<std::int64_t>(length.count(), 0);
  if (ms < 1000)
    return std::to_string(ms) + " ms";
  const auto s = ms / 1000;
  if (s < 60)
    return std::to_string(s) + "." + std::to_string(ms / 100 % 10) + " s";
  const auto pair = [](std::int64_t large, const char* unit, std::int64_t small,
                       const char* small_unit) {
    return std::to_string(large) + " " + unit +
           (small == 0 ? "" : " " + std::to_string(small) + " " + small_unit);
  };
  if (s < 3600)
    return pair(s / 60, "min", s % 60, "s");
  if (s < 86400)
    return pair(s / 3600, "h", s / 60 % 60, "min");
  return pair(s / 86400, "d", s / 3600 % 24, "h");
}

} // namespace boyd::plan
