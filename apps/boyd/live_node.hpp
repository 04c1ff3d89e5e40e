#pragma once

#include "adapters/posix/home_lock.hpp"
#include "boyd/core/pulse.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/core/worker_roll.hpp"
#include "boyd/ports/entropy.hpp"
#include "home.hpp"
#include "messages/api.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boyd::app {

/// What kind of node a command needs.
enum class node_mode : std::uint8_t {
  answering, ///< questions only: no cycles, no processes
  trying,    ///< the same, but what the question needs may be started: servers of tools, commands
  one_cycle, ///< a cycle in the foreground: runs what it is told, follows no schedule
  service,   ///< `boyd node`
};

/// Arms what BOYD_FAULTS asks for: a trial, set by whoever starts the process. Called once, before
/// a node that does more than answer takes its home. Error: `invalid_configuration`.
result<void> arm_faults_of_environment(entropy& random);

/// The actors of one node in this process, with the real ports: the only place that makes an actor
/// system. Not copyable. Threads: any may call `ask`, `watch`, `reload`; the rest is the owner's.
class live_node {
 public:
  using answer_function = std::function<void(result<api_response>)>;
  using line_function = std::function<bool(const std::string&)>;
  using reload_function = std::function<void(const config::configuration&)>;

  /// Removes what a killed node left, starts the process host (unless answering), then the actors.
  /// Call it before other threads exist. The node holds `lock` until its end. `on_reload` is called
  /// on an actor's thread with every configuration that a reload brings. `heartbeat`:
  /// between pings of the tree; 0: never.
  static result<std::unique_ptr<live_node>>
  start(const place& where, std::shared_ptr<const config::configuration> configuration,
        adapters::home_lock lock, node_mode mode, reload_function on_reload = {},
        milliseconds heartbeat = milliseconds{0});

  /// Kills what is left, without waiting; prefer shut_down, ended and release before.
  ~live_node();
  live_node(const live_node&) = delete;
  live_node& operator=(const live_node&) = delete;

  /// One request of the control API; `done` is called once, on an actor's thread.
  void ask(api_request request, answer_function done);

  /// Every event as one JSON line, on an actor's thread, until it returns false.
  void watch(line_function on_line);

  void start_claiming();
  /// `done` is called once, on an actor's thread, when every part works by the configuration, or
  /// some have not taken it in time, which is logged.
  void reload(std::shared_ptr<const config::configuration> configuration,
              std::function<void()> done);

  /// Ordered shutdown; the end comes through `ended_descriptor`.
  void shut_down(milliseconds grace);
  /// A second signal: attempts are cancelled now.
  void hurry();

  /// Another home stands in the place of its own.
  bool is_home_replaced() const;

  /// An eventfd that becomes readable when the root has ended.
  int ended_descriptor() const;
  /// Nothing: it lives. Empty: ended in order. Else why it gave up.
  std::optional<std::string> ended() const;
  /// Waits for the end; false when `limit` passed first.
  bool wait_for_end(milliseconds limit);

  /// The parts that still live, for the message of the hard deadline; waits at most a moment.
  std::string survivors();

  /// After the end: frees the actor system, which may hang (FAULTS.md, fact 3). False: it did, and
  /// the process must leave by _exit.
  /// After `opening_limit` it waits no longer when only the store's opening is left.
  bool release(milliseconds limit, milliseconds opening_limit);
  bool release(milliseconds limit) { return release(limit, limit); }

  /// Workers that live, by their parts; also after `release`. Threads: any.
  std::vector<std::string> living_workers() const { return workers_->names(); }

  /// Whether the store's worker opens the database at this moment and no other worker lives; as
  /// living_workers.
  bool is_only_opening_store() const;

  /// Reads the configuration file again; the same as POST /api/v1/reload does.
  result<std::shared_ptr<const config::configuration>> load_again() const;

  /// How the tree was at the root's latest heartbeat. Threads: any.
  pulse_report pulse() const;

  utc_time started_at() const;
  const std::string& node_id() const;
  /// Of a node that only answers: why no node would start here, because the home is a copy.
  const std::optional<error>& copy_problem() const;

 private:
  struct parts;
  explicit live_node(std::unique_ptr<parts> p);
  std::unique_ptr<parts> parts_;
  std::shared_ptr<const worker_roll> workers_; ///< outlives the parts
};

/// False once an actor system could not be freed in time: the process must leave by _exit, because
/// its threads still use what static destructors would free.
bool all_released();

} // namespace boyd::app
