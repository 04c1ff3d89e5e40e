#include "boyd/memory/recall.hpp"
#include "unicode.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utf8proc.h>

namespace boyd::memory {

namespace {

constexpr std::array<std::string_view, 12> months{"january",   "february", "march",    "april",
                                                  "may",       "june",     "july",     "august",
                                                  "september", "october",  "november", "december"};
constexpr int may = 5;
/// Characters before and after a month in which its year is looked for.
constexpr std::size_t year_before = 12;
constexpr std::size_t year_after = 14;
constexpr int last_day = 31;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Lower case, one byte for each character; those above 127 become one that is no part of a word.
std::string plain(std::string_view utf8) {
  constexpr char other = '\x7f';
  constexpr char32_t ascii_end = 0x80;
  std::string out;
  for (std::size_t at = 0; at < utf8.size();) {
    const auto c =
        utf8proc_tolower(static_cast<utf8proc_int32_t>(detail::next_code_point(utf8, at)));
    out += static_cast<char32_t>(c) < ascii_end ? static_cast<char>(c) : other;
  }
  return out;
}

bool starts_word(std::string_view s, std::size_t i) {
  return i == 0 || !is_word(s[i - 1]);
}
bool ends_word(std::string_view s, std::size_t end) {
  return end == s.size() || !is_word(s[end]);
}

std::size_t skip_blanks(std::string_view s, std::size_t i) {
  while (i < s.size() && is_blank(s[i]))
    ++i;
  return i;
}

/// `in may`, `12 may`: what stands before the month at `at`, but for blanks and a comma.
bool is_led_in(std::string_view s, std::size_t at) {
  auto end = at;
  const auto back = [&] {
    while (end > 0 && is_blank(s[end - 1]))
      --end;
  };
  back();
  if (end > 0 && s[end - 1] == ',')
    --end, back();
  if (end > 0 && is_digit(s[end - 1]))
    return true;
  for (const std::string_view word : {"in", "of", "since", "until", "on"})
    if (s.substr(0, end).ends_with(word) && starts_word(s, end - word.size()))
      return true;
  return false;
}

/// `may 12`.
bool is_followed_by_digit(std::string_view s, std::size_t end) {
  auto i = skip_blanks(s, end);
  if (i < s.size() && s[i] == ',')
    i = skip_blanks(s, i + 1);
  return i < s.size() && is_digit(s[i]);
}

/// The word "may" is a month only with a preposition or a number by it, somewhere in the question.
bool means_month_of_may(std::string_view s) {
  const auto name = months[may - 1];
  for (auto i = s.find(name); i != s.npos; i = s.find(name, i + 1)) {
    const auto end = i + name.size();
    if (ends_word(s, end) &&
        (is_led_in(s, i) || (starts_word(s, i) && is_followed_by_digit(s, end))))
      return true;
  }
  return false;
}

int number(std::string_view digits) {
  int n = 0;
  for (const char c : digits)
    n = n * 10 + (c - '0'); // NOLINT(readability-magic-numbers)
  return n;
}

/// The four digits of a year at `i`, as a whole word.
std::optional<int> year_at(std::string_view s, std::size_t i, bool also_last_century) {
  constexpr std::size_t digits = 4;
  const auto y = s.substr(i, digits);
  if (y.size() < digits || !std::ranges::all_of(y, is_digit) || !starts_word(s, i) ||
      !ends_word(s, i + digits))
    return std::nullopt;
  if (!y.starts_with("20") && !(also_last_century && y.starts_with("19")))
    return std::nullopt;
  return number(y);
}

int year_near(std::string_view s, std::size_t begin, std::size_t end) {
  const auto from = begin > year_before ? begin - year_before : 0;
  const auto piece = s.substr(from, end + year_after - from);
  for (std::size_t i = 0; i < piece.size(); ++i)
    if (const auto y = year_at(piece, i, true))
      return *y;
  return 0;
}

std::size_t skip_ordinal(std::string_view s, std::size_t i) {
  for (const std::string_view ending : {"st", "nd", "rd", "th"})
    if (s.substr(i).starts_with(ending))
      return i + ending.size();
  return i;
}

/// `12th of MONTH` from `i` on.
std::optional<int> day_before(std::string_view s, std::size_t i, std::string_view month) {
  if (!starts_word(s, i))
    return std::nullopt;
  for (const std::size_t n : {2U, 1U}) {
    const auto digits = s.substr(i, n);
    if (digits.size() < n || !std::ranges::all_of(digits, is_digit))
      continue;
    for (const auto after : {skip_ordinal(s, i + n), i + n}) {
      const auto at = skip_blanks(s, after);
      if (s.substr(at).starts_with(month))
        return number(digits);
      if (s.substr(at).starts_with("of") && at + 2 < s.size() && is_blank(s[at + 2]) &&
          s.substr(skip_blanks(s, at + 2)).starts_with(month))
        return number(digits);
    }
  }
  return std::nullopt;
}

/// `MONTH 12th` from `i` on.
std::optional<int> day_after(std::string_view s, std::size_t i, std::string_view month) {
  if (!s.substr(i).starts_with(month))
    return std::nullopt;
  const auto end = i + month.size();
  const auto at = skip_blanks(s, end);
  if (at == end)
    return std::nullopt;
  for (const std::size_t n : {2U, 1U}) {
    const auto digits = s.substr(at, n);
    if (digits.size() == n && std::ranges::all_of(digits, is_digit) &&
        (ends_word(s, skip_ordinal(s, at + n)) || ends_word(s, at + n)))
      return number(digits);
  }
  return std::nullopt;
}

/// The number in the first place of the question where a day stands by this month.
int day_by(std::string_view s, std::string_view month) {
  for (std::size_t i = 0; i < s.size(); ++i) {
    auto day = day_before(s, i, month);
    if (!day)
      day = day_after(s, i, month);
    if (day)
      return *day >= 1 && *day <= last_day ? *day : 0;
  }
  return 0;
}

} // namespace

std::vector<named_date> dates_in(std::string_view utf8) {
  const auto text = plain(utf8);
  const std::string_view s = text;
  std::vector<named_date> out;
  const bool month_of_may = means_month_of_may(s);
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (!starts_word(s, i))
      continue;
    for (std::size_t m = 0; m < months.size(); ++m) {
      const auto end = i + months[m].size();
      if (!s.substr(i).starts_with(months[m]) || !ends_word(s, end))
        continue;
      const int month = static_cast<int>(m) + 1;
      if (month != may || month_of_may)
        out.push_back({year_near(s, i, end), month, day_by(s, months[m])});
    }
  }
  if (!out.empty())
    return out;
  for (std::size_t i = 0; i < s.size(); ++i)
    if (const auto y = year_at(s, i, false))
      out.push_back({*y, 0, 0});
  return out;
}

