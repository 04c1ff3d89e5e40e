#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/improve/cycle_state.hpp"

#include <string>
#include <variant>
#include <vector>

namespace boyd::improve {

/// Who may be asked for a patch.
struct proposer {
  std::string name;   ///< empty: the only one
  bool edits = false; ///< it changes files in a copy; what it changed is its answer
};

struct cycle_options {
  bool apply = false;   ///< otherwise a dry run
  bool approve = false; ///< stop before applying
  bool auto_commit = false;
  std::string approved; ///< with a resume: the digest of the patch that a person approved
  /// From the weakest to the strongest: the next one is asked after a failed verification, or
  /// after three refused patches. Empty: one without a name.
  std::vector<proposer> executors{};
  bool told_elsewhere = false; ///< whoever runs it takes its end to a log of facts
};

/// What is so before anything is done.
struct preflight {
  std::string head;      ///< commit; empty: none
  std::string dirty;     ///< why nothing may be changed now: edits of a person; empty: none
  std::string hindrance; ///< what the environment lacks for it; empty: nothing
};

/// How an executor answered.
struct answer_end {
  std::string text;
  failure_kind failure = failure_kind::none;
  std::string reason;   ///< of a failure
  spending spent{};     ///< also of a failure
  bool is_diff = false; ///< the text is the diff of what it changed
};

/// How a check of a changed tree ended.
struct check_end {
  bool passed = false;
  failure_kind failure = failure_kind::none; ///< when it did not
  std::string detail;
  std::string printed{}; ///< what the program printed; without secrets, bounded
  bool could_run = true; ///< false: the program told nothing that can be judged
};

namespace effect {
struct save {
  cycle_state state;
};              ///< state.json; nothing comes back
struct look {}; ///< preflight → on_look
struct scan {}; ///< → on_scan
struct recheck {
  candidate task;
}; ///< is it still so? → on_recheck
struct ask {
  candidate task;
  std::string executor; ///< its name
  bool edits = false;   ///< it changes files in a copy
};                      ///< the executor → on_answer
struct judge {
  std::string answer;
  bool is_diff = false; ///< of a tool that made it: nothing else stands in it
};                      ///< the gate → on_judged
struct apply {
  accepted_patch patch;
};                 ///< → on_applied
struct compare {}; ///< does the patch stand as made, on its base? → on_compared
struct prove {
  candidate task;
};                   ///< → on_proved
struct guard {};     ///< the gate's commands → on_guarded
struct roll_back {}; ///< → on_rolled_back
struct commit {
  std::string message;
  std::vector<planned_change> changes;
};                ///< → on_committed
struct forget {}; ///< the undo journal → on_forgotten
struct report {}; ///< what people read; nothing comes back
} // namespace effect

using cycle_effect =
    std::variant<effect::save, effect::look, effect::scan, effect::recheck, effect::ask,
                 effect::judge, effect::apply, effect::compare, effect::prove, effect::guard,
                 effect::roll_back, effect::commit, effect::forget, effect::report>;
using cycle_effects = std::vector<cycle_effect>;

/// Answers that an executor is asked for, and repeats after a failure that passes.
inline constexpr int most_tries = 3;

/// One improvement cycle as a state machine: (event, now) → effects; no clock, no I/O. Each effect
/// but `save` and `report` is answered by exactly one event before the next effects come; without
/// any the cycle is over. One task a cycle: what is selected is never exchanged, also not by a
/// resume. Not thread-safe.
class cycle_core {
 public:
  /// `earlier`: the state of the cycle before, of which only what outlives it counts.
  static cycle_core fresh(const cycle_state& earlier, const cycle_options& options, utc_time now);
  /// Goes on with an interrupted or an approved cycle. `refused`: there is nothing to go on with,
  /// or what waits for approval is not what was approved.
  static result<cycle_core> resumed(cycle_state open, const cycle_options& options);

  cycle_effects begin(utc_time now);
  cycle_effects on_look(const preflight& p, utc_time now);
  cycle_effects on_scan(const std::vector<finding>& findings, scan_results results, utc_time now);
  cycle_effects on_recheck(const check_end& still_fails, utc_time now);
  cycle_effects on_answer(answer_end a, utc_time now);
  /// Instead of on_answer, on_proved or on_compared: the repository was changed meanwhile, by
  /// somebody or by what ran.
  cycle_effects on_disturbed(std::string reason, const spending& spent, utc_time now);
  cycle_effects on_judged(result<accepted_patch> patch, utc_time now);
  cycle_effects on_applied(const result<void>& done, utc_time now);
  cycle_effects on_compared(const result<bool>& stands, utc_time now);
  cycle_effects on_proved(const check_end& c, utc_time now);
  cycle_effects on_guarded(const check_end& c, utc_time now);
  cycle_effects on_rolled_back(const result<undo_end>& end, utc_time now);
  cycle_effects on_committed(const result<std::string>& hash, utc_time now);
  cycle_effects on_forgotten(const result<void>& done, utc_time now);

  const cycle_state& state() const noexcept { return state_; }

 private:
  cycle_core(cycle_state s, const cycle_options& options)
      : state_(std::move(s)), executors_(options.executors),
        told_elsewhere_(options.told_elsewhere) {}
  void complete(phase done, phase next);
  cycle_effects select(utc_time now);
  effect::ask asked() const;
  cycle_effect begun() const;
  void set_aside(std::vector<std::string>& list);
  cycle_effects ask_again();
  void climb(std::size_t rung);
  cycle_effects fail_task(failure_kind kind, std::string reason, utc_time now);
  cycle_effects after_failure(utc_time now);
  cycle_effects learn(utc_time now);
  cycle_effects checkpoint(utc_time now);
  cycle_effects stop(improve_status status, std::string reason, utc_time now);
  effect::save saved() const { return {state_}; }

  cycle_state state_;
  std::vector<proposer> executors_;
  bool told_elsewhere_ = false;
  preflight preflight_;
  int passing_failures_ = 0; ///< of the executor, in a row
  bool has_looked_ = false;
  bool restarts_ = false; ///< a rollback comes before EXECUTE runs again
};

} // namespace boyd::improve
