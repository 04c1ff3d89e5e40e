#include "http_date.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace boyd::model {
namespace {

constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
/// RFC 9110: a year of two digits that would be far in the future is one of the past.
constexpr int century_turn = 70;

std::optional<int> number(std::string_view digits) {
  int value = 0;
  const auto* const end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, value);
  if (problem != std::errc{} || stop != end || value < 0)
    return std::nullopt;
  return value;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = text.find_first_of(" ,-");
    if (end != 0)
      words.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return words;
}

std::optional<milliseconds> time_of_day(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() != 3)
    return std::nullopt;
  const auto hour = number(parts[0]);
  const auto minute = number(parts[1]);
  const auto second = number(parts[2]);
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  return std::chrono::hours{*hour} + std::chrono::minutes{*minute} + seconds{*second};
}

} // namespace

std::optional<utc_time> parse_http_date(std::string_view text) {
  auto words = words_of(trim(text));
  // "Sun Nov  6 08:49:37 1994" (asctime) has the order of the others after this.
  if (words.size() == 5)
    words = {words[0], words[2], words[1], words[4], words[3], "GMT"};
  if (words.size() != 6 || words[5] != "GMT")
    return std::nullopt;
  const auto day = number(words[1]);
  const auto month = std::find(months.begin(), months.end(), words[2]);
  auto year = number(words[3]);
  const auto clock = time_of_day(words[4]);
  if (!day || *day > 31 || month == months.end() || !year || *year > 9999 || !clock)
    return std::nullopt;
  if (words[3].size() == 2)
    year = *year + (*year < century_turn ? 2000 : 1900);
  const std::chrono::year_month_day date{
      std::chrono::year{*year},
      std::chrono::month{static_cast<unsigned>(month - months.begin()) + 1},
      std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok())
    return std::nullopt;
  return utc_time{std::chrono::sys_days{date}} + *clock;
}

} // namespace boyd::model