double date_fit(utc_time when, std::chrono::year_month_day day,
                const std::vector<named_date>& dates) {
  constexpr double same_year = 0.3;
  constexpr double same_day = 1.0;
  constexpr double days_after = 0.7;
  constexpr double same_month = 0.8;
  constexpr double month_after = 0.4;
  constexpr double day_and_a_bit = 1.01;
  constexpr double most_days_after = 10;
  constexpr unsigned first_days = 10;
  constexpr unsigned months_of_year = 12;
  using namespace std::chrono;
  double best = 0;
  for (const auto& d : dates) {
    if (d.year != 0 && static_cast<int>(day.year()) != d.year)
      continue;
    const auto wanted = static_cast<unsigned>(d.month);
    const auto month_of = static_cast<unsigned>(day.month());
    if (d.month == 0) {
      best = std::max(best, same_year);
    } else if (d.day != 0) {
      const year_month_day named{d.year != 0 ? year{d.year} : day.year(), month{wanted},
                                 std::chrono::day{static_cast<unsigned>(d.day)}};
      if (!named.ok())
        continue;
      const double gap = duration<double, days::period>(when - sys_days{named}).count();
      if (gap >= -1 && gap <= most_days_after)
        best = std::max(best, gap < day_and_a_bit ? same_day : days_after);
    } else if (month_of == wanted) {
      best = std::max(best, same_month);
    } else if (month_of == wanted % months_of_year + 1 &&
               static_cast<unsigned>(day.day()) <= first_days) {
      best = std::max(best, month_after);
    }
  }
  return best;
}

} // namespace boyd::memory
