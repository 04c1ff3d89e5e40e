#include "boyd/config/cron.hpp"

#include "boyd/core/day.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

namespace boyd::config {
namespace {

/// Longer expressions are refused unread: the longest useful one lists every value of every field.
constexpr std::size_t expression_bytes = 1024;
constexpr std::size_t field_count = 5;
constexpr std::string_view advice =
    "use five fields (minute hour day month weekday), @hourly and the like, \"@every 30s\", or "
    "{at: 2026-12-01T09:00}";
constexpr std::string_view at_word = "at";

/// What one field allows; names start at `first_name`.
struct field_rule {
  std::string_view name;
  int low;
  int high;
  int first_name;
  std::vector<std::string_view> names;
};

const std::array<field_rule, field_count>& field_rules() {
  static const std::array<field_rule, field_count> table{{
      {"minute", 0, 59, 0, {}},
      {"hour", 0, 23, 0, {}},
      {"day", 1, 31, 0, {}},
      {"month",
       1,
       12,
       1,
       {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
      {"weekday", 0, 7, 0, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
  }};
  return table;
}

std::string in_quotes(std::string_view text) {
  return "\"" + std::string(cut_characters(text, 40)) + "\"";
}

tl::unexpected<error> refuse(const field_rule& rule, const std::string& why) {
  return fail(errc::invalid_argument, "the " + std::string(rule.name) + " field: " + why, {},
              std::string(advice));
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return out;
}

/// Digits only; nothing for anything else.
std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (text.empty() || code != std::errc{} || stop != end || text.front() == '-') {
    return std::nullopt;
  }
  return value;
}

result<int> parse_value(const field_rule& rule, std::string_view text) {
  const auto word = lower(text);
  for (std::size_t i = 0; i < rule.names.size(); ++i) {
    if (word == rule.names[i]) {
      return rule.first_name + static_cast<int>(i);
    }
  }
  const auto value = number(text);
  if (!value) {
    return refuse(rule, in_quotes(text) + " is neither a number nor a name");
  }
  if (*value < rule.low || *value > rule.high) {
    return refuse(rule, in_quotes(text) + " is not within " + std::to_string(rule.low) + "-" +
                            std::to_string(rule.high));
  }
  return *value;
}

struct span {
  int from = 0;
  int to = 0;
};

/// "*", "5" or "5-9"; a single value with a step runs to the field's end ("5/10").
result<span> parse_span(const field_rule& rule, std::string_view text, bool stepped) {
  if (text == "*") {
    return span{rule.low, rule.high};
  }
  const auto dash = text.find('-');
  auto from = parse_value(rule, text.substr(0, dash));
  if (!from) {
    return fail(from.error());
  }
  if (dash == std::string_view::npos) {
    return span{*from, stepped ? rule.high : *from};
  }
  auto to = parse_value(rule, text.substr(dash + 1));
  if (!to) {
    return fail(to.error());
  }
  // "fri-sun" reads as 5-7: Sunday ends a week as well as it begins one.
  if (*to == 0 && *from > 0 && rule.high == 7) {
    to = rule.high;
  }
  if (*from > *to) {
    return refuse(rule, "the range " + in_quotes(text) + " is reversed");
  }
  return span{*from, *to};
}

template <std::size_t N>
result<std::bitset<N>> parse_field(const field_rule& rule, std::string_view text) {
  std::bitset<N> bits;
  for (const auto part : split(text, ',')) {
    const auto slash = part.find('/');
    int step = 1;
    if (slash != std::string_view::npos) {
      const auto value = number(part.substr(slash + 1));
      if (!value || *value < 1 || *value > rule.high) {
        return refuse(rule, "the step in " + in_quotes(part) + " is not within 1-" +
                                std::to_string(rule.high));
      }
      step = *value;
    }
    const auto range = parse_span(rule, part.substr(0, slash), slash != std::string_view::npos);
    if (!range) {
      return fail(range.error());
    }
    for (int v = range->from; v <= range->to; v += step) {
      bits.set(static_cast<std::size_t>(v) % (rule.high == 7 ? 7u : N));
    }
  }
  return bits;
}

/// `*`, or all of the field's values as one range, with or without a step; also as a part of a
/// list.
bool is_star(const field_rule& rule, std::string_view text) {
  for (const auto part : split(text, ',')) {
    const auto slash = part.find('/');
    const auto range = parse_span(rule, part.substr(0, slash), slash != std::string_view::npos);
    if (range && range->from == rule.low && range->to == rule.high)
      return true;
  }
  return false;
}

/// False when no day of any chosen month exists and the weekday cannot stand in for it.
bool can_fire(const cron_fields& f) {
  if (!f.day_star && !f.weekday_star) {
    return true;
  }
  constexpr std::array<std::size_t, 13> longest{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  for (std::size_t month = 1; month < longest.size(); ++month) {
    for (std::size_t day = 1; f.month.test(month) && day <= longest[month]; ++day) {
      if (f.day.test(day)) {
        return true;
      }
    }
  }
  return false;
}

/// Days in which every weekday meets every date, also the 29th of February, a few times.
constexpr std::chrono::local_days first_looked_at =
    std::chrono::local_days{std::chrono::year{2001} / 1 / 1};
constexpr std::chrono::days days_looked_at{366 * 28};

result<cron_fields> parse_every(std::string_view text) {
  const auto period = parse_duration(trim(text));
  if (!period) {
    return fail(errc::invalid_argument, "@every: " + period.error().what, {},
                "use a duration with a unit, such as \"@every 30s\"");
  }
  if (*period < cron_every_min || *period > cron_every_max) {
    return fail(errc::invalid_argument, "@every: " + format_duration(*period) + " is not within " +
                                            format_duration(cron_every_min) + " and " +
                                            format_duration(cron_every_max));
  }
  cron_fields out;
  out.every = *period;
  return out;
}

/// "2026-12-01T09:00" and "2026-12-01 09:00:30", whose zone is the schedule's.
std::optional<local_seconds> civil_time(std::string_view text) {
  constexpr std::size_t day_length = 10;
  constexpr std::string_view form = "0000-00-00T00:00:00";
  if ((text.size() != form.size() && text.size() != form.size() - 3) ||
      !is_day(text.substr(0, day_length)) || text[13] != ':' ||
      (text.size() == form.size() && text[16] != ':') ||
      std::string_view("Tt ").find(text[day_length]) == std::string_view::npos) {
    return std::nullopt;
  }
  const auto hour = number(text.substr(11, 2));
  const auto minute = number(text.substr(14, 2));
  const auto second = text.size() == form.size() ? number(text.substr(17, 2)) : 0;
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 59) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{
      std::chrono::year{*number(text.substr(0, 4))},
      std::chrono::month{static_cast<unsigned>(*number(text.substr(5, 2)))},
      std::chrono::day{static_cast<unsigned>(*number(text.substr(8, 2)))}};
  return local_seconds{std::chrono::local_days{date}} + std::chrono::hours{*hour} +
         std::chrono::minutes{*minute} + seconds{*second};
}

/// What stands behind "at".
result<cron_fields> parse_once(std::string_view text) {
  constexpr std::size_t minute_end = 16;
  cron_fields out;
  std::string exact(text);
  if (exact.size() > minute_end && exact[minute_end] != ':') {
    exact.insert(minute_end, ":00");
  }
  if (const auto moment = parse_rfc3339(exact)) {
    out.once = *moment;
  } else if (const auto civil = civil_time(text)) {
    out.once = *civil;
  } else {
    return fail(errc::invalid_argument, "at: " + in_quotes(text) + " is not a date and time", {},
                "use a form such as 2026-12-01T09:00 (time zone of the schedule), or with a zone: "
                "2026-12-01T09:00:00Z");
  }
  return out;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto begin = text.find_first_not_of(" \t", at);
    if (begin == std::string_view::npos) {
      break;
    }
    const auto end = std::min(text.find_first_of(" \t", begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    at = end;
  }
  return out;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> macros{{
    {"@hourly", "0 * * * *"},
    {"@daily", "0 0 * * *"},
    {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},
    {"@monthly", "0 0 1 * *"},
    {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
}};

/// "10:00" as a schedule of every day; empty for anything else.
std::string every_day_at(std::string_view clock) {
  const auto colon = clock.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon > 2 || clock.size() != colon + 3) {
    return {};
  }
  const auto number = [&](std::string_view digits, int end) {
    int value = -1;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return read.ec == std::errc{} && read.ptr == digits.data() + digits.size() && value < end
               ? value
               : -1;
  };
  const int hour = number(clock.substr(0, colon), 24);
  const int minute = number(clock.substr(colon + 1), 60);
  return hour < 0 || minute < 0 ? std::string()
                                : std::to_string(minute) + " " + std::to_string(hour) + " * * *";
}

/// The schedule that somebody meant who wrote "daily", "every 5m", "5m" or "10:00"; or empty.
std::string meant_by(std::string_view text) {
  if (auto daily = every_day_at(text); !daily.empty()) {
    return in_quotes(daily);
  }
  constexpr std::string_view every = "every ";
  const auto word = lower(text);
  const auto period =
      trim(std::string_view(word).substr(word.starts_with(every) ? every.size() : 0));
  if (period.find_first_not_of("0123456789") != std::string_view::npos && parse_duration(period)) {
    return in_quotes("@every " + std::string(period));
  }
  std::vector<std::string_view> names;
  for (const auto& macro : macros) {
    names.push_back(macro.first);
  }
  return std::string(nearest("@" + word, names));
}

result<std::string_view> expand_macro(std::string_view text) {
  std::vector<std::string_view> names{"@every"};
  for (const auto& [name, fields] : macros) {
    if (text == name) {
      return fields;
    }
    names.push_back(name);
  }
  const auto near = nearest(text, names);
  return fail(errc::invalid_argument, in_quotes(text) + " is not a known schedule name", {},
              near.empty() ? std::string(advice) : "did you mean " + std::string(near) + "?");
}

} // namespace

result<cron_fields> parse_cron(std::string_view text) {
  if (text.size() > expression_bytes) {
    return fail(errc::invalid_argument, "the expression is too long", {}, std::string(advice));
  }
  text = trim(text);
  if (text.starts_with("@every ") || text == "@every") {
    return parse_every(text.substr(std::string_view("@every").size()));
  }
  if (text.starts_with(at_word) && text.find_first_of(" :\t") == at_word.size()) {
    return parse_once(trim(text.substr(at_word.size() + 1)));
  }
  if (text.starts_with('@')) {
    const auto fields = expand_macro(text);
    if (!fields) {
      return fail(fields.error());
    }
    text = *fields;
  }
  const auto parts = words(text);
  if (parts.size() != field_count) {
    const auto meant = meant_by(text);
    return fail(errc::invalid_argument,
                "a schedule has five fields (minute hour day month weekday), not " +
                    std::to_string(parts.size()),
                {}, meant.empty() ? std::string(advice) : "did you mean " + meant + "?");
  }
  const auto minute = parse_field<60>(field_rules()[0], parts[0]);
  const auto hour = parse_field<24>(field_rules()[1], parts[1]);
  const auto day = parse_field<32>(field_rules()[2], parts[2]);
  const auto month = parse_field<13>(field_rules()[3], parts[3]);
  const auto weekday = parse_field<7>(field_rules()[4], parts[4]);
  if (!minute || !hour || !day || !month || !weekday) {
    return fail(!minute  ? minute.error()
                : !hour  ? hour.error()
                : !day   ? day.error()
                : !month ? month.error()
                         : weekday.error());
  }
  cron_fields out{*minute,
                  *hour,
                  *day,
                  *month,
                  *weekday,
                  parts[2].starts_with('*'),
                  parts[4].starts_with('*'),
                  std::nullopt,
                  std::nullopt};
  out.minute_star = minute->all() || is_star(field_rules()[0], parts[0]);
  out.hour_star = hour->all() || is_star(field_rules()[1], parts[1]);
  if (!can_fire(out)) {
    return refuse(field_rules()[2],
                  "none of the months has this day, so the schedule would never fire");
  }
  return out;
}

bool fires_on(const cron_fields& f, std::chrono::local_days day) {
  const std::chrono::year_month_day date{day};
  if (!f.month.test(static_cast<unsigned>(date.month()))) {
    return false;
  }
  const bool in_month = f.day.test(static_cast<unsigned>(date.day()));
  const bool in_week = f.weekday.test(std::chrono::weekday{day}.c_encoding());
  return f.day_star || f.weekday_star ? in_month && in_week : in_month || in_week;
}

std::optional<milliseconds> shortest_pause(const cron_fields& f) {
  if (f.every || f.once) {
    return f.every;
  }
  std::vector<std::chrono::minutes> times; // of a day on which it fires
  for (std::size_t hour = 0; hour < f.hour.size(); ++hour) {
    for (std::size_t minute = 0; minute < f.minute.size(); ++minute) {
      if (f.hour.test(hour) && f.minute.test(minute)) {
        times.push_back(std::chrono::hours{hour} + std::chrono::minutes{minute});
      }
    }
  }
  if (times.empty()) {
    return std::nullopt;
  }
  std::optional<milliseconds> shortest;
  const auto note = [&](milliseconds pause) {
    shortest = std::min(shortest.value_or(pause), pause);
  };
  for (std::size_t i = 1; i < times.size(); ++i) {
    note(times[i] - times[i - 1]);
  }
  std::optional<std::chrono::local_days> last;
  for (auto day = first_looked_at; day < first_looked_at + days_looked_at;
       day += std::chrono::days{1}) {
    if (!fires_on(f, day)) {
      continue;
    }
    if (last) {
      note(day - *last + times.front() - times.back());
    }
    last = day;
  }
  return shortest;
}

} // namespace boyd::config
