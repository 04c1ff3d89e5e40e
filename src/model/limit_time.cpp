#include "boyd/core/text.hpp"
#include "boyd/model/limit_text.hpp"
#include "limit_words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

/// Reads a moment from words.
namespace boyd::model {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

/// More is no wait that anybody would name.
constexpr double longest_ms = 366.0 * 86'400'000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct unit_name {
  std::string_view name;
  double ms;
};
constexpr double second_ms = 1000;
constexpr double minute_ms = 60 * second_ms;
constexpr double hour_ms = 60 * minute_ms;
constexpr double day_ms = 24 * hour_ms;
constexpr std::array<unit_name, 25> units{{{"ms", 1},
                                           {"msec", 1},
                                           {"millis", 1},
                                           {"millisecond", 1},
                                           {"milliseconds", 1},
                                           {"s", second_ms},
                                           {"sec", second_ms},
                                           {"secs", second_ms},
                                           {"second", second_ms},
                                           {"seconds", second_ms},
                                           {"m", minute_ms},
                                           {"min", minute_ms},
                                           {"mins", minute_ms},
                                           {"minute", minute_ms},
                                           {"minutes", minute_ms},
                                           {"h", hour_ms},
                                           {"hr", hour_ms},
                                           {"hrs", hour_ms},
                                           {"hour", hour_ms},
                                           {"hours", hour_ms},
                                           {"d", day_ms},
                                           {"day", day_ms},
                                           {"days", day_ms},
                                           {"week", 7 * day_ms},
                                           {"weeks", 7 * day_ms}}};

constexpr std::array<std::string_view, 7> weekdays{"sunday",   "monday", "tuesday", "wednesday",
                                                   "thursday", "friday", "saturday"};
constexpr std::array<std::string_view, 12> months{"january",   "february", "march",    "april",
                                                  "may",       "june",     "july",     "august",
                                                  "september", "october",  "november", "december"};

/// Three letters or more of a name.
template <std::size_t Size>
std::optional<unsigned> index_of(const std::array<std::string_view, Size>& names,
                                 std::string_view word) {
  constexpr std::size_t shortest = 3;
  if (word.size() < shortest)
    return std::nullopt;
  for (unsigned i = 0; i < names.size(); ++i)
    if (names[i].starts_with(word) || (word == "sept" && names[i] == "september"))
      return i;
  return std::nullopt;
}

struct zone_name {
  std::string_view name;
  std::string_view zone; ///< IANA; empty: `offset`
  milliseconds offset{0};
};
/// Of abbreviations with two meanings the more western one: its time comes later.
constexpr std::array<zone_name, 34> zone_names{{{"utc", {}, 0h},
                                                {"gmt", {}, 0h},
                                                {"z", {}, 0h},
                                                {"wet", {}, 0h},
                                                {"west", {}, 1h},
                                                {"bst", {}, 1h},
                                                {"ist", {}, 1h},
                                                {"cet", {}, 1h},
                                                {"cest", {}, 2h},
                                                {"eet", {}, 2h},
                                                {"eest", {}, 3h},
                                                {"msk", {}, 3h},
                                                {"sgt", {}, 8h},
                                                {"hkt", {}, 8h},
                                                {"jst", {}, 9h},
                                                {"kst", {}, 9h},
                                                {"aest", {}, 10h},
                                                {"aedt", {}, 11h},
                                                {"est", {}, -5h},
                                                {"edt", {}, -4h},
                                                {"cst", {}, -6h},
                                                {"cdt", {}, -5h},
                                                {"mst", {}, -7h},
                                                {"mdt", {}, -6h},
                                                {"pst", {}, -8h},
                                                {"pdt", {}, -7h},
                                                {"et", "America/New_York"},
                                                {"eastern", "America/New_York"},
                                                {"ct", "America/Chicago"},
                                                {"central", "America/Chicago"},
                                                {"mt", "America/Denver"},
                                                {"mountain", "America/Denver"},
                                                {"pt", "America/Los_Angeles"},
                                                {"pacific", "America/Los_Angeles"}}};

/// Words between "resets" and the time itself.
constexpr std::array<std::string_view, 35> fillers{
    "in",    "at",     "after",         "on",    "by",   "for",    "until",
    "till",  "around", "about",         "the",   "it",   "is",     "be",
    "will",  "time",   "date",          "again", "your", "limit",  "quota",
    "delay", "please", "daily",         "every", "from", "this",   "of",
    "to",    "next",   "approximately", "only",  "then", "access", "later"};

/// A place in a text of ASCII characters.
class cursor {
 public:
  explicit cursor(std::string_view text, std::size_t at = 0) : text_(text), at_(at) {}

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool take(char c) {
    const bool there = peek() == c && c != '\0';
    at_ += there ? 1 : 0;
    return there;
  }
  void skip(std::string_view any) {
    while (peek() != '\0' && any.find(peek()) != std::string_view::npos)
      ++at_;
  }
  std::string_view letters() const {
    std::size_t n = 0;
    while (is_letter(peek(n)))
      ++n;
    return text_.substr(std::min(at_, text_.size()), n);
  }
  std::size_t digits() const {
    std::size_t n = 0;
    while (is_digit(peek(n)))
      ++n;
    return n;
  }
  void move(std::size_t n) { at_ = std::min(at_ + n, text_.size()); }
  /// Of at most 4 digits.
  std::optional<int> number(std::size_t least, std::size_t most) {
    const auto n = digits();
    if (n < least || n > most)
      return std::nullopt;
    int value = 0;
    std::from_chars(text_.data() + at_, text_.data() + at_ + n, value);
    move(n);
    return value;
  }
  /// With a fraction.
  std::optional<double> real() {
    constexpr std::size_t longest = 15;
    const auto n = digits();
    if (n == 0 || n > longest)
      return std::nullopt;
    double value = 0;
    for (std::size_t i = 0; i < n; ++i)
      value = value * 10 + (peek(i) - '0');
    move(n);
    if (peek() == '.' && is_digit(peek(1))) {
      move(1);
      for (double unit = 0.1; is_digit(peek()); unit /= 10) {
        value += (peek() - '0') * unit;
        move(1);
      }
    }
    return value;
  }
  std::size_t at() const { return at_; }
  std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }

