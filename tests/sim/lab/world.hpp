#pragma once

#include "boyd/faults/points.hpp"
#include "tests/sim/lab/chat_watch.hpp"
#include "tests/sim/lab/inspector.hpp"
#include "tests/sim/lab/machine.hpp"
#include "tests/sim/lab/models.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::sim {

/// What may go wrong (FAULTS.md). Everything about it is drawn from the seed.
enum class fault : std::uint8_t {
  power_cut,    ///< in the middle of things; un-fsynced bytes are lost or torn
  node_kill,    ///< kill -9 of the node; the machine lives
  actor_kill,   ///< between two messages
  disk_error,   ///< EIO, ENOSPC or a short write, once or a few times
  disk_sick,    ///< EIO on every change for a while
  disk_full,    ///< ENOSPC for a while
  disk_reads,   ///< EIO on reading a file or a directory, once or a few times
  disconnect,   ///< a machine's connections to the database break for a while
  in_doubt,     ///< they break in COMMIT, which took place or not
  store_outage, ///< the database is away for a while
  partition,    ///< one machine does not reach it for longer than a lease, the other does
  slow_store,   ///< transactions take seconds
  repository_away,
  clock_step,  ///< the time of day is set forth or back
  lost_wakeup, ///< a notification to another node does not arrive
  run_hangs,   ///< an agent never ends by itself, perhaps not by SIGTERM either
  run_fails,
  run_late,      ///< an agent succeeds after its time is over
  start_refused, ///< an agent cannot be started
  reload,        ///< another configuration takes effect
  restart,       ///< an operator stops the node in order and starts it again
  part_restart,  ///< an operator has one part of the tree stopped and started anew
  node_stopped,  ///< SIGSTOP, perhaps past its leases, then SIGCONT
  fault_point,   ///< one of the product's own is armed, with one of the actions it can
  model_trouble, ///< for a while all calls of chats fail, in one way
};

inline constexpr std::size_t fault_kinds = static_cast<std::size_t>(fault::model_trouble) + 1;

std::string_view name_of(fault f) noexcept;

using fault_menu = std::set<fault>;
fault_menu all_faults();

struct world_options {
  int machines = 1;
  bool shared_store = true;
  housekeeping_intervals housekeeping{};
  milliseconds slot = 30min;    ///< faults like to strike soon after a slot
  milliseconds between = 90min; ///< from one fault to the next, about
  std::size_t fewest_kinds = 0; ///< have an effect, whatever time it takes
  bool quick_agents = false;    ///< most runs take seconds instead of up to 90
};

/// Machines with one node each on one database, one seed for every choice: which actor is next,
/// what fails, when the power goes. The same seed gives the same run. Single-threaded.
class world {
 public:
  world(std::uint64_t seed, config::configuration configuration, fault_menu menu,
        world_options options = {});
  ~world();
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  /// Starts the nodes on what the disks hold.
  void boot();
  /// The first machine's power goes, now; for tests that boot it again themselves.
  void crash();
  /// An ordered stop of the first node; returns whether it ended in time.
  bool shut_down();

  /// Lets virtual time pass with faults drawn from the menu; invariants are checked all the way.
  void run(milliseconds time);
  /// Lets virtual time pass without new faults, and with the outages ended.
  void calm(milliseconds time);
  /// Ends all faults, waits until nothing is under way and checks what holds then.
  void settle();
  /// Ends all nodes, at once.
  void take_down();
  /// The second half of `settle`.
  void check_settled();

  const std::vector<std::string>& violations() const { return inspector_->violations(); }
  /// Entries of the memory that the nodes have acknowledged.
  std::size_t remembered() const { return inspector_->entries(); }
  /// Grows with every choice, transaction and step of time, and `note_remains`: equal for equal
  /// seeds.
  std::uint64_t trace() const { return trace_; }
  /// Mixes in what stands on the disks and in the database now.
  void note_remains();
  /// What happened of late, oldest first.
  const std::deque<std::string>& events() const { return events_; }

  sim_database& database() { return *database_; }
  machine& first() { return *machines_.front(); }
  sim_disk& disk() { return first().disk(); }
  sim_process_runner& processes() { return first().processes(); }
  sim_repositories& repositories() { return first().repositories(); }
  test::deterministic_system& system() { return first().system(); }
  int crashes() const { return crashes_; }
  int kills() const;
  std::uint64_t messages() const;
  /// How often a fault of this kind has had its effect: not that one was drawn.
  std::uint64_t struck(fault f) const { return struck_[static_cast<std::size_t>(f)]; }
  milliseconds elapsed() const { return first_clock().elapsed(); }
  /// What models did with the calls of chats.
  const std::array<std::uint64_t, model_acts>& model_answers() const { return models_.acts(); }
  std::uint64_t chat_calls() const { return chats_ ? chats_->calls() : 0; }

