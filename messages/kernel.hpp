#pragma once

#include "boyd/core/cycle.hpp"
#include "boyd/core/dispatch.hpp"
#include "boyd/plan/single_run.hpp"
#include "messages/message.hpp"

#include <optional>
#include <string>
#include <vector>

namespace boyd {

/// Asks for one cycle now, through the same admission gate as the schedule.
struct trigger_cycle : message {
  std::string trigger; ///< manual | api
  /// A cycle of one agent. It begins behind a cycle that runs, whatever `overlap` says.
  std::optional<plan::single_run> only{};
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
  /// What follows the record and is late, as the kernel knows it: the store may not have been told.
  std::vector<std::string> problems{};
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

/// Progress for people who watch: one line per step or agent; in the phase `output` whole lines
/// that a run has written.
struct cycle_event : message {
  std::string kernel_id;
  std::string cycle_id;
  std::string phase;
  std::string agent_id; ///< empty: the cycle itself
  std::string text;
  utc_time at{};
  std::string dispatch_id{}; ///< of output
  std::string stream{};      ///< of output: stdout | stderr
};

/// Shutdown, after the dispatchers are drained: writes a final runtime block and commits it.
struct finish_order : message {};

struct finish_reply : message {};

} // namespace boyd