 private:
  std::string_view text_;
  std::size_t at_;
};

std::optional<milliseconds> to_ms(double ms) {
  if (!(ms > 0))
    return milliseconds{0};
  constexpr double noise = 1e-6; // of fractions
  return milliseconds{static_cast<std::int64_t>(std::ceil(std::min(ms, longest_ms) - noise))};
}

/// "1h 30m", "34.07s", "3 days 4 hours and 5 minutes", "an hour", "PT20S". `bare`: the
/// milliseconds of a number without a unit; 0: it is no duration.
std::optional<milliseconds> read_duration(cursor& c, double bare) {
  double sum = 0;
  bool any = false;
  auto end = c;
  if (c.peek() == 'p' && (c.peek(1) == 't' || is_digit(c.peek(1)))) // of ISO 8601
    c.skip("pt");
  for (;;) {
    std::optional<double> value;
    const auto article = c.letters();
    if (article == "a" || article == "an" || article == "one") {
      c.move(article.size());
      value = 1;
    } else {
      value = c.real();
    }
    if (!value)
      break;
    const bool glued = is_letter(c.peek());
    c.skip(" ");
    const auto word = c.letters();
    const auto* const unit = std::ranges::find(units, word, &unit_name::name);
    if (unit == units.end()) {
      if (!any && bare > 0 && !glued && c.peek() != ':' && c.peek() != '-' && c.peek() != '/' &&
          word.empty())
        return to_ms(*value * bare);
      break;
    }
    c.move(word.size());
    sum += *value * unit->ms;
    any = true;
    end = c;
    c.skip(" ,t");
    if (c.letters() == "and")
      c.move(3);
    c.skip(" ");
  }
  c = end;
  return any ? to_ms(sum) : std::nullopt;
}

/// A zone's name or offset behind a time, in `original` case.
void read_zone(cursor& c, std::string_view original, told_time::civil& out) {
  auto ahead = c;
  ahead.skip(" ,(");
  if (ahead.letters() == "your" || ahead.letters() == "local")
    return;
  std::size_t length = 0;
  while (is_letter(ahead.peek(length)) || is_digit(ahead.peek(length)) ||
         (length > 0 && ahead.peek(length) != '\0' &&
          std::string_view("/_+-").find(ahead.peek(length)) != std::string_view::npos))
    ++length;
  const auto name = original.substr(ahead.at(), length);
  if (const auto slash = name.find('/'); slash != std::string_view::npos && is_letter(name[0])) {
    out.zone = name;
    ahead.move(length);
    c = ahead;
    return;
  }
  const auto word = ahead.letters();
  const auto* const known = std::ranges::find(zone_names, word, &zone_name::name);
  if (known != zone_names.end()) {
    ahead.move(word.size());
    out.zone = known->zone;
    if (known->zone.empty())
      out.offset = known->offset;
    c = ahead;
    if (word != "utc" && word != "gmt")
      return;
    ahead.skip(" ");
  } else if (!word.empty()) {
    return;
  }
  const bool east = ahead.take('+');
  if (!east && !ahead.take('-'))
    return;
  const auto digits = ahead.digits();
  const auto whole = ahead.number(1, 4);
  if (!whole || digits == 3)
    return;
  int hour = digits == 4 ? *whole / 100 : *whole;
  int minute = digits == 4 ? *whole % 100 : 0;
  if (digits <= 2 && ahead.take(':'))
    minute = ahead.number(2, 2).value_or(0);
  if (hour > 14 || minute > 59)
    return;
  const milliseconds offset = hours{hour} + minutes{minute};
  out.offset = east ? offset : -offset;
  c = ahead;
}

