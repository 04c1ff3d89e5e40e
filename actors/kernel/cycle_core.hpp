#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/cycle.hpp"
#include "boyd/core/dispatch.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/result.hpp"
#include "boyd/effects/effect.hpp"
#include "boyd/plan/static_planner.hpp"
#include "messages/librarian.hpp"
#include "messages/planning.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// What the kernel asks for next; each is one or a few requests whose answer comes back through the
/// method of the same name.
enum class cycle_step : std::uint8_t {
  begin,    ///< the cycle's row (store)
  perceive, ///< STATE.md (state writer), goal, memory, senses (librarian)
  orient,   ///< latest and recent dispatches, pauses, facts (store)
  wake,     ///< `wake:` checks (librarian)
  decide,   ///< the plan (planner)
  act,      ///< enqueue in one transaction (store)
  release,  ///< agents that waited for others: latest and recent dispatches, pauses again (store)
  wait,     ///< until every dispatch is final, or the deadline
  gather,   ///< what ended late of earlier cycles (store)
  reduce,   ///< a model's words for the outcomes, where one is asked (planner)
  record,   ///< the cycle's row, its effects and the end of its slot, in one transaction (store)
  follow,   ///< its effects: edges, STATE.md, commits
  done,
};

/// How much of a record is written; less after each refusal by the database.
enum class record_form : std::uint8_t {
  whole, ///< the row, what follows it, and the end of its slot
  alone, ///< the row: what follows is tried without being kept, the slot is ended apart
  bare,  ///< the same without its texts
};

/// The phase of docs/planning.md that a step belongs to.
const char* phase_of(cycle_step s) noexcept;

/// What orient reads from the store.
struct orientation {
  std::vector<dispatch> latest;
  std::vector<dispatch> recent;
  std::vector<pause_record> pauses;
  std::map<std::string, std::string> agent_slots; ///< unix ms by agent_id
  std::map<std::string, std::string> spent;       ///< plan_input::spent
};

/// A moment of a cycle.
struct cycle_time {
  utc_time now;
  milliseconds taken; ///< since its start, by a clock that nobody sets
};

/// One cycle as data and decisions: which step comes next, what a failed step means, and what is
/// recorded. A step that needs the store is repeated until the store answers, because nothing may
/// be lost; every other failure is noted and the cycle goes on without. CAF-free.
class cycle_core {
 public:
  /// A new cycle for `slot`. `since`: when the kernel was first seen (agents' own schedules).
  cycle_core(const config::kernel& kernel, std::string cycle_id, std::string node_id,
             const occurrence& slot, utc_time since, utc_time now);

  /// A cycle that an earlier life left open: it goes on where it was. `decided`: the agents whose
  /// decisions stand in the store, and with them `trouble`, the earlier life's `trouble()` (or
  /// nothing). One whose row is final already lacks only what follows the row. `only`: it is the
  /// cycle of one agent.
  static cycle_core resume(const config::kernel& kernel, const cycle_record& row,
                           const std::set<std::string>& decided, const std::string& trouble,
                           utc_time since, std::optional<plan::single_run> only = {});

  cycle_step step() const { return step_; }
  const std::string& id() const { return record_.cycle_id; }
  utc_time slot() const { return record_.scheduled_at; }
  utc_time started_at() const { return record_.started_at; }
  /// Of a slot that the schedule has not made: `boyd cycle`, or the API.
  bool by_hand() const { return by_hand_; }
  void set_by_hand(bool by_hand) { by_hand_ = by_hand; }
  /// The cycle of one agent; before it perceives.
  void set_only(std::optional<plan::single_run> only) { input_.only = std::move(only); }

  void begin(const result<void>& r);
  void perceive(result<std::string> state, result<gathered_context> context);
  /// `why_quiet`: a quiet hour in force; `schedules`: agents' own.
  void orient(result<orientation> r, std::optional<plan::quiet_now> quiet,
              std::map<std::string, plan::schedule_rule> schedules,
              std::function<std::string()> make_id, utc_time now);
  void wake(result<wake_results> r);
  void decide(result<plan::plan_output> r);
  void act(const result<void>& r, cycle_time at);
  /// The agents that waited for others go on to act, or to their reason why not.
  void release(result<orientation> r);
  /// The cycle's rows as they are; goes on to record when all are final or `overdue`, to release
  /// when agents that waited for others need not any longer, and back to act when rows that were
  /// enqueued are gone. `kept`: for so long a row stays that is final.
  void wait(result<std::vector<dispatch>> rows, bool overdue, cycle_time at,
            milliseconds kept = limits::retention);
  /// `late`: what ended of earlier cycles since the latest record; `more`: not all of it.
  void gather(std::vector<dispatch> late, bool more = false);
  void reduce(result<reduction> r);
  void recorded(const result<void>& r);
  void followed();

  /// The store refuses what the current step asks of it, and would again: the cycle goes on to its
  /// record, as broken; from a record that is refused to a smaller one, and from the smallest to
  /// its end.
  void give_up(const error& why, cycle_time at);