 private:
  struct timed {
    milliseconds at{0};
    std::function<void()> what;
  };

  /// A fault that was drawn, and has had its effect when `effects` grows.
  struct awaited {
    fault what;
    const machine* where = nullptr;
    std::function<std::uint64_t()> effects;
    std::uint64_t before = 0;
  };

  /// How a run will behave, and what kind of fault that is.
  struct odd_run {
    fault what;
    sim_program program;
  };

  const machine_clock& first_clock() const { return machines_.front()->clock(); }
  std::unique_ptr<machine> make_machine(std::size_t number);
  sim_program behave(const machine& m, const process_spec& spec);
  sim_program sense();
  sim_http_answer answer(machine& m, const http_request& request);

  void advance(milliseconds by);
  milliseconds next_moment(milliseconds end);
  void run_ready();
  void give_up(machine& m);
  void look_after(machine& m);
  void start(machine& m);
  void reboot(machine& m, bool power);
  void crashed(machine& m, bool power);
  void check_left_behind(const machine& m);
  void boot_in(machine& m, milliseconds delay);
  void at(milliseconds when, std::function<void()> what);
  void run_due();

  std::vector<timed> plan(milliseconds time);
  void strike(fault f);
  /// Kinds that have had no effect yet, until they have.
  void strike_what_is_left();
  std::vector<fault> without_effect() const;
  void await(fault f, machine& m);
  std::function<std::uint64_t()> effects_of(fault f, machine& m);
  void look_for_effects();
  /// From the world's beginning to the kernel's first slot.
  milliseconds first_slot() const;
  void strike_node(fault f, machine& m);
  void strike_disk(fault f, machine& m);
  void strike_store(fault f, machine& m);
  void strike_runs(fault f);
  void strike_models();
  void watch_points();
  void arm_point();
  void look_at_point();
  void disarm_point();
  void break_connections(machine& m, double before, double in_commit, milliseconds length);
  void trigger(machine& m);
  void remember(machine& m);
  void take_away(store_faults& from, milliseconds length);
  sim_program draw_odd_run(fault f);
  void reload();
  void stop_in_order(machine& m);
  void restart_part(machine& m);
  void step_clock(machine& m);
  bool busy() const;
  bool loses_words() const;
  void end_outages();

  std::uint64_t draw(std::uint64_t below) { return choices_.next() % below; }
  /// After the last trouble a node has this long to renew its leases; and rows whose claim was
  /// never heard of are found by a sweep.
  milliseconds recovery() const {
    const auto& h = options_.housekeeping;
    return 3min + (options_.shared_store ? h.sweep : h.sweep_alone);
  }

  milliseconds draw_ms(milliseconds from, milliseconds to);
  void note(std::uint64_t value) { trace_ = (trace_ ^ value) * 0x100000001b3ULL; }
  void tell(std::string what);

  faults::isolation faults_; ///< other worlds run on other threads
  fault_menu menu_;
  world_options options_;
  seeded_entropy choices_;
  std::array<configuration_ptr, 2> configurations_; ///< the one that holds, and the other
  std::shared_ptr<test::virtual_clock> clock_;
  std::shared_ptr<sim_database> database_;
  std::vector<std::unique_ptr<machine>> machines_;
  std::uint64_t remembered_ = 0; ///< entries that somebody told of
  std::unique_ptr<inspector> inspector_;
  models models_;
  std::unique_ptr<chat_watch> chats_; ///< where an agent is a chat
  std::vector<timed> agenda_;         ///< not sorted: short
  std::set<const machine*> just_booted_;
  std::deque<odd_run> next_runs_;
  /// Orders that were carried out; shared with those who wait for the answer.
  std::shared_ptr<std::uint64_t> part_restarts_ = std::make_shared<std::uint64_t>(0);
  std::vector<awaited> awaited_; ///< one of a kind for each machine
  std::array<std::uint64_t, fault_kinds> struck_{};
  std::deque<std::string> events_;
  milliseconds faults_until_{0};   ///< faults strike up to here
  std::uint64_t troubles_ = 0;     ///< faults that have struck
  milliseconds troubled_until_{0}; ///< something may have kept a node from renewing its leases
  std::uint64_t trace_ = 0xcbf29ce484222325ULL;
  int crashes_ = 0;
  std::set<std::string, std::less<>> passed_; ///< points
  std::uint64_t point_number_ = 0;            ///< of the latest arming
  std::string point_;                         ///< that is armed; empty: none
  std::uint64_t point_struck_before_ = 0;
  milliseconds last_strike_{0}; ///< of a fault point; 0: none has
  std::uint64_t point_strikes_ = 0;
  bool given_up_ = false; ///< a node stopped time: nothing goes on
};

} // namespace boyd::sim
