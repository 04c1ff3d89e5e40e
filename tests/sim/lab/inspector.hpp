#pragma once

#include "tests/sim/lab/graph_watch.hpp"
#include "tests/sim/lab/machine.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd::sim {

/// What may be relied on in a world: the faults on its menu decide.
struct expectations {
  int permits = 1; ///< of each machine, its kernel's among them
  bool one_machine = true;
  std::size_t most_chosen = 0; ///< dispatches of a cycle that a model planned
};

/// The invariants of docs/reliability.md. The queue's own rules are judged at every change of a row
/// (by row_auditor); processes at every start; files and commits after every message that changed
/// any; files, commits and lost rows as a whole after every crash and boot; permits that leaked
/// when a node is idle, now and then; what every slot and cycle must come to when nothing is under
/// way. Single-threaded.
class inspector {
 public:
  using machines = std::vector<std::unique_ptr<machine>>;

  inspector(sim_database& database, const machines& all, expectations expected);

  /// A broken invariant, said once.
  void violated(const std::string& what);
  const std::vector<std::string>& violations() const { return violations_; }

  /// A program is about to start on the machine, and will behave so.
  void starting(machine& m, const process_spec& spec, const sim_program& program);
  /// Its disk has begun to fail: what is written meanwhile need not last.
  void disk_struck(machine& m) { known_of(m).disk_failed = true; }
  /// Its node has acknowledged an entry of the memory.
  void remembered(machine& m, const std::string& text);
  /// Such entries, of all machines.
  std::size_t entries() const;
  /// Its repository has a new commit.
  void committed(machine& m);
  /// A message has been handled that changed a file or made a commit: judges what is new.
  void stepped(machine& m);
  /// The node is gone, killed or by a power cut, and none runs yet: judges all that is left.
  void crashed(machine& m, bool power);
  /// A node runs again and has done what it could do at once: judges all.
  void booted(machine& m);
  /// The node has nothing to do: no permit may be out. Asks it, at most once in some hours.
  void idle(machine& m, milliseconds now);
  /// Nothing is under way any more: everything final, rendered, committed, once. Judges one moment:
  /// no time passes meanwhile.
  void settled();

 private:
  /// The commits of one cycle in one repository.
  struct commits_of_cycle {
    int before = 0;
    int after = 0;
    bool wrong_order = false;
  };

  struct known {
    std::uint64_t state_seen = 0;  ///< inode of STATE.md that was looked at
    std::uint64_t state_acked = 0; ///< inode of STATE.md that is surely durable
    /// The newest inode of STATE.md that was written while its disk failed.
    std::uint64_t state_doubtful = 0;
    bool disk_failed = false; ///< since the last look
    std::size_t commits_seen = 0;
    std::map<std::string, commits_of_cycle> cycles;
    graph_watch graph;
    std::vector<std::string> entries; ///< of the memory, acknowledged
    milliseconds asked_at{0};         ///< for its permits
  };

  /// A program of an attempt, or a check of one, while it lives.
  struct run {
    const machine* on = nullptr;
    process_handle handle = 0;
    std::string dispatch_id; ///< empty: no attempt's; nobody gives it a permit
    std::int64_t fence = 0;
    std::uint64_t hindrances = 0; ///< when it was started
    bool is_check = false;
  };

  run run_of(const machine& m, const process_spec& spec) const;
  std::uint64_t hindrances_of(const machine& m) const;
  void check_owner(const run& r);
  void check_alone(const run& r);
  known& known_of(machine& m);
  void check_state(machine& m, const char* when);
  void check_state_if_new(machine& m, const char* when);
  void check_rows();
  void check_queue();
  void check_new_commits(machine& m);
  void check_edges();
  void check_commits();
  void check_plans();
  void check_latest(machine& m);
  void check_graph(machine& m, bool whole);
  void check_memory(machine& m);
  void check_permits(machine& m, bool must_answer);

  sim_database& database_;
  const machines& machines_;
  expectations expected_;
  std::map<const machine*, known> known_;
  std::vector<run> runs_;                                   ///< that lived at the last start
  std::set<std::pair<std::string, std::int64_t>> attempts_; ///< dispatch and fence, once started
  std::set<std::string> unfinished_; ///< rows that were not final when they were last looked at
  std::vector<std::string> violations_;
};

/// What a person wrote into STATE.md before the first start; nobody may touch these bytes.
inline constexpr const char* agents_text =
    "## plans\nThe agents' own words: | table | <!-- note -->\n";

} // namespace boyd::sim
