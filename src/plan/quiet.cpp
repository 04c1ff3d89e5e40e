#include "boyd/plan/quiet.hpp"

#include <utility>

namespace boyd::plan {

result<std::vector<quiet_rule>> make_quiet_rules(const std::vector<config::quiet_hours>& quiet,
                                                 const time_zones& zones) {
  std::vector<quiet_rule> rules;
  for (const config::quiet_hours& hours : quiet) {
    auto from = schedule_rule::make(hours.from, zones);
    if (!from)
      return fail(from.error());
    rules.push_back({std::move(*from), hours.length, hours.reason});
  }
  return rules;
}

std::optional<quiet_now> is_quiet(const std::vector<quiet_rule>& rules, utc_time now) {
  std::optional<quiet_now> longest;
  for (const quiet_rule& rule : rules) {
    const auto began = rule.from.latest_at_or_before(now);
    if (!began || *began + rule.length <= now)
      continue;
    if (!longest || *began + rule.length > longest->until)
      longest = quiet_now{rule.reason, *began + rule.length};
  }
  return longest;
}

} // namespace boyd::plan
