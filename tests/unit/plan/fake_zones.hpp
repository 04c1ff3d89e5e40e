#pragma once

#include "boyd/plan/schedule.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace boyd::test {

/// A zone given by its jumps, so that a test shows the rules it relies on.
class fake_zone : public time_zone {
 public:
  struct jump {
    std::chrono::sys_seconds at;
    seconds offset; ///< east of UTC, from `at` on
  };

  fake_zone(seconds first_offset, std::vector<jump> jumps)
      : first_offset_{first_offset}, jumps_{std::move(jumps)}, offsets_{first_offset} {
    for (const jump& j : jumps_)
      offsets_.push_back(j.offset);
    std::ranges::sort(offsets_, std::ranges::greater{});
    offsets_.erase(std::unique(offsets_.begin(), offsets_.end()), offsets_.end());
  }

  local_seconds to_local(std::chrono::sys_seconds t) const override {
    seconds offset = first_offset_;
    for (const jump& j : jumps_)
      if (t >= j.at)
        offset = j.offset;
    return local_seconds{t.time_since_epoch() + offset};
  }

  mapping to_utc(local_seconds local) const override {
    // Offsets from east to west, so that the first moment found is the earlier one.
    mapping found{mapping::skipped, {}, {}};
    for (const seconds offset : offsets_) {
      const std::chrono::sys_seconds t{local.time_since_epoch() - offset};
      if (to_local(t) != local)
        continue;
      if (found.kind == mapping::skipped)
        found = {mapping::unique, t, t};
      else
        found = {mapping::repeated, found.first, t};
    }
    if (found.kind != mapping::skipped)
      return found;
    for (const jump& j : jumps_)
      if (to_local(j.at - seconds{1}) < local && local < to_local(j.at))
        return {mapping::skipped, j.at, j.at};
    throw std::logic_error{"a civil time that is neither there nor skipped"};
  }

 private:
  seconds first_offset_;
  std::vector<jump> jumps_;
  std::vector<seconds> offsets_;
};

/// "UTC", and "Test/Jump": one hour east, on 2026-03-29 from 02:00 to 03:00 local, on 2026-10-25
/// back from 03:00 to 02:00 (as Europe/Berlin does).
class fake_zones : public time_zones {
 public:
  result<std::shared_ptr<const time_zone>> find(const std::string& name) const override {
    using std::chrono::sys_days;
    using namespace std::chrono;
    if (name == "UTC")
      return std::make_shared<fake_zone>(seconds{0}, std::vector<fake_zone::jump>{});
    if (name == "Test/Jump")
      return std::make_shared<fake_zone>(
          hours{1}, std::vector<fake_zone::jump>{{sys_days{2026y / 3 / 29} + hours{1}, hours{2}},
                                                 {sys_days{2026y / 10 / 25} + hours{1}, hours{1}}});
    return fail(errc::not_found, "no such time zone: " + name);
  }
};

inline utc_time at(const char* text) {
  const auto t = parse_rfc3339(text);
  if (!t)
    throw std::logic_error{to_string(t.error())};
  return *t;
}

inline plan::schedule_rule rule_of(config::schedule settings) {
  auto rule = plan::schedule_rule::make(settings, fake_zones{});
  if (!rule)
    throw std::logic_error{to_string(rule.error())};
  return *rule;
}

inline plan::schedule_rule rule_of(const char* expression, const char* tz = "UTC") {
  config::schedule settings;
  settings.expression = expression;
  settings.tz = tz;
  return rule_of(settings);
}

} // namespace boyd::test
