#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/boxed.hpp"
#include "boyd/core/dispatch.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/verdict.hpp"
#include "boyd/exec/chat_loop.hpp"
#include "boyd/exec/cli_reader.hpp"
#include "boyd/exec/context_level.hpp"
#include "boyd/exec/output_keeper.hpp"
#include "boyd/exec/requirements.hpp"
#include "boyd/model/limit_text.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/process_runner.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace boyd::exec {

/// What the output of a program means that is an agent's own command line.
struct cli_contract {
  std::shared_ptr<const config::cli_adapter> adapter;
  bool denials_fail = true;
  milliseconds startup_timeout{0}; ///< 0: off
  /// budget.run: what the program may tell of its turns, tokens and cost. What is 0 has no limit;
  /// `wall` stands in attempt_options.
  config::budget_limit budget{};
};

/// What an attempt runs and under which limits.
struct attempt_options {
  /// A program, a scripted answer (the script executor), or a conversation with a model.
  std::variant<process_spec, config::script_executor::answer, conversation> work;
  milliseconds timeout = limits::run_timeout;
  /// Of the run's budget (budget.run.wall), from its beginning, with the time that it waits for a
  /// place at a provider, which `timeout` does not count; 0: none. When it is used up the run
  /// ends as failed by policy, which is not tried again.
  milliseconds wall_budget{0};
  milliseconds no_output_timeout{0}; ///< 0: off
  std::size_t output_bytes = limits::output_bytes;
  std::map<int, std::string> exit_classes;
  std::optional<cli_contract>
      cli; ///< for a program: its events judge it, its exit code comes after
  std::vector<config::requirement> require;
  /// One per `command` requirement, in their order (build_check).
  std::vector<process_spec> checks;
  std::string base_directory; ///< relative artifact and schema paths start here; absolute
  std::string session_id;
  utc_time started_at{}; ///< time of day at begin(), for artifacts
  /// For texts that name a time at which a limit of use ends. Null: `started_at` is now, and UTC
  /// the only zone.
  std::function<utc_time()> time_of_day{};
  std::shared_ptr<const time_zones> zones{};
  /// How much of its context a program was given, for the record; a conversation tells itself.
  context_level context = context_level::full;
};

/// Checks have at least this long, even when the run used up its own time.
inline constexpr milliseconds minimum_check_time = 60s;
/// After SIGKILL the end of the process is waited for this long; then the attempt ends as
/// `indeterminate` (a process stuck inside the kernel), class environment: not retried.
inline constexpr milliseconds kill_wait = 30s;
/// Bytes of a schema file that are read.
inline constexpr std::size_t schema_bytes = 1u << 20;

/// A program that has told its final event and does not end is ended after this long, and judged by
/// that event.
inline constexpr milliseconds linger_time = 30s;

enum class cancel_reason : std::uint8_t {
  by_operator,
  shutdown,
  lease_lost, ///< killed at once
  next_cycle,
  hurry, ///< a shutdown that must not take long: limits::hurried_grace
};

/// Timers are never disarmed: one that comes too early or too late is ignored by the core.
enum class timer_kind : std::uint8_t {
  deadline, ///< `timeout`, and the time left for checks
  silence,  ///< `no_output_timeout`
  kill,     ///< TERM was ignored for its grace
  give_up,  ///< SIGKILL had no effect for kill_wait
  answer,   ///< a script's delay is over
  startup,  ///< `cli_contract::startup_timeout`
  linger,   ///< the final event was told, perhaps
  budget,   ///< four fifths of `wall_budget` are over
};

/// Which process of the attempt: 0 is the run itself, 1… its checks, one after another.
using run_index = std::size_t;

namespace effect {

/// process_runner::start; its events come back as on_output/on_exit with the same index. When the
/// runner refuses, report an on_exit with started == false.
struct start_process {
  run_index run = 0;
  process_spec spec;
};

/// process_runner::signal.
struct signal_process {
  run_index run = 0;
  int signal = 0;
};

/// Calls on_timer(kind) at `at` or later. A timer replaces an earlier one of its kind.
struct arm_timer {
  timer_kind kind = timer_kind::deadline;
  steady_time at{};
};

/// file_system::stat; the answer comes back through on_file_info.
struct stat_file {
  std::string path;
};

/// file_system::read; the answer comes back through on_file_text.
struct read_file {
  std::string path;
  std::size_t max_bytes = 0;
};

/// What a conversation wants; its answers come back through on_talk and hear.
struct talk {
  chat_effect what;
};

/// The attempt is over. Always the last effect, exactly once.
struct finish {
  boxed<run_outcome> outcome; ///< always there
};

} // namespace effect

