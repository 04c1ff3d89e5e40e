#pragma once

#include "actors/node/root.hpp"
#include "actors/support/node_context.hpp"
#include "boyd/config/configuration.hpp"
#include "support/actor_system.hpp"
#include "support/sim/disk.hpp"
#include "support/sim/http.hpp"
#include "support/sim/processes.hpp"
#include "support/sim/repository.hpp"
#include "support/sim/seeded_entropy.hpp"
#include "support/sim/store.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace boyd::sim {

/// The clock of a machine: the world's, but for what somebody has set its time of day to.
class machine_clock final : public clock_port {
 public:
  explicit machine_clock(std::shared_ptr<test::virtual_clock> world) : world_(std::move(world)) {}

  utc_time now() const override { return world_->now() + jumped_; }
  steady_time steady() const override { return world_->steady(); }
  void jump(milliseconds by) { jumped_ += by; }

  /// Since the beginning of the world.
  milliseconds elapsed() const { return world_->steady() - steady_time{milliseconds{1'000'000}}; }

 private:
  std::shared_ptr<test::virtual_clock> world_;
  milliseconds jumped_{0};
};

/// What is counted until a machine ends in the middle of things.
enum class cut_unit : std::uint8_t {
  changes,  ///< of disk, repository and database
  syncs,    ///< of files: where bytes are torn
  messages, ///< between actors
};

/// What a machine needs of its world.
struct machine_parts {
  std::string name;
  std::shared_ptr<test::virtual_clock> clock;
  std::shared_ptr<sim_database> database;
  seeded_entropy* choices = nullptr;
  /// Mixes a number into the world's trace.
  std::function<void(std::uint64_t)> note;
  /// How the next run of an agent behaves.
  std::function<sim_program(const process_spec&)> behave;
  /// How the next call of a model is answered; empty: the node calls none.
  sim_http_client::endpoint answer;
  /// A commit has been made.
  std::function<void()> committed;
  /// A message has been handled that changed a file or made a commit.
  std::function<void()> changed;
  /// This machine has put something into the shared queue; see `wake`.
  wake_function tell_others;
  bool shared_store = true;
  housekeeping_intervals housekeeping;
};

/// A disk, repositories and processes that outlive the nodes started on them, and at most one node:
/// real actors on simulated ports. Single-threaded.
class machine {
 public:
  explicit machine(machine_parts parts);
  ~machine();
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  /// Starts a node on what the disk holds.
  void boot(configuration_ptr configuration);
  /// Between two messages: lets the last one's changes be judged.
  void tell_if_changed() {
    if (changed_) [[unlikely]] {
      changed_ = false;
      parts_.changed();
    }
  }
  /// The node vanishes between two messages: with the machine (what was not synced is lost or
  /// torn), or alone.
  void power_cut();
  void kill_node();
  bool up() const { return system_ != nullptr; }
  /// Nodes so far. (Their roots have the same address.)
  std::uint64_t lives() const { return lives_; }

  /// SIGSTOP and SIGCONT of the node; its programs and the clock go on.
  void stop() {
    stopped_ = true;
    ++stops_;
  }
  void go_on() { stopped_ = false; }
  bool stopped() const { return stopped_; }
  std::uint64_t stops() const { return stops_; }
  bool runs() const { return up() && !stopped_; }

  /// The node ends in the middle: before the n-th unit from now on, nothing that it does lasts any
  /// more, and it is `gone`. `power`: by a power cut, else killed.
  void end_at(cut_unit counted, std::uint64_t n, bool power);
  bool gone() const { return gone_; }
  bool gone_by_power() const { return power_; }
  /// How often it has gone so: what `end_at` has come to.
  std::uint64_t gone_so_far(bool power) const { return ends_[power ? 1 : 0]; }
  /// Whether the node gave itself up, or ended in order.
  bool ended() const;

  /// All calls of the disk that change something fail so until `mend`; nothing: they do not.
  void sicken(std::optional<disk_fault> how) { sickness_ = how; }
  /// So, or the next call of some kind does.
  bool disk_fails() const { return sickness_.has_value() || disk_->fails(); }
  /// How many calls have failed so.
  std::uint64_t sick_calls(disk_fault how) const {
    return sick_calls_[static_cast<std::size_t>(how)];
  }
  /// What this machine's connections to the database meet.
  store_faults& connection() { return connection_; }
  /// The next batches of the store take so long each.
  void slow_store(std::size_t batches, milliseconds each);
  /// How many did. Meanwhile no machine does anything: they share a thread, and time passes.
  std::uint64_t slowed() const { return slowed_; }
  /// The next `n` wake-ups from other nodes are lost.
  void lose_wakeups(std::size_t n) { wakeups_to_lose_ += n; }
  std::uint64_t wakeups_lost() const { return wakeups_lost_; }
  /// Another node has put something into the queue: this, or, when it is empty, something else.
  void wake(const std::vector<store::due_agents::row>& work);
  /// Ends all that lasts of faults, but for stops and jumps of the clock.
  void mend();
  /// What was to happen after some messages or changes does not.
  void disarm() {
    counted_.reset();
    kill_in_ = 0;
  }

