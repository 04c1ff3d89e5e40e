#include "boyd/queue/settlement.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace boyd::queue {

namespace {

/// What could not be begun is tried again after this, and up to as much more.
constexpr milliseconds shortage_pause = 2s;

/// So often a dispatch goes back without an attempt because the process host died.
constexpr std::int64_t most_given_back = 8;
constexpr milliseconds longest_apart = 5min;

/// How long the provider or program that failed wants to be left alone; a run before that would
/// only use up an attempt.
milliseconds asked_pause(const run_outcome& outcome) {
  return std::clamp(milliseconds{outcome.usage.retry_after_ms.value_or(0)}, milliseconds{0},
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

settlement decide_settlement(const claimed_dispatch& claimed, run_outcome ended,
                             const retry_limits& limits, double unit_random, stop_cause stop) {
  settlement s;
  s.dispatch_id = claimed.row.dispatch_id;
  s.cycle_id = claimed.row.cycle_id;
  s.fence = claimed.row.fence;
  s.outcome = std::move(ended);
  const auto& outcome = s.outcome;
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
  if (outcome.host_lost && is_retryable(outcome.failure)) {
    // Each claim has a fence of its own, and each one beyond the attempts was given back. Whoever
    // kills the host at once meets fewer and fewer of those that it killed with it, for all come
    // back at times that are further and further apart.
    const auto given_back = std::max<std::int64_t>(claimed.row.fence - claimed.row.attempt, 0);
    if (given_back < most_given_back) {
      s.to = settle_to::release;
      s.delay = shortage_pause + backoff_delay({.base = shortage_pause, .cap = longest_apart},
                                               static_cast<int>(given_back) + 1, unit_random);
      return s;
    }
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

namespace {

/// Of a reason that a row tells.
constexpr std::size_t reason_characters = 200;

/// In any encoding of a database the same.
std::string as_ascii(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, reason_characters)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 ? ' ' : byte < 0x7f ? c : '?';
  }
  return out;
}

} // namespace

settlement in_place_of(const settlement& refused, std::string_view reason, bool usage) {
  settlement s;
  s.dispatch_id = refused.dispatch_id;
  s.cycle_id = refused.cycle_id;
  s.fence = refused.fence;
  s.delay = refused.delay;
  s.to = refused.to == settle_to::done ? settle_to::failed : refused.to;
  s.outcome.execution = refused.outcome.execution;
  s.outcome.claim = refused.outcome.claim;
  s.outcome.verification = refused.outcome.verification;
  s.outcome.failure = refused.outcome.failure == failure_class::none ? failure_class::deterministic
                                                                     : refused.outcome.failure;
  s.outcome.exit_code = refused.outcome.exit_code;
  if (usage)
    s.outcome.usage = refused.outcome.usage;
  s.outcome.error =
      "the database refused the result; it is kept in run/spool.jsonl.refused: " + as_ascii(reason);
  s.outcome.summary = s.outcome.error;
  return s;
}

} // namespace boyd::queue