/// "3am", "5:30 PM", "17:30:05.2", "noon".
bool read_time_of_day(cursor& c, told_time::civil& out) {
  if (const auto word = c.letters(); word == "noon" || word == "midnight") {
    out.of_day = word == "noon" ? hours{12} : hours{24};
    c.move(word.size());
    return true;
  }
  auto ahead = c;
  auto hour = ahead.number(1, 2);
  if (!hour || *hour > 24)
    return false;
  int minute = 0;
  int second = 0;
  bool parts = false;
  if ((ahead.peek() == ':' || ahead.peek() == '.') && is_digit(ahead.peek(1))) {
    const bool dotted = ahead.peek() == '.';
    ahead.move(1);
    const auto value = ahead.number(2, 2);
    if (!value || *value > 59)
      return false;
    minute = *value;
    parts = !dotted; // "5.30" is a time with am or pm only
    if (ahead.peek() == ':' && is_digit(ahead.peek(1))) {
      ahead.move(1);
      second = std::min(ahead.number(2, 2).value_or(0), 59);
      if (ahead.take('.'))
        ahead.skip("0123456789");
    }
  }
  auto half = ahead;
  half.skip(" ");
  const char first = half.peek();
  const bool dots = half.peek(1) == '.' && half.peek(2) == 'm';
  const bool named = (first == 'a' || first == 'p') && (half.peek(1) == 'm' || dots) &&
                     !is_letter(half.peek(dots ? 3 : 2));
  if (named) {
    half.move(dots ? 3 : 2);
    half.take('.');
    if (*hour > 12)
      return false;
    hour = *hour % 12 + (first == 'p' ? 12 : 0);
    ahead = half;
  } else if (!parts) {
    return false;
  }
  out.of_day = hours{*hour} + minutes{minute} + seconds{second};
  c = ahead;
  return true;
}

bool read_iso_date(cursor& c, told_time::civil& out) {
  auto ahead = c;
  const auto year = ahead.number(4, 4);
  const char between = ahead.peek();
  if (!year || (between != '-' && between != '/'))
    return false;
  ahead.move(1);
  const auto month = ahead.number(1, 2);
  if (!month || !ahead.take(between))
    return false;
  const auto day = ahead.number(1, 2);
  if (!day)
    return false;
  out.year = year;
  out.month = static_cast<unsigned>(*month);
  out.day = static_cast<unsigned>(*day);
  if (ahead.peek() == 't' && is_digit(ahead.peek(1)))
    ahead.move(1);
  c = ahead;
  return true;
}

bool read_day_number(cursor& c, told_time::civil& out) {
  auto ahead = c;
  const auto value = ahead.number(1, 2);
  if (!value || *value < 1 || *value > 31 || ahead.peek() == ':')
    return false;
  for (const auto* ending : {"st", "nd", "rd", "th"})
    if (ahead.letters() == ending)
      ahead.move(2);
  auto next = ahead;
  next.skip(" ,.");
  const bool month_follows = index_of(months, next.letters()).has_value();
  if (!out.month && !month_follows)
    return false;
  if (const auto word = next.letters(); word == "am" || word == "pm")
    return false;
  out.day = static_cast<unsigned>(*value);
  c = ahead;
  return true;
}

