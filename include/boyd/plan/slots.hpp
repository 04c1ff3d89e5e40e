#pragma once

#include "boyd/core/cycle.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/time.hpp"
#include "boyd/plan/schedule.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace boyd::plan {

/// occurrence::trigger of the slots that the schedule makes.
inline constexpr const char* schedule_trigger = "schedule";

/// What is known when the clock is looked at.
struct slot_input {
  std::string kernel_id;
  std::string node_id;
  /// The newest row of trigger `schedule` in the ledger; nothing when there is none.
  std::optional<utc_time> last_slot;
  /// When this kernel was first seen: slots up to here are not made up for. Used without last_slot.
  utc_time since{};
  utc_time now{};
  std::string running_cycle; ///< empty: no cycle runs
  /// It was begun before this start: what a downtime missed waits behind it.
  bool running_is_resumed = false;
  std::size_t waiting = 0; ///< opened slots whose cycle has not begun
  /// The longest wait until the clock is looked at again.
  milliseconds look_every = limits::clock_check;
  std::string paused; ///< why the kernel is paused or quiet; empty: it is not
};

/// What to write and when to look again.
struct slot_decision {
  /// Oldest first. Every row is written before anything else happens; a row that is `open` and that
  /// the store accepted (`opened`) is to be run, in this order; the others are final.
  std::vector<occurrence> rows;
  /// `overlap: cancel`: the running cycle is to be cancelled; the open row runs when it has ended.
  bool cancel_running = false;
  /// The slot after those decided here; nothing when the schedule has no more.
  std::optional<utc_time> next_slot;
  /// When to decide again: the next slot's due time, but at most `look_every` ahead.
  utc_time look_again{};
};

/// Decides every slot that has come due since the last one in the ledger.
///
/// A slot is due from its jittered start; it is misfired when `now` is more than `grace` later.
/// - Paused: every due slot is skipped(paused).
/// - `misfire: run_once`: the newest due slot is the one to run (late when it is misfired), the
///   older ones are coalesced into it.
/// - `misfire: skip`: misfired slots are missed; of the others the newest is to run.
/// - `misfire: all`: the newest limits::caught_up_slots are to run, one after the other.
/// Then the overlap rule, when a cycle runs or an opened slot waits: `skip` → skipped(running);
/// `queue_one` → opened when nothing waits, else coalesced; `cancel` → the same, and the running
/// cycle is to be cancelled. When the running cycle is resumed from before the downtime, the one
/// misfired slot of `run_once` waits behind it, whatever the rule. Misfired slots under `misfire:
/// all` are opened behind what waits, up to limits::caught_up_slots.
///
/// Never more than limits::caught_up_slots rows plus one: after a long downtime the oldest slot
/// carries one summary row that stands for all slots without a row of their own and says up to
/// where. A clock that went back decides nothing until it has passed the last slot again (each slot
/// fires once), unless the last slot is more than limits::clock_step ahead: then that row came from
/// a wrong clock, and the slots of the last two limits::clock_check are offered at every look; the
/// ledger's key refuses those that were written before.
slot_decision decide_slots(const schedule_rule& rule, const slot_input& in);

/// What people are told while the clock is behind the ledger and no slot is due for that reason:
/// that the schedule waits, and until when. Empty: it does not wait.
std::string clock_note(const slot_input& in, const slot_decision& decision);

/// The newest slot of trigger `schedule` among `rows` (any order).
std::optional<utc_time> last_scheduled(const std::vector<occurrence>& rows);

/// The last of the slots that a summary row stands for; nothing when `row` is an ordinary one.
std::optional<utc_time> stands_until(const occurrence& row);

} // namespace boyd::plan
