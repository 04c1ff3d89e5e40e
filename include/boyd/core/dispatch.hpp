#pragma once

#include "boyd/core/time.hpp"
#include "boyd/core/verdict.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// docs/queue.md's state machine: pending → running → done | failed | cancelled, and back to
/// pending.
enum class dispatch_status : std::uint8_t { pending, running, done, failed, cancelled };

std::string_view name_of(dispatch_status s) noexcept;
std::optional<dispatch_status> dispatch_status_from(std::string_view name) noexcept;

/// done, failed or cancelled: nothing moves it any more but an operator's retry.
bool is_final(dispatch_status s) noexcept;

/// A request to run one agent once in one cycle, as the planner makes it.
struct dispatch_spec {
  std::string dispatch_id; ///< UUIDv7, made by the caller; a duplicate key keeps the first row's id
  std::string kernel_id;
  std::string cycle_id;
  std::string agent_id;
  std::string prompt; ///< fully expanded
  int priority = 10;  ///< higher first
  int max_attempts = 3;
  std::string metadata_json = "{}"; ///< a JSON object
  milliseconds delay{0};            ///< not before now + delay, by the store's clock
};

/// One row of the queue: every column of docs/queue.md.
struct dispatch {
  std::string dispatch_id;
  std::string kernel_id;
  std::string cycle_id;
  std::string agent_id;
  std::string prompt;
  int priority = 10;
  dispatch_status status = dispatch_status::pending;
  std::string metadata_json = "{}";
  int attempt = 0; ///< attempts that count: an attempt ended by shutdown is given back
  int max_attempts = 3;
  int rescues = 0;        ///< how often the row was taken from a dead owner
  std::int64_t fence = 0; ///< grows by one at every claim; every transition must carry it
  utc_time not_before{};
  std::string lease_owner; ///< node_id; empty when nobody holds it
  std::optional<utc_time> lease_expires_at;
  utc_time created_at{};
  std::optional<utc_time> started_at;
  std::optional<utc_time> finished_at;
  run_outcome outcome;              ///< of the latest attempt
  std::string attempts_json = "[]"; ///< earlier attempts: [{attempt, fence, node, started_at, …}]
};

/// A dispatch that was claimed: what a dispatcher needs to run it.
struct claimed_dispatch {
  dispatch row;
  /// Time that is left on the lease, by the store's clock when the claim was made. The holder
  /// counts it from the *start* of the claiming call on its own steady clock (FAULTS.md).
  milliseconds lease{0};
};

/// Where an attempt leads. Chosen by queue::decide_settlement, carried out by the store.
enum class settle_to : std::uint8_t {
  done,      ///< finished, successful
  failed,    ///< finished, attempts spent or not retryable
  cancelled, ///< finished by an operator
  retry,     ///< pending again after `delay`; the attempt counts
  release,   ///< pending again at once; the attempt does not count (shutdown, crash of a worker)
};

/// The end of one attempt, as its owner reports it.
struct settlement {
  std::string dispatch_id;
  std::int64_t fence = 0;
  settle_to to = settle_to::failed;
  milliseconds delay{0}; ///< for retry and release
  run_outcome outcome;
  std::string cycle_id{}; ///< of the dispatch, where it is known: the store has it
};

/// What the store did with a settlement or transition.
enum class settle_result : std::uint8_t {
  accepted,
  already_settled, ///< the node had settled the same fence before: a repeat, harmless
  stale,           ///< another owner holds it: rejected, nothing changed
  not_found,
};

std::string_view name_of(settle_result r) noexcept;

} // namespace boyd
