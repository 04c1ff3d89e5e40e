#pragma once

#include "boyd/improve/performer.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::improve {

/// All that the scanners and Boyd's own eyes see.
struct whole_scan {
  std::vector<finding> findings;
  scan_results results;
};

/// Files of the repository: those that git knows, and those that no .gitignore file names; without
/// git's own, without `skip` and what lies below; sorted. `limit_exceeded` for more than can be
/// looked at.
result<std::vector<listed_file>> list_files(const improve_ports& ports, const std::string& root,
                                            const std::vector<std::string>& skip);

struct proof_command;

/// Runs scanners and checks. Blocking.
class scanning {
 public:
  scanning(const improve_order& order, const improve_ports& ports) : order_(order), ports_(ports) {}

  whole_scan scan();
  /// Whether the task's finding is gone, as `before` counts it. `passed`: it is. Only what passes
  /// by itself is tried again.
  check_end recheck(const candidate& task, const cycle_state& before);
  /// The same of a changed tree, where a failing test is run once more: it may be a flaky one.
  check_end prove(const candidate& task, const cycle_state& before);
  /// The configured gate, or every scanner again: nothing new may be found.
  check_end guard(const cycle_state& before);

 private:
  struct seen {
    scan_report report;
    scanner_result told;
    failure_kind failure = failure_kind::none;
    std::string printed; ///< for people, without secrets, bounded
  };
  std::vector<scanner_settings> scanners(scan_results& results);
  milliseconds time_for(const scanner_settings& s) const;
  std::string clean(std::string_view text) const;
  bool builds(const scanner_settings& s) const;
  /// False: it failed, and `into` has what follows.
  bool build(const scanner_settings& s, seen& into);
  seen run(const scanner_settings& s, const proof_command& command);
  void keep_names(const scanner_settings& s, seen& into) const;
  void judge_end(const scanner_settings& s, const command_end& end, seen& into) const;
  result<scan_report> hygiene();
  /// Lines and hashes of the files that findings name.
  void look_at_files(std::vector<finding>& findings);
  check_end prove_once(const candidate& task, const cycle_state& before);
  check_end guard_once(const cycle_state& before);
  check_end count_tests(const cycle_state& before);

  const improve_order& order_;
  const improve_ports& ports_;
  /// What whole runs of scanners told when they proved the task last.
  std::map<std::string, scanner_result> proved_;
};

/// Why the program could not be started, of which nobody is at fault but the machine; empty: it
/// was.
std::string why_not_started(const command_end& end);
/// The same of a program that has told nothing else: its last words may be that a part of it is
/// missing.
std::string why_not_run(const command_end& end);

/// What a program of an executor answered, or why it did not.
answer_end answer_of(const command_end& end);

} // namespace boyd::improve
