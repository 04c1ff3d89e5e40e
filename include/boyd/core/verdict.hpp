#pragma once

#include "boyd/core/run_usage.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace boyd {

/// How the process or call itself ended (docs/planning.md, first verdict).
enum class execution_verdict : std::uint8_t {
  none,          ///< has not run
  succeeded,     ///< ended well
  failed,        ///< ended badly by itself
  timed_out,     ///< ended by `timeout`
  stalled,       ///< ended by `no_output_timeout`
  cancelled,     ///< ended by an operator or by shutdown
  indeterminate, ///< no final event: never counted as success
};

/// What the executor's answer says about itself (second verdict).
enum class claim_verdict : std::uint8_t { none, done, failed };

/// What an independent check found (third verdict); `none`: the agent has no requirements.
enum class verification_verdict : std::uint8_t { none, passed, failed };

/// Why an attempt failed (docs/improve.md); decides whether a retry can help.
enum class failure_class : std::uint8_t {
  none,
  transient,     ///< time-out, network, rate limit: retried
  deterministic, ///< the same input fails the same way: not retried
  environment,   ///< a program, file or permission is missing: not retried
  flaky,         ///< passes when run again
  policy,        ///< denied: stops at once
};

/// Only `transient` and `flaky` are worth another attempt.
bool is_retryable(failure_class c) noexcept;

std::string_view name_of(execution_verdict v) noexcept;
std::string_view name_of(claim_verdict v) noexcept;
std::string_view name_of(verification_verdict v) noexcept;
std::string_view name_of(failure_class c) noexcept;
std::optional<execution_verdict> execution_verdict_from(std::string_view name) noexcept;
std::optional<claim_verdict> claim_verdict_from(std::string_view name) noexcept;
std::optional<verification_verdict> verification_verdict_from(std::string_view name) noexcept;
std::optional<failure_class> failure_class_from(std::string_view name) noexcept;

/// What one attempt left behind: the executor's answer and the three verdicts, stored apart.
struct run_outcome {
  execution_verdict execution = execution_verdict::none;
  claim_verdict claim = claim_verdict::none;
  verification_verdict verification = verification_verdict::none;
  failure_class failure = failure_class::none;
  int exit_code = -1;           ///< of the process; -1 when there is none
  std::string summary;          ///< one line, at most limits::summary_characters
  std::string output;           ///< what was kept of stdout and stderr
  std::uint64_t output_cut = 0; ///< bytes counted but not kept
  std::string error;            ///< why it failed, one line; empty on success
  std::string session_id;       ///< kernel-<agent_id>-<run_id>
  run_usage usage;
  /// The node had no descriptor, process or memory left to begin it: no attempt. Not stored.
  bool no_room = false;
  /// Its program was ended because the process host died, with those of other runs: no attempt, for
  /// a while. Not stored.
  bool host_lost = false;

  bool operator==(const run_outcome&) const = default;
};

/// An attempt is done only when it ended well, did not itself claim failure, and every
/// requirement holds.
bool is_success(const run_outcome& o) noexcept;

} // namespace boyd
