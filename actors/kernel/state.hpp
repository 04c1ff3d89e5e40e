#pragma once

#include "actors/kernel/actor.hpp"
#include "actors/kernel/cycle_core.hpp"
#include "boyd/effects/outbox.hpp"
#include "boyd/plan/quiet.hpp"
#include "boyd/plan/schedule.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// Private to actors/kernel: the kernel actor's state, shared by its files.
namespace boyd::kernel_impl {

/// Look at the schedule again.
struct look_tick : message {
  std::uint64_t generation = 0;
};

/// Repeat the current step (the store was away), or look at the cycle's rows again.
struct step_tick : message {
  std::uint64_t generation = 0;
};

/// Load from the store again.
struct load_tick : message {};

/// Ask the store again whether it has what it did not answer for.
struct doubt_tick : message {};

using kernel_self = kernel_actor::extend<caf::reacts_to<look_tick>, caf::reacts_to<step_tick>,
                                         caf::reacts_to<load_tick>, caf::reacts_to<doubt_tick>>;

/// A slot that was opened in the ledger and waits for its cycle.
struct admitted_slot {
  occurrence slot;
  std::string cycle_id;
  std::optional<utc_time> begun_at{}; ///< its row was made with the slot
  std::optional<plan::single_run> only{};
};

/// A cycle that an earlier life of this node began, and goes on with.
struct left_over_cycle {
  cycle_record row;
  bool becomes_latest = true; ///< it began after all that are recorded to their end
  bool by_hand = false;       ///< cycle_core::by_hand
  std::optional<plan::single_run> only{};
};

/// A slot of the schedule whose row was asked for.
struct asked_slot {
  store::open_occurrence asked;
  bool in_doubt = false; ///< the store may have it
};

/// A slot that the store may have or not, which nobody asks for any more as it was.
struct doubtful_slot {
  store::open_occurrence asked;
  bool of_trigger = false; ///< the gate is shut for others until it is known
  bool only_look = false;  ///< the store, or its worker, did not bear that it was written
  std::string replaced{};  ///< the cycle that is cancelled when it stands; empty: none
  std::optional<plan::single_run> only{};
};

/// The questions about the rows that a cycle is judged by at its begin.
struct orient_questions {
  store_ticket<store::latest_per_agent> latest;
  store_ticket<store::list_dispatches> recent;
  store_ticket<store::list_pauses> pauses;
  store_ticket<store::get_facts> slots;
  std::optional<store_ticket<store::sum_spend>> spent; ///< where there are budgets
};

/// The rows that a cycle begins with, where they came with its slot.
struct begin_rows {
  configuration_ptr asked_under;
  orient_questions asked;
  store_reply rows;
};

/// A trigger that came before the kernel knew where it stands.
struct waiting_trigger {
  trigger_cycle trigger;
  caf::typed_response_promise<result<trigger_reply>> promise;
};

using awaited_promise = caf::typed_response_promise<result<awaited_cycle>>;

struct kernel_state {
  kernel_parts parts;
  const config::kernel* settings = nullptr;
  std::optional<plan::schedule_rule> rule;
  std::map<std::string, plan::schedule_rule> agent_rules;
  std::vector<plan::quiet_rule> quiet;

  bool loaded = false;
  bool stopping = false;
  bool resumed = false;       ///< the current cycle was left by an earlier life
  bool becomes_latest = true; ///< no cycle that is recorded began after the current one
  utc_time since{};
  std::optional<utc_time> last_slot;
  std::optional<utc_time> next_slot;
  std::string clock_note; ///< told while the schedule waits because the clock was set back
  /// When it last got on: a cycle began or ended, another node took the slot, or nothing was due
  /// because of a pause or a clock that was set back.
  utc_time progress{};
  std::string paused;
  /// Slots whose row was asked for without an answer. Asked for again as it was, it is known as our
  /// own; in any other form it would be nobody's.
  std::map<utc_time, asked_slot> unanswered;
  int asking_slots = 0;     ///< requests for slots of the schedule under way
  std::set<utc_time> taken; ///< slots that were answered for while other requests are under way
  std::deque<doubtful_slot> doubtful;
  bool deciding_doubt = false; ///< of the first one: asked for, or to be asked for again soon
  std::deque<admitted_slot> admitted;
  std::vector<waiting_trigger> triggers;
  std::deque<left_over_cycle> to_resume; ///< in the order in which they began

