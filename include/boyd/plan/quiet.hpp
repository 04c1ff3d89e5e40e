#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/plan/schedule.hpp"

#include <optional>
#include <string>
#include <vector>

namespace boyd::plan {

/// Quiet hours with their schedule read: from each slot of `from` (jitter does not count) for
/// `length`.
struct quiet_rule {
  schedule_rule from;
  milliseconds length{0};
  std::string reason;
};

/// Reads kernel.quiet. Errors as schedule_rule::make.
result<std::vector<quiet_rule>> make_quiet_rules(const std::vector<config::quiet_hours>& quiet,
                                                 const time_zones& zones);

/// A pause that ends by itself.
struct quiet_now {
  std::string reason;
  utc_time until{};

  bool operator==(const quiet_now&) const = default;
};

/// Whether `now` is quiet; of several windows the one that lasts longest. A window begins at its
/// slot and ends just before slot + length.
std::optional<quiet_now> is_quiet(const std::vector<quiet_rule>& rules, utc_time now);

} // namespace boyd::plan
