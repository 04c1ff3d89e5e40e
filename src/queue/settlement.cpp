#include "boyd/queue/settlement.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace boyd::queue {

namespace {

/// What could not be begun is tried again after this, and up to as much more.
constexpr milliseconds shortage_pause = 2s;

/// How long the provider or program that failed wants to be left alone; a run before that would
/// only use up an attempt.
milliseconds asked_pause(const run_outcome& outcome) {
  constexpr const char* const key = "retry_after_ms";
  if (outcome.usage_json.find(key) == std::string::npos)
    return milliseconds{0};
  const auto usage = nlohmann::json::parse(outcome.usage_json, nullptr, false);
  if (!usage.is_object() || !usage.contains(key) || !usage[key].is_number_integer())
    return milliseconds{0};
  return std::clamp(milliseconds{usage[key].get<std::int64_t>()}, milliseconds{0},
                    limits::longest_told_wait);
}

} // namespace

milliseconds backoff_delay(const retry_limits& limits, int attempt, double unit_random) noexcept {
  const auto exponent = std::clamp(attempt - 1, 0, 62);
  const auto ceiling = std::min(static_cast<double>(std::max<std::int64_t>(limits.cap.count(), 0)),
                                std::ldexp(static_cast<double>(limits.base.count()), exponent));
  const auto unit = std::clamp(unit_random, 0.0, 1.0);
  return milliseconds{static_cast<std::int64_t>(std::max(0.0, ceiling * unit))};
}

settlement released(std::string dispatch_id, std::int64_t fence, std::string why) {
  settlement s;
  s.dispatch_id = std::move(dispatch_id);
  s.fence = fence;
  s.to = settle_to::release;
  s.outcome.execution = execution_verdict::cancelled;
  s.outcome.error = std::move(why);
  return s;
}

settlement decide_settlement(const claimed_dispatch& claimed, const run_outcome& outcome,
                             const retry_limits& limits, double unit_random, stop_cause stop) {
  settlement s;
  s.dispatch_id = claimed.row.dispatch_id;
  s.cycle_id = claimed.row.cycle_id;
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
  if (outcome.no_room) {
    s.to = settle_to::release;
    s.delay = shortage_pause + backoff_delay({.base = shortage_pause}, 1, unit_random);
    return s;
  }
  const auto most = std::min(claimed.row.max_attempts, limits.max_attempts);
  if (is_retryable(outcome.failure) && claimed.row.attempt < most) {
    s.to = settle_to::retry;
    s.delay =
        std::max(backoff_delay(limits, claimed.row.attempt, unit_random), asked_pause(outcome));
    return s;
  }
  s.to = settle_to::failed;
  return s;
}

} // namespace boyd::queue