  /// What was wrong on the way; for the record and the log.
  const std::vector<std::string>& problems() const { return problems_; }
  /// At the end: what no row tells of yet, and the next one must.
  std::vector<std::string> untold() const;
  /// This cycle's row, once written, tells of what was carried to it. (Not that of a resumed cycle
  /// whose row stood already.)
  bool tells_carried() const { return judged_; }
  /// What this cycle's record will have to say of all that went wrong so far, for whoever resumes
  /// it; empty when there is nothing. It becomes durable with the decisions.
  std::string trouble() const;
  /// Such a text stands in the store and is to be removed when the row is recorded.
  bool trouble_is_kept() const { return trouble_is_kept_; }

  /// What an earlier cycle left to be told: becomes part of this cycle's error.
  void carry(std::vector<std::string> problems);

  const plan::plan_input& input() const { return input_; }
  const std::vector<std::string>& wake_candidates() const { return wake_candidates_; }
  const plan::plan_output& plan() const { return plan_; }
  const std::vector<dispatch>& rows() const { return rows_; }
  const cycle_record& record() const { return record_; }
  record_form form() const { return form_; }
  /// The database has refused each form of the record.
  bool is_unrecorded() const { return is_unrecorded_; }
  /// What follows the record.
  std::vector<effects::effect> effects() const;
  /// What a model is asked to word; empty: there is nothing to ask.
  std::vector<plan::told_outcome> told_outcomes() const;
  /// Why the plan dispatches this agent, for the log of facts.
  void note_reason(const agent_decision& d);
  /// The schedule wants this cycle to end (overlap: cancel): what is not enqueued will not be, what
  /// is enqueued is cancelled.
  void request_cancel() { cancel_requested_ = true; }
  /// Of a cancelled cycle whose plan the store has not been given: no agent of it begins.
  void empty_plan();
  bool cancel_requested() const { return cancel_requested_; }

  /// Dispatches that are not final yet.
  std::vector<std::string> unfinished() const;
  /// The record as it would be now, for a cycle that is cut short by shutdown.
  cycle_record snapshot(cycle_time at) const;

 private:
  /// An agent of the plan that waits for others (`after`).
  struct held_agent {
    const config::agent* agent = nullptr;
    agent_decision decision; ///< of the plan
    int priority = 0;        ///< of the plan
    std::optional<utc_time> slot{};
  };

  cycle_core(const config::kernel& kernel, utc_time since);
  void problem(const char* where, const error& e);
  void shorten_record();
  void take_orientation(orientation& r);
  /// Behind orient and wake: to the plan, or back to the agents of a resumed cycle.
  void oriented();
  /// Agents that wait for others of the plan are planned when these have ended.
  void hold_back();
  /// What an agent that waits can do now; empty: nothing yet.
  std::optional<agent_decision> decision_on(const held_agent& held) const;
  bool can_release() const;
  std::vector<graph::edge> edges() const;
  /// With a model's words where there are any.
  std::vector<state::action_line> outcomes() const;
  bool has_row_of(const std::string& agent_id) const;
  /// Of the plan, what the store had acknowledged and does not have.
  std::vector<dispatch_spec> without_row() const;
  /// How many dispatches are not in the store any more, these among them.
  std::size_t lost_with(const std::vector<dispatch_spec>& missing) const;
  /// The plan has them alone from then on.
  void enqueue_again(std::vector<dispatch_spec> lost);
  void take_trouble(const std::string& text);
  /// `cut_short`: what became of the unfinished when shutdown, not the deadline, ends the wait.
  void judge(cycle_time at, const char* cut_short = nullptr);

  const config::kernel* kernel_;
  utc_time since_{};
  cycle_step step_ = cycle_step::begin;
  cycle_record record_;
  plan::plan_input input_;
  gathered_context context_;
  std::vector<std::string> wake_candidates_;
  plan::plan_output plan_;
  std::vector<held_agent> held_;               ///< in the order of the configuration
  std::set<std::string> not_run_;              ///< agents that waited and were skipped
  std::map<std::string, std::string> reasons_; ///< by agent that the plan dispatches
  std::vector<dispatch> rows_;
  /// Agents whose rows had not ended when they were seen last, and are not in the store any more.
  std::set<std::string> gone_;
  std::vector<dispatch> late_;
  std::map<std::string, std::string> worded_; ///< by dispatch_id
  std::vector<std::string> problems_;
  std::vector<std::string> carried_;
  bool broken_ = false;  ///< the cycle itself broke (status error)
  bool overdue_ = false; ///< when it saw the rows
  bool goes_on_ = false; ///< resumed: its plan was made, but for the held agents
  bool judged_ = false;  ///< in this life
  record_form form_ = record_form::whole;
  bool is_unrecorded_ = false;
  std::optional<cycle_time> looked_at_; ///< when it saw the rows, or enqueued them
  bool unwatched_ = false;              ///< the rows, for longer than what is final is kept
  bool trouble_is_kept_ = false;
  bool cancel_requested_ = false;
  bool by_hand_ = false;
};

/// The status of docs/planning.md for these counts.
cycle_status status_of(int dispatched, int succeeded, bool broken) noexcept;

} // namespace boyd
