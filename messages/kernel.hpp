#pragma once

#include "boyd/core/cycle.hpp"
#include "boyd/core/dispatch.hpp"
#include "messages/message.hpp"

#include <optional>
#include <string>
#include <vector>

namespace boyd {

/// Asks for one cycle now, through the same admission gate as the schedule.
struct trigger_cycle : message {
  std::string trigger; ///< manual | api
};

/// What became of the request.
struct trigger_reply : message {
  bool admitted = false;
  std::string cycle_id; ///< the new cycle, or the one that is running
  std::string reason;   ///< why not
};

/// Answers when the cycle is recorded.
struct await_cycle : message {
  std::string cycle_id;
};

struct awaited_cycle : message {
  cycle_record record;
  /// Its dispatches as it was judged by them, when it has just ended, all were final and nothing
  /// was left untold; nothing: the store is to be asked.
  std::optional<std::vector<dispatch>> rows;
};

struct kernel_query : message {};

struct kernel_status : message {
  std::string kernel_id;
  std::string phase; ///< idle | perceive | orient | decide | act | record
  std::string cycle_id;
  std::optional<utc_time> next_slot;
  std::string paused;  ///< reason; empty when not paused
  std::string problem; ///< what is degraded, e.g. "store unavailable: …"
  std::optional<cycle_record> latest;
};

/// Progress for people who watch: one line per step or agent.
struct cycle_event : message {
  std::string kernel_id;
  std::string cycle_id;
  std::string phase;
  std::string agent_id; ///< empty: the cycle itself
  std::string text;
  utc_time at{};
};

/// Shutdown, after the dispatchers are drained: writes a final runtime block and commits it.
struct finish_order : message {};

struct finish_reply : message {};

} // namespace boyd
