#include "actors/node/watchdog.hpp"

#include <algorithm>

namespace boyd {

namespace {

/// A heartbeat may be late by one interval: a machine is busy at times.
constexpr int patience = 2;

bool is_stuck(const silent_part& p, milliseconds interval) {
  const auto worker_limit = interval * limits::stuck_worker.count() / limits::heartbeat.count();
  return p.missed >= limits::stuck_pings || p.worker_busy >= worker_limit;
}

std::string describe(const silent_part& p) {
  return p.missed > 0 ? p.name + " (" + std::to_string(p.missed) + " unanswered pings)"
                      : p.name + " (its worker has been busy with one batch for " +
                            format_duration(p.worker_busy) + ")";
}

} // namespace

watchdog_verdict watchdog::look(const pulse_report& report, steady_time now) {
  // A look that comes late counts as one interval: then the whole process did not run.
  const auto since = std::min(now - looked_at_, interval_);
  looked_at_ = now;
  standing_ = report.round == round_ ? standing_ + since : milliseconds{0};
  round_ = report.round;
  watchdog_verdict verdict;
  verdict.progress =
      standing_ <= patience * interval_ &&
      std::ranges::none_of(report.silent, [](const auto& p) { return p.name == "store"; });
  if (standing_ >= limits::stuck_looks * interval_)
    verdict.stuck = "the scheduler (no heartbeat for " + format_duration(standing_) + ")";
  for (const auto& p : report.silent)
    if (is_stuck(p, interval_))
      verdict.stuck += (verdict.stuck.empty() ? "" : ", ") + describe(p);
  return verdict;
}

} // namespace boyd
