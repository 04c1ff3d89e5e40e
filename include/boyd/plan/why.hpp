#pragma once

#include "boyd/core/cycle.hpp"
#include "boyd/core/dispatch.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/plan/quiet.hpp"
#include "boyd/ports/dispatch_store.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::plan {

/// The last moment that `rfc3339` means: slots have milliseconds, answers print seconds, so a time
/// without a fraction covers its whole second. Error `parse_error`.
result<utc_time> end_of_moment(std::string_view rfc3339);

/// The rows that `boyd why [AGENT] [--at TIME]` answers from.
struct why_input {
  std::string kernel_id;
  bool several_kernels = false; ///< so a command has to name this one
  std::string agent_id;         ///< empty: the question is about the kernel
  std::optional<utc_time> at;   ///< empty: the latest slot
  utc_time now{};
  std::vector<occurrence> occurrences; ///< any order
  /// Any order. Those of other agents tell no more than that their cycle did decide.
  std::vector<store::list_decisions::row> decisions;
  /// About the kernel: the newest run of one agent that somebody asked for after the latest cycle.
  std::optional<store::list_decisions::row> by_hand;
  std::vector<dispatch> runs;            ///< of the decisions' cycles; any order
  std::vector<pause_record> pauses;      ///< of other kernels or agents: ignored
  std::optional<quiet_now> quiet;        ///< at `now`
  std::optional<utc_time> expected_slot; ///< the kernel's schedule: latest_at_or_before(at or now)
  std::optional<utc_time> next_slot;     ///< of the kernel's schedule, after `now`
  bool enabled = true;                   ///< the agent
  bool own_schedule = false;             ///< of the agent; else it is due in every cycle
  std::optional<utc_time> next_agent_slot;  ///< of the agent's own schedule
  std::optional<utc_time> next_agent_cycle; ///< the kernel's first slot at or after that
  std::string schedule;                     ///< of the kernel, as it is written; may be empty
  std::string agent_schedule;               ///< the agent's own, as it is written; may be empty
  std::optional<utc_time> agent_due;        ///< its latest time at or before `at`
  std::optional<utc_time> node_since;       ///< when this home was made; may be unknown
  bool node_runs = true;                    ///< somebody is there to begin the next cycle
  /// Of an agent that is no longer configured: when a cycle decided about it for the last time.
  std::optional<utc_time> last_decided;
};

struct why_answer {
  std::vector<std::string> sentences;
  /// One object: kernel_id, agent_id, at, slot {scheduled_at, trigger, state, late, reason,
  /// cycle_id, stands_until}, unrecorded_slot, decisions[] {agent_id, dispatched, reason, detail,
  /// cycle_id, decided_at, dispatch_id, status, error}, pauses[] {agent_id, reason, since}, quiet
  /// {reason, until}, next_slot, next_agent_slot, next_agent_cycle, last_decided, by_hand (a
  /// decision), same_minute[] (decisions of cycles that were asked for by hand in the minute asked
  /// about, besides the slot's), sentences[]; what is unknown is null.
  std::string json;
};

/// The cycles that a question is about; they point into the input.
struct asked_cycles {
  const occurrence* slot = nullptr; ///< the one that answers; null: there is none
  /// Asked for by hand in the minute of `at`, besides `slot`; oldest first.
  std::vector<const occurrence*> by_hand;
};

/// Without `at` the newest cycle. With it, of what is not later: the newest of that very second,
/// where `at` is no whole minute; else the schedule's newest of that minute; else the newest of
/// all. About an agent at a time, what was asked for by hand counts only when its decisions have
/// the agent among them, or several others: runs of another agent, and what began no cycle, never
/// answer. About the kernel, runs of one agent answer only in their own minute, or when there is
/// nothing else. Pure.
asked_cycles cycles_asked_about(const why_input& in);

/// Answers "why did or didn't it run, and when next?". The slot in question is that of
/// cycles_asked_about; a summary row (see decide_slots) so answers for the slots it stands for.
/// When `expected_slot` is newer than what is recorded, that is said, too, and so is a minute asked
/// for in which the kernel has no slot. About an agent: its decision in that slot's cycle; without
/// `at` its newest decision; where there is none, the one reason for that. About the kernel: every
/// decision of that cycle. Pure; bounded by its input.
why_answer explain_why(const why_input& in);

} // namespace boyd::plan
