#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/improve/finding.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::improve {

enum class phase : std::uint8_t { boot, scan, sense, select, execute, verify, learn, checkpoint };
enum class improve_status : std::uint8_t { running, completed, failed, paused };
/// Why an attempt at a task came to nothing (docs/improve.md).
enum class failure_kind : std::uint8_t {
  none,
  transient,
  deterministic,
  environment,
  flaky,
  policy
};

std::string_view name_of(phase p) noexcept;          ///< "BOOT"
std::string_view name_of(improve_status s) noexcept; ///< "RUNNING"
std::string_view name_of(failure_kind k) noexcept;   ///< "TRANSIENT"; "" for none

/// Something to do.
struct candidate {
  std::string task_id; ///< stays the same for the same finding
  finding what;
  int priority = 0; ///< 1 lint error, 2 test failure, 3 hygiene, 4 lint warning
  std::string title;
  std::string description;
  std::string effort;  ///< small, medium
  std::string blocked; ///< why no change can settle it; empty: one can
  int failures = 0;    ///< earlier attempts that failed
};

/// What became of one run of a scanner.
struct scanner_result {
  std::string name;
  std::size_t errors = 0;
  std::size_t failures = 0;
  std::size_t passed = 0;
  std::string problem;  ///< why its report is not whole; empty: it is
  bool blocked = false; ///< it could not run at all: an environment blocker
  bool is_test = false; ///< it runs tests
  /// Names of those that passed, sorted, where the parser knows them and they are not longer than
  /// kept_names_bytes altogether: otherwise only their number is known.
  std::vector<std::string> passed_tests{};
  std::string longer_than{}; ///< the time that it had, and that was too short; empty: it ended
};

struct scan_results {
  std::vector<scanner_result> scanners;
  std::size_t lint_errors = 0;
  std::size_t test_failures = 0;
  std::size_t hygiene_issues = 0;
  std::size_t total_issues = 0;
  std::vector<std::string> advice;
};

/// One file of an accepted patch.
struct planned_change {
  enum class action_t : std::uint8_t { create, modify, remove };
  std::string path;
  action_t action = action_t::modify;
  std::string before_hash; ///< SHA-256 of what it was made for; empty: nothing was there
  unsigned mode = 0644;    ///< of the new content
  std::string after;       ///< the new content

  bool operator==(const planned_change&) const = default;
};

std::string_view name_of(planned_change::action_t a) noexcept; ///< create, modify, delete

/// A patch that passed the gate.
struct accepted_patch {
  std::string summary;
  std::vector<planned_change> changes;
  std::size_t diff_lines = 0;
  std::string digest; ///< SHA-256 over all of it: an approval names it

  bool operator==(const accepted_patch&) const = default;
};

/// What was taken back of a patch.
struct undo_end {
  /// Files that are not as the patch made them any more, and were left as they are.
  std::vector<std::string> kept;
  std::string originals; ///< directory with what stood there before; empty: there is none
  std::string told;      ///< what is not as before, why, and what to do; empty: all is
};

/// What executors used, as far as they told it.
struct spending {
  std::int64_t cost_microusd = 0;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t turns = 0;

  spending& operator+=(const spending& more);
  bool operator==(const spending&) const = default;
};

struct execution_result {
  std::string executor; ///< who was asked last; empty: the only one, which has no name
  std::size_t rung = 0; ///< its place, from the weakest
  spending spent;       ///< by all that were asked in this cycle
  int tries = 0;        ///< answers that were asked for, of this executor
  std::optional<accepted_patch> patch;
  bool applied = false;
  std::vector<std::string> refusals; ///< of the gate, in order
  std::string evidence; ///< what the scanner printed when it was run again; without secrets
};

struct verification_result {
  bool proof_passed = false;
  bool gate_passed = false;
  std::string detail;
};

struct failure_entry {
  std::string cycle_id;
  std::string task_id;
  failure_kind kind = failure_kind::none;
  std::string at_phase;
  std::string reason;
  std::string approach; ///< summary of the patch that failed; may be empty
  std::string executor;
  spending spent;
};

/// What worked for a kind of task.
struct success_entry {
  std::string cycle_id;
  std::string task_id;
  std::string kind; ///< source and rule
  std::string approach;
  std::string executor;
  spending spent;
};