  std::optional<cycle_core> cycle;
  steady_time cycle_since{};               ///< when it began, by a clock that nobody sets
  std::optional<begin_rows> rows_at_begin; ///< of the cycle that begins now
  std::optional<cycle_record> latest;      ///< the latest recorded cycle
  std::optional<steady_time> latest_ended; ///< in this life of the node
  bool has_run = false;                    ///< this node has ended a cycle before
  std::vector<std::string> carried;        ///< problems for the next record
  std::set<std::string> told_problems;     ///< of the latest cycle: the log has them
  effects::outbox effects;                 ///< what follows recorded cycles and is not done
  std::vector<cycle_record> rows_recorded; ///< newest first, with the cycle that was just recorded
  bool following = false;                  ///< effects are performed: no cycle begins meanwhile
  bool tried_effects = false;              ///< for the next cycle's begin
  bool shows_latest = true;                ///< STATE.md and its commit, as far as is known
  std::vector<awaited_cycle> ended; ///< whoever waits for them is answered when the store knows
  std::set<std::string> told;       ///< dispatches whose end was announced
  bool asking_rows = false;
  bool rows_again = false;
  bool writing_snapshots = false;          ///< INIT.md and its like are compared, perhaps written
  bool act_is_held = false;                ///< the running cycle's agents begin when that has ended
  configuration_ptr pending_configuration; ///< of a reload during a cycle
  std::string problem;                     ///< what the current step waits for
  int refused_claims = 0;                  ///< of the cycle's agents, in a row
  std::string waited_for_context;          ///< the cycle that has waited for the librarian

  std::uint64_t look_generation = 0;
  std::uint64_t step_generation = 0;
  std::map<std::string, std::vector<awaited_promise>> waiters;
  std::vector<event_listener_actor> listeners;
  std::optional<caf::typed_response_promise<result<finish_reply>>> finishing;
  bool final_block = false; ///< being written: no step of the cycle runs any more
  bool opening = false;     ///< a trigger has passed the gate; it is not known to be in the ledger
  std::optional<std::string> resuming; ///< the left-over cycle that is being looked up

