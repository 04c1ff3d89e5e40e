#include "boyd/core/time.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace boyd {
namespace {

using std::chrono::days;
using std::chrono::sys_days;

/// RFC 3339 has four digits for the year.
constexpr utc_time first_instant = sys_days{std::chrono::year{0} / 1 / 1};
constexpr utc_time last_instant =
    sys_days{std::chrono::year{9999} / 12 / 31} + days{1} - milliseconds{1};

/// Far beyond every use, far below the overflow of a sum of two.
constexpr milliseconds longest_duration = days{36'500};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Reads fixed-width numbers and literal characters from the left of a text.
class scanner {
 public:
  explicit scanner(std::string_view text) : rest_{text} {}

  bool number(std::size_t width, int& value) {
    if (rest_.size() < width || !std::all_of(rest_.begin(), rest_.begin() + width, is_digit))
      return false;
    value = 0;
    for (const char c : rest_.substr(0, width))
      value = value * 10 + (c - '0');
    rest_.remove_prefix(width);
    return true;
  }

  bool one_of(std::string_view accepted) {
    if (rest_.empty() || accepted.find(rest_.front()) == std::string_view::npos)
      return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// A fraction of a second after its point, cut to milliseconds.
  bool fraction(int& millis) {
    int weight = 100;
    std::size_t length = 0;
    millis = 0;
    for (; length < rest_.size() && is_digit(rest_[length]); ++length, weight /= 10)
      millis += weight * (rest_[length] - '0');
    rest_.remove_prefix(length);
    return length > 0;
  }

  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

/// "Z" or "+hh:mm"; false when there is neither.
bool scan_offset(scanner& in, std::chrono::minutes& offset) {
  offset = {};
  if (in.one_of("Zz"))
    return true;
  const bool west = in.peek() == '-';
  int hours = 0;
  int minutes = 0;
  if (!in.one_of("+-") || !in.number(2, hours) || !in.one_of(":") || !in.number(2, minutes) ||
      hours > 23 || minutes > 59)
    return false;
  offset = std::chrono::minutes{hours * 60 + minutes};
  if (west)
    offset = -offset;
  return true;
}

struct duration_unit {
  std::string_view name;
  milliseconds length;
};

constexpr std::array<duration_unit, 5> duration_units{{
    {"d", days{1}},
    {"h", 1h},
    {"m", 1min},
    {"s", 1s},
    {"ms", 1ms},
}};

tl::unexpected<error> bad_duration(std::string_view text, std::string_view why) {
  return fail(errc::parse_error,
              "not a duration: \"" + std::string{text.substr(0, 40)} + "\" (" + std::string{why} +
                  ")",
              {}, "use a form such as 250ms, 30s, 10m, 1h30m or 7d");
}

/// The unit at the start of `text`, at or after `from` in the table; the end of the table if none.
std::size_t unit_at(std::string_view text, std::size_t from) {
  std::size_t length = 0;
  while (length < text.size() && !is_digit(text[length]))
    ++length;
  const std::string_view name = text.substr(0, length);
  while (from < duration_units.size() && duration_units[from].name != name)
    ++from;
  return from;
}

} // namespace

std::string format_rfc3339(utc_time t, bool millis) {
  t = std::clamp(t, first_instant, last_instant);
  const auto day = std::chrono::floor<days>(t);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{t - day};
  std::array<char, 64> text{};
  const int length = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()));
  std::string formatted(text.data(), static_cast<std::size_t>(length));
  if (millis) {
    const auto ms = static_cast<int>(clock.subseconds().count());
    formatted += '.';
    formatted += static_cast<char>('0' + ms / 100);
    formatted += static_cast<char>('0' + ms / 10 % 10);
    formatted += static_cast<char>('0' + ms % 10);
  }
  return formatted + 'Z';
}

result<utc_time> parse_rfc3339(std::string_view text) {
  const auto bad = [&] {
    return fail(errc::parse_error, "not a time: \"" + std::string{text.substr(0, 40)} + "\"", {},
                "use RFC 3339, such as 2026-02-13T10:00:00Z");
  };
  scanner in{text};
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, millis = 0;
  if (!in.number(4, year) || !in.one_of("-") || !in.number(2, month) || !in.one_of("-") ||
      !in.number(2, day) || !in.one_of("Tt ") || !in.number(2, hour) || !in.one_of(":") ||
      !in.number(2, minute) || !in.one_of(":") || !in.number(2, second))
    return bad();
  if (in.one_of(".") && !in.fraction(millis))
    return bad();
  std::chrono::minutes offset{};
  if (!scan_offset(in, offset) || !in.at_end())
    return bad();
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  // 60 is a leap second (RFC 3339 §5.6); like POSIX it reads as the second after 59.
  if (!date.ok() || hour > 23 || minute > 59 || second > 60)
    return bad();
  return utc_time{sys_days{date}} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
         seconds{second} + milliseconds{millis} - offset;
}

result<milliseconds> parse_duration(std::string_view text) {
  if (text == "0")
    return milliseconds{0};
  if (text.empty())
    return bad_duration(text, "empty");
  milliseconds sum{0};
  std::size_t unit = 0;
  for (std::string_view rest = text; !rest.empty();) {
    std::int64_t count = 0;
    std::size_t digits = 0;
    for (; digits < rest.size() && is_digit(rest[digits]); ++digits) {
      count = count * 10 + (rest[digits] - '0');
      if (count > longest_duration.count())
        return bad_duration(text, "too long");
    }
    if (digits == 0)
      return bad_duration(text, "a number is missing");
    rest.remove_prefix(digits);
    if (rest.empty())
      return bad_duration(text, "a unit is missing");
    unit = unit_at(rest, unit);
    if (unit == duration_units.size())
      return bad_duration(text, "units are d, h, m, s, ms, in this order, each once");
    if (count > longest_duration / duration_units[unit].length)
      return bad_duration(text, "too long");
    sum += count * duration_units[unit].length;
    rest.remove_prefix(duration_units[unit].name.size());
    ++unit;
  }
  if (sum > longest_duration)
    return bad_duration(text, "too long");
  return sum;
}

std::string format_duration(milliseconds d) {
  if (d == milliseconds{0})
    return "0";
  std::string text;
  auto rest = d;
  if (d < milliseconds{0}) {
    text = "-";
    rest = -d;
  }
  for (const duration_unit& unit : duration_units) {
    const auto count = rest / unit.length;
    if (count == 0)
      continue;
    text += std::to_string(count);
    text += unit.name;
    rest -= count * unit.length;
  }
  return text;
}

} // namespace boyd
