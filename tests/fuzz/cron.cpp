#include "boyd/plan/schedule.hpp"
#include "fuzz/target.hpp"
#include "src/adapters/tz/zones.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string>

/// Schedules against an oracle that reads the expression anew for each minute and walks through
/// time minute by minute.
namespace boyd::fuzz {
namespace {

using std::chrono::minutes;
using std::chrono::sys_seconds;

constexpr std::array<const char*, 5> zone_names{"UTC", "Europe/Berlin", "America/New_York",
                                                "Australia/Lord_Howe", "Asia/Kathmandu"};
/// How far the oracle walks.
constexpr minutes horizon{3 * 24 * 60};

const time_zones& zones() {
  static const auto system = adapters::make_time_zones();
  return *system;
}

int value_of(std::string text, const std::vector<std::string>& names, int first_name) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (std::size_t i = 0; i < names.size(); ++i)
    if (text == names[i])
      return first_name + static_cast<int>(i);
  return std::atoi(text.c_str());
}

/// One field of crontab(5) applied to one number.
bool field_matches(std::string_view field, int value, int low, int high,
                   const std::vector<std::string>& names = {}, int first_name = 0) {
  while (true) {
    const auto comma = field.find(',');
    std::string part(field.substr(0, comma));
    int step = 0;
    if (const auto slash = part.find('/'); slash != std::string::npos) {
      step = std::atoi(part.c_str() + slash + 1);
      part.resize(slash);
    }
    int from = low;
    int to = high;
    if (part != "*") {
      const auto dash = part.find('-');
      from = value_of(part.substr(0, dash), names, first_name);
      if (dash != std::string::npos)
        to = value_of(part.substr(dash + 1), names, first_name);
      else if (step == 0)
        to = from;
    }
    if (value >= from && value <= to && (value - from) % std::max(step, 1) == 0)
      return true;
    if (comma == std::string_view::npos)
      return false;
    field.remove_prefix(comma + 1);
  }
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(text) + " ") {
    if (c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(word);
      word.clear();
    }
  }
  return words;
}

bool local_minute_matches(const std::vector<std::string>& f, local_seconds local) {
  static const std::vector<std::string> months{"jan", "feb", "mar", "apr", "may", "jun",
                                               "jul", "aug", "sep", "oct", "nov", "dec"};
  static const std::vector<std::string> week{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day date{day};
  const auto minute = static_cast<int>((local - day) / minutes{1});
  const auto weekday = static_cast<int>(std::chrono::weekday{day}.c_encoding());
  if (!field_matches(f[0], minute % 60, 0, 59) || !field_matches(f[1], minute / 60, 0, 23) ||
      !field_matches(f[3], static_cast<int>(static_cast<unsigned>(date.month())), 1, 12, months, 1))
    return false;
  const bool in_month =
      field_matches(f[2], static_cast<int>(static_cast<unsigned>(date.day())), 1, 31);
  const bool in_week = field_matches(f[4], weekday, 0, 7, week) ||
                       (weekday == 0 && field_matches(f[4], 7, 0, 7, week));
  return f[2].front() == '*' || f[4].front() == '*' ? in_month && in_week : in_month || in_week;
}

/// Whether the expression fires at the UTC minute `at`: its local minute matches and has not been
/// before, or local minutes that match were skipped just now.
bool fires(const std::vector<std::string>& f, const time_zone& zone, sys_seconds at) {
  const auto local = zone.to_local(at);
  for (auto skipped = zone.to_local(at - minutes{1}) + minutes{1}; skipped < local;
       skipped += minutes{1})
    if (local_minute_matches(f, skipped))
      return true;
  return local_minute_matches(f, local) && zone.to_utc(local).first == at;
}

void run(std::string_view input) {
  reader in{input};
  const auto* zone_name = zone_names[in.byte() % zone_names.size()];
  // Between 2000 and 2037: zones have whole-minute offsets and rules that are known.
  const utc_time t = sys_seconds{std::chrono::seconds{946'684'800 + in.word() % 1'160'000'000U}};
  config::schedule settings;
  settings.expression = std::string(in.rest());
  settings.tz = zone_name;
  const auto rule = plan::schedule_rule::make(settings, zones());
  if (!rule) {
    require(!rule.error().what.empty(), "a refusal says why");
    return;
  }
  const auto next = rule->next_after(t);
  require(next && *next > t, "the next slot is later");
  require(next && rule->latest_at_or_before(*next) == *next, "a slot is the latest at itself");
  const auto due = rule->due_at("kernel", *next);
  require(due == *next, "without jitter a slot is due at itself");

  const auto words = words_of(settings.expression);
  if (words.size() != 5)
    return;
  const auto zone = zones().find(zone_name);
  auto at = std::chrono::floor<minutes>(t) + minutes{1};
  const auto end = at + horizon;
  while (at < end && !fires(words, **zone, std::chrono::time_point_cast<std::chrono::seconds>(at)))
    at += minutes{1};
  require(at == end ? *next >= end : *next == at, "the next slot is the oracle's");
}

const registration registered{"cron", run};

} // namespace
} // namespace boyd::fuzz
