#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/config/load.hpp"
#include "boyd/config/tree.hpp"
#include "boyd/core/home_layout.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/pulse.hpp"
#include "boyd/core/restart_log.hpp"
#include "boyd/core/worker_roll.hpp"
#include "boyd/exec/running_outputs.hpp"
#include "boyd/graph/written_log.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/ports/ports.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace boyd {

/// How often a node looks after itself when nothing happens. The defaults are production's: an idle
/// node should hardly ever wake. A simulation lengthens them, so that a virtual day is cheap.
struct housekeeping_intervals {
  milliseconds probe = 1s;       ///< of a part that is not well: how soon it is seen to recover
  milliseconds idle_probe = 30s; ///< of a part that is well
  /// The fallback poll repairs a lost wake-up: another node's with a shared store, else only one
  /// that went down with an actor.
  milliseconds queue_poll = limits::queue_poll;
  milliseconds queue_poll_alone = 30s;
  /// Membership, and the rescue of rows whose lease ran out: alone, those that nobody knows of.
  milliseconds sweep = limits::rescue_sweep;
  milliseconds sweep_alone = 60s;
  milliseconds clock_check = limits::clock_check; ///< the longest wait between looks at the clock
  milliseconds dispatcher_tick = 1s;              ///< of a dispatcher with work in hand
  milliseconds rows_poll = 2s;                    ///< of a kernel for the rows of its running cycle
  milliseconds retry = 1s;                        ///< of what the store did not take
  milliseconds repair = 2s;                       ///< of a kernel for what it owes and nobody takes
  milliseconds retention = 10min;                 ///< between removals of finished rows
  /// Between pings of the tree; 0: never. A service has limits::heartbeat.
  milliseconds heartbeat{0};
};

/// What every actor of one node shares: the ports, the home and who we are. Immutable after wiring
/// but for what the ports do.
struct node_context {
  boyd::ports ports;
  std::string home;    ///< absolute
  std::string node_id; ///< kept in HOME/run/node_id, so that a restarted node knows its own rows
  std::string host;
  std::int64_t pid = 0;
  std::string version;
  utc_time started_at{};
  /// The node before this one ended by a fault of its own: what it ran goes on with care.
  bool after_crash = false;
  config::environment_lookup environment;
  /// Parses and validates the text of a configuration file again (POST /api/v1/reload), with the
  /// files that it names: for workers alone. Empty without a running node.
  std::function<result<std::shared_ptr<const config::configuration>>(const std::string& path,
                                                                     const std::string& text)>
      parse_configuration;
  /// The parser of text that the configuration is read with, for the front matter of skills. Empty
  /// in tests that have none.
  config::tree_parser parse_tree;
  /// Workers get a thread of their own; false in simulation, where they run inline.
  bool detached_workers = true;
  /// Kernels follow their schedules; false for one cycle in the foreground.
  bool scheduled = true;
  /// No cycles, no claiming: a command that answers without a node running.
  bool passive = false;
  /// Other nodes may take rows over: attempts stop when their lease runs out. False for SQLite,
  /// whose home is locked by this node.
  bool shared_store = false;
  housekeeping_intervals housekeeping;
  /// Where the root leaves its report at every heartbeat; null: nobody watches.
  std::shared_ptr<pulse> heartbeat;
  /// Restarts that are not in the store yet.
  std::shared_ptr<restart_log> restarts = std::make_shared<restart_log>();
  /// Set by the supervisor of dispatchers when what an earlier process of this node left running
  /// has been taken back: what is found running from then on is this one's.
  std::shared_ptr<std::atomic<bool>> own_rows_recovered = std::make_shared<std::atomic<bool>>();
  /// What programs of runs under way have written so far.
  std::shared_ptr<exec::running_outputs> outputs = std::make_shared<exec::running_outputs>();
  /// How far the log of facts is this node's own.
  std::shared_ptr<graph::written_log> written = std::make_shared<graph::written_log>();
  /// The keepers' workers that live.
  std::shared_ptr<worker_roll> workers = std::make_shared<worker_roll>();

  home_layout layout() const { return home_layout(home); }
  std::string kernel_home(const std::string& kernel_id) const { return layout().kernel(kernel_id); }
};

using node_context_ptr = std::shared_ptr<const node_context>;
using configuration_ptr = std::shared_ptr<const config::configuration>;

} // namespace boyd
