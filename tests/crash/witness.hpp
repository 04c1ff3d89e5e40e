#pragma once

#include "crash/disk_view.hpp"
#include "e2e/program.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd::crash {

/// Text that the agents' part of STATE.md keeps byte for byte.
extern const std::string agents_text;
/// The agents that append to the file of effects whenever they run.
extern const std::set<std::string> acting;

/// The outside ledger: what Boyd acknowledged (on its output, by its exit codes), and what its
/// agents did in the world (a file of theirs, outside the home). Judges a disk by it.
class witness {
 public:
  /// `effects`: the file to which agents append "dispatch fence cycle agent pid", one write each.
  explicit witness(std::string effects) : effects_(std::move(effects)) {}

  /// Takes what a run of `boyd cycle --json` said.
  void heard_cycle(const test::finished& run);
  /// The disk has refused something: what has happened counts, though its record may lack the end.
  void disk_failed() { disk_failed_ = true; }
  /// Takes the end of `boyd pause` or `boyd resume`; without exit 0 it may have happened or not.
  void heard_pause(const std::string& agent, bool pause, bool acknowledged);

  /// Every contradiction between the ledger and the disk of a home that is not in use, whatever
  /// happened to it.
  std::vector<std::string> judge(const disk_view& disk) const;
  /// What must hold besides after a good cycle: no work is left over, STATE.md agrees with the
  /// rows.
  std::vector<std::string> judge_settled(const disk_view& disk) const;

  /// Processes that agents were; for "nothing stays alive".
  std::vector<int> agent_pids() const;

  std::size_t cycles() const { return recorded_.size(); }
  std::size_t outcomes() const { return outcomes_.size(); }

 private:
  struct record {
    cycle_row row;
    bool whole = false; ///< no problems: STATE.md and commit are promised, too
  };

  void hear_progress(const std::string& text);
  void judge_rows(const disk_view& disk, std::vector<std::string>& out) const;
  void judge_effects(const disk_view& disk, std::vector<std::string>& out) const;
  void judge_history(const disk_view& disk, std::vector<std::string>& out) const;
  void judge_records(const disk_view& disk, std::vector<std::string>& out) const;
  void judge_graph(const disk_view& disk, std::vector<std::string>& out) const;

  std::string effects_;
  std::map<std::pair<std::string, std::string>, std::string> outcomes_; ///< (cycle, agent): status
  std::map<std::string, record> recorded_;
  bool disk_failed_ = false;
  std::string newest_whole_;
  std::map<std::string, std::optional<bool>> paused_; ///< nothing: not known
};

} // namespace boyd::crash