using attempt_effect =
    std::variant<effect::start_process, effect::signal_process, effect::arm_timer,
                 effect::stat_file, effect::read_file, effect::talk, effect::finish>;
using attempt_effects = std::vector<attempt_effect>;

/// One attempt at a dispatch as a state machine: (event, now) → effects; no clock, no I/O.
/// running → ending (TERM → limits::term_grace, in a hurry hurried_grace → KILL) → checking →
/// finished. Events that do not fit the state (late timers, output of an ended process) change
/// nothing. Not thread-safe.
///
/// Verdicts: execution by exit_class.hpp, `timed_out`, `stalled`, `cancelled` or `indeterminate`;
/// claim from the end of stdout when a JSON object with "status": "done" | "failed" (optional
/// "summary", "failure_class") stands there; one that cannot be read claims failure; else none;
/// verification from `require`, all checked when execution succeeded, `failed` unchecked when it
/// did not, none without requirements. Summary: the last BOYD_SUMMARY line, else the claim's, else
/// (failed) the error, else the last line of stdout (the first, before JSON), "completed". An
/// agent's own command line (`cli`) is judged by its events: one that says it failed, then that
/// there is no final one (`indeterminate`, whatever the exit code), then what was denied, then that
/// it gave no answer; its answer takes the place of stdout. A bad end after the final event is only
/// noted (usage: "ended"). One that told of more than its budget has failed by policy, whatever
/// else it says. Who says that a limit of use was reached has failed as `transient`, also when that
/// is a whole answer, and is not tried again before the time it names (usage: "retry_after_ms", at
/// most limits::longest_told_wait); a class that somebody chose stays. Output: stdout, then stderr
/// (at most a quarter of the cap) under a line "--- stderr ---".
class attempt_core {
 public:
  explicit attempt_core(attempt_options options);

  attempt_effects begin(steady_time now);
  /// True: what it told of its figures has come near a budget or passed it, call on_figures.
  bool on_output(run_index run, output_stream stream, std::string_view bytes, steady_time now);
  /// Warns of a budget that a program's own figures have come near; ends a run that passed one.
  attempt_effects on_figures(steady_time now);
  attempt_effects on_exit(run_index run, const process_exit& e, steady_time now);
  /// The process has ended and nobody will say how: the attempt may be tried again.
  attempt_effects on_lost_exit(run_index run);
  attempt_effects on_timer(timer_kind kind, steady_time now);
  attempt_effects on_file_info(const result<file_info>& info, steady_time now);
  attempt_effects on_file_text(const result<std::string>& text, steady_time now);
  /// An event of the conversation: `event` hands it to the loop.
  attempt_effects on_talk(const std::function<chat_effects(chat_loop&)>& event, steady_time now);
  /// A part of an answer has come.
  void hear(const std::function<void(chat_loop&)>& event, steady_time now);
  /// Ends it as failed, for a reason outside of what it runs.
  attempt_effects fail_run(std::string why, failure_class failure, steady_time now);
  /// Ends the process (TERM → KILL) or the conversation, then finishes as `cancelled`, class none.
  /// The first reason counts. A process whose lease is lost is killed at once, also one that has
  /// its grace already: when the lease has ended somebody else may begin.
  attempt_effects cancel(cancel_reason reason, steady_time now);

  bool finished() const noexcept { return phase_ == phase::finished; }
  /// What an agent's own command line told so far; null for all else.
  const cli_report* events() const noexcept { return events_ ? &events_->report() : nullptr; }

  /// What each requirement's check found, in their order; those that were not looked at are missing
  /// at the end.
  const std::vector<check_result>& findings() const noexcept { return findings_; }
  /// What is kept of what the program wrote, from byte `offset` of the stream on; see
  /// output_keeper::since.
  output_keeper::piece written(output_stream stream, std::uint64_t offset,
                               std::size_t limit) const {
    return (stream == output_stream::out ? out_ : err_).since(offset, limit);
  }

  /// What the program asked to be remembered, once it has ended.
  const line_watch& said() const noexcept { return out_lines_; }

 private:
  enum class phase : std::uint8_t { fresh, running, ending, checking, finished };

