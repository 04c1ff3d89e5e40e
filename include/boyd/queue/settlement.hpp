#pragma once

#include "boyd/core/dispatch.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/time.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace boyd::queue {

/// How often and how fast an attempt is repeated; the agent's `retry:` settings as plain numbers.
struct retry_limits {
  int max_attempts = limits::max_attempts;
  milliseconds base = limits::retry_base;
  milliseconds cap = limits::retry_cap;
};

/// Why a run was ended from outside, as its dispatcher knows it.
enum class stop_cause : std::uint8_t {
  none,          ///< it ended by itself, by a deadline or by a limit
  by_operator,   ///< `boyd dispatches cancel` or the API
  shutting_down, ///< the node drains, or the worker crashed: the attempt is given back
};

/// Exponential back-off with full jitter: uniform in [0, min(cap, base·2^(attempt-1))], where
/// `attempt` counts from 1 and `unit_random` is in [0, 1).
milliseconds backoff_delay(const retry_limits& limits, int attempt, double unit_random) noexcept;

/// A claimed row goes back unrun: the attempt does not count.
settlement released(std::string dispatch_id, std::int64_t fence, std::string why);

/// Where an attempt leads (docs/queue.md; an attempt that the process host's death ended together
/// with others is given back, eight times at most): success → done, even when somebody wanted to
/// stop it; ended by an operator → cancelled; by shutdown → release (the attempt does not count); a
/// retryable failure with attempts left → retry, not before what its provider asked for (usage:
/// retry_after_ms, at most limits::longest_told_wait); anything else → failed. The smaller of the
/// row's and `limits`'s
/// max_attempts holds.
settlement decide_settlement(const claimed_dispatch& claimed, run_outcome outcome,
                             const retry_limits& limits, double unit_random, stop_cause stop);

/// What a store may take in the place of a result that it refused for `reason`: the same attempt
/// with a short error in ASCII and no other text. A finished run becomes failed; what was to be
/// tried again, given back or cancelled still is. Without `usage`, that goes as well.
settlement in_place_of(const settlement& refused, std::string_view reason, bool usage);

} // namespace boyd::queue
