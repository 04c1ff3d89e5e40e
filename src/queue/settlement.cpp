#include "boyd/queue/settlement.hpp"

#include <algorithm>
#include <cmath>

namespace boyd::queue {

milliseconds backoff_delay(const retry_limits& limits, int attempt, double unit_random) noexcept {
  const auto exponent = std::clamp(attempt - 1, 0, 62);
  const auto ceiling = std::min(static_cast<double>(std::max<std::int64_t>(limits.cap.count(), 0)),
                                std::ldexp(static_cast<double>(limits.base.count()), exponent));
  const auto unit = std::clamp(unit_random, 0.0, 1.0);
  return milliseconds{static_cast<std::int64_t>(std::max(0.0, ceiling * unit))};
}

settlement decide_settlement(const claimed_dispatch& claimed, const run_outcome& outcome,
                             const retry_limits& limits, double unit_random, stop_cause stop) {
  settlement s;
  s.dispatch_id = claimed.row.dispatch_id;
  s.fence = claimed.row.fence;
  s.outcome = outcome;
  if (is_success(outcome)) {
    s.to = settle_to::done;
    return s;
  }
  if (stop == stop_cause::by_operator) {
    s.to = settle_to::cancelled;
    return s;
  }
  if (stop == stop_cause::shutting_down) {
    s.to = settle_to::release;
    return s;
  }
  const auto most = std::min(claimed.row.max_attempts, limits.max_attempts);
  if (is_retryable(outcome.failure) && claimed.row.attempt < most) {
    s.to = settle_to::retry;
    s.delay = backoff_delay(limits, claimed.row.attempt, unit_random);
    return s;
  }
  s.to = settle_to::failed;
  return s;
}

} // namespace boyd::queue
