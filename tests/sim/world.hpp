#pragma once

#include "actors/node/context.hpp"
#include "actors/node/root.hpp"
#include "boyd/config/configuration.hpp"
#include "support/actor_system.hpp"
#include "support/sim/disk.hpp"
#include "support/sim/processes.hpp"
#include "support/sim/repository.hpp"
#include "support/sim/seeded_entropy.hpp"
#include "support/sim/store.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace boyd::sim {

/// The clock of a world: goes on when a node dies and another one is started.
class world_clock final : public clock_port {
 public:
  utc_time now() const override { return test::virtual_clock::start + elapsed(); }
  steady_time steady() const override { return steady_time{milliseconds{1'000'000}} + elapsed(); }

  milliseconds elapsed() const { return life_ ? past_ + (life_->steady() - born_) : past_; }
  void begin_life(std::shared_ptr<test::virtual_clock> life) {
    born_ = life->steady();
    life_ = std::move(life);
  }
  void end_life() {
    past_ = elapsed();
    life_.reset();
  }

 private:
  milliseconds past_{0};
  steady_time born_{};
  std::shared_ptr<test::virtual_clock> life_;
};

/// What may go wrong in one run; everything is drawn from the seed.
struct fault_menu {
  bool node_crashes = true;  ///< power cut: un-fsynced bytes are lost or torn
  bool actor_crashes = true; ///< any actor is killed between two messages
  bool disk_faults = true;   ///< EIO, ENOSPC, short writes
  bool store_faults = true;  ///< disconnects, commits in doubt, outages
  bool repository_faults = true;
  bool process_faults = true; ///< failures, hangs, refused starts
};

/// One simulated machine: a disk, a database, repositories and processes that outlive the nodes
/// started on them, real actors in between, one seed for every choice. The same seed gives the same
/// run. Single-threaded.
class world {
 public:
  world(std::uint64_t seed, config::configuration configuration, fault_menu menu);
  ~world();
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  /// Starts a node on what the disk holds.
  void boot();
  /// The power goes: the node vanishes between two messages.
  void crash();
  /// An ordered stop; returns whether the root ended in time.
  bool shut_down();

  /// Lets virtual time pass with faults drawn from the menu; invariants are checked all the way.
  void run(milliseconds time);
  /// Lets virtual time pass without new faults, and with the outages ended.
  void calm(milliseconds time);

  /// Broken invariants so far, each said once.
  const std::vector<std::string>& violations() const { return violations_; }
  /// Checks that hold only when nothing is under way: everything final, the rendering up to date.
  void check_settled();

  /// Grows with every choice and every store batch: equal for equal seeds.
  std::uint64_t trace() const { return trace_; }

  sim_database& database() { return *database_; }
  sim_disk& disk() { return *disk_; }
  sim_process_runner& processes() { return *processes_; }
  sim_repositories& repositories() { return *repositories_; }
  world_clock& clock() { return *clock_; }
  test::deterministic_system& system() { return *system_; }
  const root_actor& root() const { return root_; }
  int crashes() const { return crashes_; }
  int kills() const { return kills_; }
  std::string state_file() const;

 private:
  void advance(milliseconds by);
  void draw_faults();
  void kill_some_actor();
  void end_outages();
  void check();
  void check_rows();
  void violated(const std::string& what);
  void note(std::uint64_t value);

  std::uint64_t seed_;
  std::shared_ptr<config::configuration> configuration_;
  fault_menu menu_;
  seeded_entropy choices_;
  std::shared_ptr<world_clock> clock_;
  std::shared_ptr<sim_disk> disk_;
  std::shared_ptr<sim_database> database_;
  std::shared_ptr<sim_repositories> repositories_;
  std::shared_ptr<sim_process_runner> processes_;
  std::unique_ptr<test::deterministic_system> system_;
  root_actor root_;
  std::set<std::string> known_rows_;
  std::set<std::string> recorded_cycles_;
  std::vector<std::string> violations_;
  std::uint64_t trace_ = 0xcbf29ce484222325ULL;
  std::uint64_t steps_ = 0;
  int crashes_ = 0;
  int kills_ = 0;
};

} // namespace boyd::sim