/// A day, a time of day, or both, in any order, and the zone.
std::optional<told_time::civil> read_civil(cursor& c, std::string_view original) {
  constexpr int most_parts = 10;
  told_time::civil out;
  bool has_time = false;
  bool has_day = false;
  for (int i = 0; i < most_parts; ++i) {
    auto ahead = c;
    ahead.skip(" ,(");
    const auto word = ahead.letters();
    if (const auto month = index_of(months, word); month && !out.month) {
      out.month = *month + 1;
      ahead.move(word.size());
      ahead.skip(".");
    } else if (const auto weekday = index_of(weekdays, word); weekday && !out.weekday) {
      out.weekday = *weekday;
      has_day = true;
      ahead.move(word.size());
      ahead.skip(".");
    } else if (word == "tomorrow" || word == "today") {
      out.tomorrow = word == "tomorrow";
      has_day = true;
      ahead.move(word.size());
    } else if (word == "at" || word == "on") {
      ahead.move(word.size());
    } else if ((!out.day && read_iso_date(ahead, out)) ||
               (!out.day && read_day_number(ahead, out))) {
      has_day = true;
    } else if (!has_time && read_time_of_day(ahead, out)) {
      has_time = true;
      c = ahead;
      read_zone(c, original, out);
      continue;
    } else if (const auto digits = ahead.digits(); digits == 4 && out.month && !out.year) {
      out.year = ahead.number(4, 4);
    } else {
      break;
    }
    c = ahead;
  }
  if (out.month.has_value() != out.day.has_value())
    return std::nullopt;
  if (out.day && (*out.month < 1 || *out.month > 12 || *out.day < 1 || *out.day > 31))
    return std::nullopt;
  if (!has_time && !has_day)
    return std::nullopt;
  if (!has_time)
    read_zone(c, original, out);
  return out;
}

std::optional<utc_time> read_epoch(cursor& c) {
  const auto digits = c.digits();
  constexpr std::size_t in_seconds = 10;
  constexpr std::size_t in_ms = 13;
  if (digits != in_seconds && digits != in_ms)
    return std::nullopt;
  const auto value = c.real();
  if (!value)
    return std::nullopt;
  const double s = digits == in_ms ? *value / second_ms : *value;
  if (s < first_epoch || s > last_epoch)
    return std::nullopt;
  return from_unix_ms(static_cast<std::int64_t>(std::ceil(s * second_ms)));
}

/// What stands right at `c`.
std::optional<told_time> read_time(cursor c, std::string_view original, double bare) {
  told_time out;
  if (auto ahead = c; (out.at = read_epoch(ahead)))
    return out;
  auto ahead = c;
  if (auto civil = read_civil(ahead, original)) {
    out.clock = std::move(civil);
    return out;
  }
  if (ahead = c; (out.wait = read_duration(ahead, bare)))
    return out;
  return std::nullopt;
}

/// The milliseconds of a number without a unit behind this word; 0: it needs a unit.
double unit_behind(std::string_view word) {
  const auto has = [&](std::string_view part) { return word.find(part) != std::string_view::npos; };
  if (word.ends_with("ms") || has("millis"))
    return 1;
  return has("-") || has("_") || has("retryafter") || has("retrydelay") || word == "after" ||
                 word == "in" || word == "for" || word == "wait"
             ? second_ms
             : 0;
}

std::optional<told_time> time_behind(std::string_view low, std::string_view original,
                                     std::size_t at) {
  constexpr int most_words = 8;
  constexpr std::string_view marks = " \t\r\n\"':=|,.([{>-";
  cursor c(low, at);
  double bare = 0;
  for (int i = 0; i < most_words; ++i) {
    std::size_t length = 0;
    while (is_letter(c.peek(length)) ||
           (length > 0 &&
            (c.peek(length) == '_' || (c.peek(length) == '-' && is_letter(c.peek(length + 1))))))
      ++length;
    const auto word = c.rest().substr(0, length);
    if (i > 0) {
      if (auto found = read_time(c, original, bare))
        return found;
      if (std::ranges::find(fillers, word) == fillers.end())
        return std::nullopt;
    }
    c.move(length);
    if (const auto unit = unit_behind(word); unit > 0)
      bare = unit;
    c.skip(marks);
  }
  return std::nullopt;
}

} // namespace

std::optional<told_time> find_time(std::string_view text) {
  static constexpr std::array<std::string_view, 13> anchors{
      "again", "retry",     "retrie", "reset",    "renew",    "refresh", "wait",
      "until", "available", "regain", "restored", "reached|", "reached:"};
  const auto original = plain_ascii(text);
  const auto low = lower_ascii(original);
  for (std::size_t at = 0; at < low.size(); ++at) {
    const auto rest = std::string_view(low).substr(at);
    if (std::ranges::none_of(anchors, [&](auto a) { return rest.starts_with(a); }))
      continue;
    // The whole word: x-ratelimit-reset-after.
    auto begin = at;
    while (begin > 0 &&
           (is_letter(low[begin - 1]) || low[begin - 1] == '_' || low[begin - 1] == '-'))
      --begin;
    if (auto found = time_behind(low, original, begin))
      return found;
  }
  return std::nullopt;
}

} // namespace boyd::model
