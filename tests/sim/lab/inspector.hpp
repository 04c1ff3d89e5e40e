#pragma once

#include "tests/sim/lab/machine.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace boyd::sim {

/// What may be relied on in a world: the faults on its menu decide.
struct expectations {
  int permits = 1;          ///< of each machine
  bool sound_disks = true;  ///< a write that was acknowledged in order is there after a power cut
  bool both_commits = true; ///< nothing keeps a repository from its two commits a cycle
  bool one_machine = true;
};

/// The invariants of SPEC §23. The queue's own rules are judged at every change of a row (by
/// row_auditor); processes at every start; files at every commit, step and crash; the rest when
/// nothing is under way. Single-threaded.
class inspector {
 public:
  using machines = std::vector<std::unique_ptr<machine>>;

  inspector(sim_database& database, const machines& all, expectations expected);

  /// A broken invariant, said once.
  void violated(const std::string& what);
  const std::vector<std::string>& violations() const { return violations_; }

  /// A run is about to start on the machine.
  void starting(machine& m, const process_spec& spec);
  /// Its repository has a new commit.
  void committed(machine& m);
  /// After a step of time.
  void stepped(machine& m);
  /// The power has gone and come back; no node runs yet.
  void power_cut(machine& m);
  /// Nothing is under way any more: everything final, rendered, committed, once. Judges one moment:
  /// no time passes meanwhile.
  void settled();

 private:
  struct known {
    std::uint64_t state_seen = 0;  ///< inode of STATE.md that was looked at
    std::uint64_t state_acked = 0; ///< inode of STATE.md that is surely durable
  };

  void check_state(machine& m, const char* when);
  void check_queue();
  void check_commits();
  void check_latest(machine& m);
  void check_graph(machine& m);
  void check_permits(machine& m);

  sim_database& database_;
  const machines& machines_;
  expectations expected_;
  std::map<const machine*, known> known_;
  std::vector<std::string> violations_;
};

/// What a person wrote into STATE.md before the first start; nobody may touch these bytes.
inline constexpr const char* agents_text =
    "## plans\nThe agents' own words: | table | <!-- note -->\n";

} // namespace boyd::sim