/// state.json. What comes behind `// --` outlives its cycle.
struct cycle_state {
  std::string cycle_id; ///< YYYYMMDD_HHMMSS, UTC
  phase at = phase::boot;
  std::optional<phase> last_completed;
  improve_status status = improve_status::running;
  utc_time started_at{};
  std::optional<utc_time> completed_at;
  bool applies = false; ///< --apply
  bool wants_approval = false;
  bool commits = false; ///< --auto-commit
  std::string approved; ///< digest that a person approved
  std::string base;     ///< HEAD when it began; empty: no commit
  std::string reason;   ///< one sentence about its end
  failure_kind failure = failure_kind::none;
  std::string outcome; ///< SUCCESS, FAILURE, PARTIAL; empty: nothing was tried
  scan_results results;
  std::vector<candidate> candidates;
  std::optional<candidate> selected;
  execution_result execution;
  verification_result verification;
  std::string commit;
  // --
  std::vector<failure_entry> failure_log;
  std::vector<success_entry> successes;
  std::map<std::string, int> strikes; ///< by task, counted failures
  std::vector<std::string> paused_tasks;
  std::vector<std::string> quarantined; ///< flaky
  /// Of paused and quarantined tasks: the hash of the file that they name, as it was then.
  std::map<std::string, std::string> set_aside;
  std::int64_t answers = 0; ///< of the executor, in all cycles
  /// Ends of cycles (end_event) that the home's log of facts may not have yet, the oldest first.
  std::vector<std::string> untold;

  /// A crash happened inside `at`.
  bool is_open() const { return status == improve_status::running; }
  /// Its patch waits for a person.
  bool awaits_approval() const {
    return status == improve_status::paused && at == phase::execute && execution.patch.has_value();
  }
};

inline constexpr std::size_t state_bytes = std::size_t{32} << 20;
/// Of the tests of one scanner.
inline constexpr std::size_t kept_names_bytes = std::size_t{2} << 20;
inline constexpr std::size_t kept_failures = 200;
inline constexpr std::size_t kept_successes = 200;
inline constexpr std::size_t kept_untold = 50;
inline constexpr int strikes_that_pause = 3;

std::string state_json(const cycle_state& s);
/// `parse_error` or `corrupt`, with what is wrong.
result<cycle_state> read_state(std::string_view json);
/// Empty: it can be read. For files::read_checked.
std::string why_unreadable(std::string_view json);

/// A cycle that came to nothing, so that a person should look: it failed, or it is PAUSED for
/// another reason than that a patch waits for approval.
bool went_wrong(const cycle_state& s) noexcept;

/// The end of a cycle as one JSON object on one line, for the program that runs it.
std::string end_event(const cycle_state& s);
/// The same where no cycle came to its end.
std::string failed_event(failure_kind kind, const std::string& reason);
/// One step of it.
std::string step_event(std::string_view text);

std::string candidates_json(const cycle_state& s);
/// report.json.
std::string report_json(const cycle_state& s);

/// "20260213_100000".
std::string cycle_id_of(utc_time t);

/// The candidates of these findings, best first: by priority, then fewer failed attempts, then by
/// path and line. Blocked, paused and quarantined ones are in it.
std::vector<candidate> candidates_of(const std::vector<finding>& findings, const cycle_state& s);

/// Source and rule of a task: what worked for one may work for another.
std::string kind_of_task(const candidate& c);

/// Takes a paused or quarantined task up again, without strikes; of one whose patch waits for a
/// person the patch is dropped. `task`: its id, or a beginning
/// that only one of them has. Its id; `not_found`, `invalid_argument` (several begin so).
result<std::string> take_up(cycle_state& s, const std::string& task);
/// Takes up all tasks whose file is not what it was when they were set aside.
void take_up_changed(cycle_state& s, const std::vector<finding>& findings);

/// The one to do; null: none is left.
const candidate* choose(const cycle_state& s);
/// Why it is not chosen, for people: blocked, paused, quarantined; empty: it may be.
std::string why_passed_over(const candidate& c, const cycle_state& s);

} // namespace boyd::improve
