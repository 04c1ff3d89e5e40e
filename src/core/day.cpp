#include "boyd/core/day.hpp"

namespace boyd {

namespace {
constexpr std::size_t day_characters = 10;
} // namespace

std::string utc_day(utc_time t) {
  return format_rfc3339(t).substr(0, day_characters);
}

bool is_day(std::string_view text) {
  return text.size() == day_characters && parse_rfc3339(std::string(text) + "T00:00:00Z");
}

} // namespace boyd
