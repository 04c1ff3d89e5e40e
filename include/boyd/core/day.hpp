#pragma once

#include "boyd/core/time.hpp"

#include <string>
#include <string_view>

namespace boyd {

/// The day of UTC, "2026-02-13". Days compare as texts.
std::string utc_day(utc_time t);

/// True for a day of the calendar as utc_day writes it.
bool is_day(std::string_view text);

} // namespace boyd