  /// Messages that the node has handled since its clock showed another moment. A node's work of one
  /// moment ends by itself; an actor that answers itself does not.
  std::uint64_t handled_at_once() const { return at_once_; }
  /// Actors that were there when nobody was left who could end them.
  std::uint64_t left_behind() const { return left_behind_; }
  bool livelocked() const { return at_once_ >= most_at_once; }
  /// Who has been busy with which messages of late: the most frequent ones, for the report.
  std::string busy_with() const;

  /// After `n` messages an actor that has mail is killed, whichever but the root.
  void kill_actor_after(std::uint64_t n) { kill_in_ = n + 1; }
  int kills() const { return kills_; }

  sim_disk& disk() { return *disk_; }
  sim_repositories& repositories() { return *repositories_; }
  sim_process_runner& processes() { return *processes_; }
  const sim_process_runner& processes() const { return *processes_; }
  sim_http_client& models() { return *models_; }
  machine_clock& clock() { return *clock_; }
  std::shared_ptr<clock_port> shared_clock() const { return clock_; }
  test::deterministic_system& system() { return *system_; }
  const root_actor& root() const { return root_; }
  const std::string& name() const { return parts_.name; }
  /// A node never needs this many messages for one moment: the busiest one of 2,000 seeds has
  /// 240.
  static constexpr std::uint64_t most_at_once = 20'000;

  /// Messages handled in all lives.
  std::uint64_t handled() const { return handled_ + (system_ ? system_->handled() : 0); }

  /// What runs there: an agent's program, a check of what it did, a look at the world before it.
  static constexpr const char* agent_program = "agent";
  static constexpr const char* check_program = "check";
  static constexpr const char* sense_program = "sense";

  static constexpr const char* home = "/home/boyd";
  static constexpr const char* kernel_home = "/home/boyd/kernel/default";
  static constexpr const char* state_path = "/home/boyd/kernel/default/STATE.md";
  static constexpr const char* graph_path = "/home/boyd/knowledge/graph.jsonl";

 private:
  friend class gated_store;
  class wakeup;

  void end_life();
  std::optional<steady_time> next_outside() const;
  bool kill_some_actor();
  void count_at_once(std::size_t next);
  void install_plans();
  std::shared_ptr<node_context> make_context();
  bool counts(cut_unit what);

  machine_parts parts_;
  std::shared_ptr<machine_clock> clock_;
  std::shared_ptr<sim_disk> disk_;
  std::shared_ptr<sim_repositories> repositories_;
  std::shared_ptr<sim_process_runner> processes_;
  std::shared_ptr<sim_http_client> models_;
  std::unique_ptr<test::deterministic_system> system_;
  root_actor root_;
  wake_function waker_;
  const wakeup* woken_by_ = nullptr; ///< whose `waker_` is
  store_faults connection_;
  std::optional<disk_fault> sickness_;
  std::optional<cut_unit> counted_;
  std::uint64_t left_ = 0; ///< units until the end
  std::size_t slow_batches_ = 0;
  milliseconds slow_by_{0};
  std::size_t wakeups_to_lose_ = 0;
  std::uint64_t wakeups_lost_ = 0;
  std::array<std::uint64_t, sim::disk_fault_kinds> sick_calls_{};
  std::array<std::uint64_t, 2> ends_{}; ///< killed, by power cuts
  std::uint64_t handled_ = 0;
  std::uint64_t stops_ = 0;
  std::uint64_t slowed_ = 0;
  std::uint64_t lives_ = 0;
  std::uint64_t left_behind_ = 0;
  std::uint64_t kill_in_ = 0; ///< messages until an actor is killed; 0: none will be
  int kills_ = 0;
  steady_time moment_{};                      ///< that `at_once_` is about
  std::uint64_t at_once_ = 0;                 ///< messages of this moment
  std::map<std::string, std::uint64_t> busy_; ///< the last ones before the limit, as text
  bool power_ = false;
  bool gone_ = false;
  bool stopped_ = false;
  bool changed_ = false; ///< a file or the repository, by the message that is being handled
};

} // namespace boyd::sim