  attempt_effects end_run(execution_verdict verdict, std::string why, steady_time now,
                          failure_class failure = failure_class::transient);
  attempt_effects stop_process(steady_time now);
  attempt_effects kill_process(steady_time now);
  attempt_effects stop_talk();
  attempt_effects judge_exit(const process_exit& e, steady_time now);
  attempt_effects judge_answer(steady_time now);
  attempt_effects judge_talk(steady_time now);
  attempt_effects judge_events(const process_exit& e, steady_time now);
  attempt_effects judge_told(const process_exit& e, steady_time now);
  bool has_news_of_budget();
  attempt_effects warn_of_figures();
  bool tells_only_of_limit() const;
  std::optional<model::told_limit> limit_told() const;
  bool has_chosen_class() const;
  /// The class and the wait of a failure that is a limit of use.
  void heed_limit();
  void note_retry_after();
  attempt_effects fail_by_events(failure_class failure, std::string why);
  std::string without_final_event(const process_exit& e) const;
  void end_events();
  void take_pending_event(steady_time now);
  bool plain_events() const;
  bool is_done_anyway() const;
  std::string late_end(const process_exit& e) const;
  /// Wraps the loop's effects; an ended conversation is judged.
  attempt_effects after_talk(chat_effects effects, steady_time now);
  attempt_effects start_checks(steady_time now);
  attempt_effects next_check();
  attempt_effects check_done(const check_result& r);
  check_result check_tool_action() const;
  void set_deadline();
  void arm_deadline(attempt_effects& effects) const;
  void count_waiting(attempt_effects& effects, steady_time now);
  attempt_effects warn_of_wall();
  std::string timed_out() const;
  attempt_effects on_deadline(steady_time now);
  attempt_effects on_silence(steady_time now);
  attempt_effects on_startup(steady_time now);
  attempt_effects on_linger(steady_time now);
  attempt_effects end_lingering(steady_time now);
  attempt_effects give_up();
  attempt_effects finish();
  void read_claim();
  void compose_output();
  run_usage usage_of_program() const;
  std::string resolve(const std::string& path) const;

  attempt_options options_;
  phase phase_ = phase::fresh;
  run_outcome outcome_;
  run_index run_ = 0; ///< the process that is running now, or ran last
  bool process_alive_ = false;
  bool killed_ = false; ///< SIGKILL was sent to the current process
  steady_time deadline_{};
  bool budget_ends_first_ = false; ///< the deadline is the budget's, not the time-out's
  steady_time times_out_at_{};
  std::optional<steady_time> wall_ends_;
  std::optional<steady_time> waits_since_; ///< for a place at a provider
  milliseconds waited_{0};                 ///< for places before
  bool deadline_armed_ = true;             ///< or told of when the place is there
  steady_time last_progress_{};
  steady_time kill_at_{};
  steady_time give_up_at_{};
  steady_time answer_at_{};
  std::optional<cancel_reason> cancelled_;
  bool lease_lost_ = false;
  bool hurried_ = false;
  std::size_t check_ = 0;     ///< index into options_.require
  std::size_t commands_ = 0;  ///< `command` checks started
  std::string check_failure_; ///< why the running check was ended
  failure_class check_class_ = failure_class::deterministic;
  std::vector<std::string> failed_checks_;
  std::vector<check_result> findings_;
  std::optional<chat_loop> chat_;
  boxed<cli_reader> events_;
  bool events_ended_ = false;
  bool lingered_ = false; ///< ended after its final event
  bool too_long_ = false; ///< its model says so: the next attempt gets less
  int figures_told_ = 0;  ///< of its budget: 1, near was told of to the caller; 2, passed
  std::set<std::string> figures_warned_;
  std::optional<steady_time> final_at_;
  steady_time startup_at_{};
  process_exit exit_;
  bool exit_known_ = false;
  output_keeper out_;
  output_keeper err_;
  output_keeper check_out_;
  line_watch out_lines_;
  line_watch err_lines_;
  std::string late_end_;   ///< how a program ended badly whose work was done
  bool exit_lost_ = false; ///< nobody will say how it ended
  bool claim_unreadable_ = false;
  bool claim_has_class_ = false;
  milliseconds retry_after_{0}; ///< what it told; 0: nothing
  std::string claim_summary_;
  failure_class claim_class_ = failure_class::deterministic;
};

} // namespace boyd::exec
