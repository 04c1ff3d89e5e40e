#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/time.hpp"
#include "boyd/plan/quiet.hpp"
#include "boyd/plan/schedule.hpp"
#include "boyd/plan/static_planner.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace boyd::plan {

/// The first cycle of the kernel's schedule after `in.now` that the agent can run in, as far as it
/// is known now: after its cooldown, its own schedule's next slot, the quiet hours, and
/// `wake_due_at` (when its backed-off wake check is made again; nothing: at once). Nothing when it
/// is disabled or paused, or no slot is left. A run under way is not looked at: it may have ended
/// by then. Pure.
std::optional<utc_time> next_run(const config::kernel& kernel, const config::agent& agent,
                                 const plan_input& in, const schedule_rule& cycles,
                                 const std::vector<quiet_rule>& quiet,
                                 std::optional<utc_time> wake_due_at);

/// The start of a cycle, and since when the agent is due then.
struct fire_time {
  utc_time at{};
  utc_time due{}; ///< by its own schedule; else as `at`
};

/// The first `count` starts of cycles after `now` in which the agent is due by the schedules alone:
/// neither its pauses nor its cooldown nor what it did last count. `own`: the agent's own schedule;
/// null, with the agent: every cycle of the kernel. With jitter. Pure.
std::vector<fire_time> fire_times(const config::kernel& kernel, const config::agent* agent,
                                  const schedule_rule& cycles, const schedule_rule* own,
                                  utc_time now, std::size_t count);

} // namespace boyd::plan