  static inline const char* name = "kernel";
};

using self_pointer = kernel_self::stateful_pointer<kernel_state>;

// admission.cpp: schedule, ledger, triggers
/// What a slot that stands in the ledger is to become; `cycle_id` where its row was not made with
/// it.
admitted_slot admitted(const store::open_occurrence& op, std::string cycle_id,
                       std::optional<plan::single_run> only = {});
void look(self_pointer self);
void look_at(self_pointer self, utc_time when);
void admit_trigger(self_pointer self, trigger_cycle trigger,
                   caf::typed_response_promise<result<trigger_reply>> promise);
/// Ends every dispatch of the running cycle that is not final (overlap: cancel).
void cancel_running_cycle(self_pointer self);
/// The same if it is this one that runs.
void cancel_replaced(self_pointer self, const std::string& cycle_id);
/// Answers when the cycle is recorded to its end: at once when it is, or when nobody here will end
/// it. Before the kernel has loaded nobody knows.
void await(self_pointer self, const std::string& id, awaited_promise promise);
/// Starts the next admitted or left-over cycle when none runs.
void start_next(self_pointer self);

// doubts.cpp: slots of which nobody knows whether they were opened
/// Whether a request for a slot that failed so may have been done all the same.
bool is_doubt(const error& e);
/// Looks up whether the doubtful slots stand, which are then run, and keeps the places of the
/// others in the ledger: what comes late finds them taken. Goes on until all are decided.
void settle_doubts(self_pointer self);

// cycle.cpp: the steps of a running cycle
orient_questions ask_orientation(self_pointer self, store_request& request);
void run_step(self_pointer self);
/// Agents begin, where they waited for what was written before their cycle to be committed.
void release_act(self_pointer self);
/// How long the planner may take to answer for its model, and a little more.
milliseconds question_limit(const config::adviser& ask);
/// Models that the cycle waits for are waited for no longer.
void stop_questions_of(self_pointer self);
void ask_rows(self_pointer self);
/// The cycle waits for its agents, at most until the next slot of the schedule or the next run that
/// somebody asks for.
bool makes_way(self_pointer self);
/// The rows of the running cycle, where they came with the news; else they are asked for.
void hear_settled(self_pointer self, const dispatches_settled& news);
void announce(self_pointer self, const std::string& phase, const std::string& agent,
              const std::string& text);

// record.cpp: the record phase, repair of the rendering, the final block
void run_record_step(self_pointer self);
void cycle_done(self_pointer self);
/// Who waits for cycles that have ended is told: the store knows all of it now.
void answer_recorded(self_pointer self);
/// Looks after what is behind, in a while.
void repair_later(self_pointer self);
/// Effects that are not done, where no cycle runs.
void follow_again(self_pointer self);
/// STATE.md and its commit, where they do not show the latest cycle.
void repair_latest(self_pointer self);
/// A commit of a cycle. `restarted`: an earlier life may have asked for it.
commit_boundary boundary(self_pointer self, const std::string& message, const std::string& cycle,
                         const std::string& graph_head, bool restarted);
/// `cycle <id>: <status>`; what a repair asks for must equal what the cycle asked for.
std::string subject_of(const std::string& cycle_id, cycle_status status);
/// `pre-cycle <id>`.
std::string earlier_subject(const std::string& cycle_id);
/// The block as the rows (newest first) have it, its time included: rendered again, it changes
/// nothing.
write_runtime_block block_of(self_pointer self, const std::vector<cycle_record>& history);
/// The commit of the latest cycle, unless it stands; repeated by the repair when it fails.
void commit_latest(self_pointer self, const cycle_record& latest);
void write_final_block(self_pointer self);

// follow.cpp: what follows recorded cycles
/// Tries all open effects once, those of cycle `fresh` for the first time, with the rows that its
/// record gave (newest first); then `then`. No cycle begins meanwhile.
void follow(self_pointer self, std::vector<cycle_record> rows, std::string fresh,
            std::function<void()> then);
/// Something is still to be done.
bool is_behind(self_pointer self);
/// Commits are among it: they come before the next cycle begins.
bool lacks_commits(self_pointer self);
/// Tells the store what was done, then answers who waits.
void save_effects(self_pointer self);
store::get_facts effects_query(self_pointer self);
/// Changes of effects (effects::outbox::changes) as operations.
void add_changes(self_pointer self, store_request& to,
                 const std::map<std::string, std::string>& changes);

// loading.cpp: what an earlier life left
void load(self_pointer self);
result<void> read_settings(self_pointer self, const configuration_ptr& configuration);

utc_time now_of(self_pointer self);
/// How long the cycle has taken; its limits hold also when somebody sets the clock.
cycle_time time_of_cycle(self_pointer self);
/// Why the schedule counts as missed: nothing began and nothing ended for two slots. Empty: it does
/// not.
std::string missed_slots(self_pointer self);
/// The store's facts of this scope, by cycle: what went wrong before the decisions of a cycle that
/// is not recorded yet (cycle_core::trouble).
std::string trouble_scope(self_pointer self);
/// The store's facts of this scope, by cycle: what plan::single_run a cycle is that is not recorded
/// yet.
std::string single_scope(self_pointer self);
/// Repeats the current step in a second, and says why.
void retry_step(self_pointer self, const error& why);
void retry_in(self_pointer self, milliseconds delay);

} // namespace boyd::kernel_impl
