#pragma once

#include "boyd/core/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// docs/planning.md: how a cycle ended; `running` until it is recorded.
enum class cycle_status : std::uint8_t { running, success, partial_success, failed, error };

std::string_view name_of(cycle_status s) noexcept;
std::optional<cycle_status> cycle_status_from(std::string_view name) noexcept;

/// One agent's line in a cycle's summary: "agent-a[done]: completed".
struct agent_result {
  std::string agent_id;
  std::string status; ///< done | failed | cancelled | running | pending
  std::string summary;

  bool operator==(const agent_result&) const = default;
};

/// One row of the cycles table; docs/planning.md's CycleResult and what belongs to it.
struct cycle_record {
  std::string cycle_id;
  std::string kernel_id;
  utc_time scheduled_at{}; ///< the slot that started it
  cycle_status status = cycle_status::running;
  int dispatched = 0;
  int succeeded = 0;
  int failed = 0;
  std::vector<std::string> failed_agents;
  std::vector<agent_result> agents;
  std::int64_t duration_ms = 0;
  std::string error;
  utc_time started_at{};
  std::optional<utc_time> finished_at;
  std::string node_id;

  bool operator==(const cycle_record&) const = default;
};

/// Every agent, in every cycle, for `boyd why`.
struct agent_decision {
  std::string agent_id;
  bool dispatched = false;
  /// disabled | running | cooldown | schedule | budget | paused | planner | no_change | after;
  /// empty when dispatched.
  std::string reason;
  std::string detail; ///< free text, e.g. "next at 2026-02-13T11:00:00Z"

  bool operator==(const agent_decision&) const = default;
};

/// How a slot of the schedule ended (docs/planning.md, occurrence ledger).
enum class occurrence_state : std::uint8_t { open, ran, coalesced, skipped, missed };

std::string_view name_of(occurrence_state s) noexcept;
std::optional<occurrence_state> occurrence_state_from(std::string_view name) noexcept;

/// One slot: unique per (kernel_id, scheduled_at), written before anything else happens.
struct occurrence {
  std::string kernel_id;
  utc_time scheduled_at{};
  std::string trigger; ///< schedule | manual | api
  occurrence_state state = occurrence_state::open;
  bool late = false; ///< ran after its grace by misfire policy
  std::string reason;
  std::string cycle_id; ///< when it ran or runs
  std::string node_id;
  utc_time created_at{};
  std::optional<utc_time> finished_at;

  bool operator==(const occurrence&) const = default;
};

/// An operator's or a quiet hour's pause; agent_id empty: the whole kernel.
struct pause_record {
  std::string kernel_id;
  std::string agent_id;
  std::string reason;
  utc_time since{};

  bool operator==(const pause_record&) const = default;
};

} // namespace boyd
