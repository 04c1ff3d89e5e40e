#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../live_node.hpp"
#include "../serving.hpp"
#include "../signals.hpp"
#include "../terminal.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/time_zones.hpp"
#include "boyd_version.hpp"
#include "commands.hpp"

#include <spdlog/spdlog.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <poll.h>
#include <unistd.h>

namespace boyd::app {

namespace {

/// After the grace: cancelling attempts, final records, stopping in order; then _exit.
constexpr milliseconds hard_margin = 40s;
constexpr milliseconds release_limit = 2s;

/// Settings of the process itself, which follow a reload.
struct process_settings {
  bool verbose = false; ///< --verbose stands above node.log_level
  std::atomic<milliseconds> drain_grace{};

  void take(const config::configuration& c) {
    drain_grace = c.node_settings.drain_grace;
    if (!verbose)
      spdlog::set_level(spdlog::level::from_str(c.node_settings.log_level));
  }
};

/// What SIGHUP does: a bad file keeps what was.
void reload(live_node& node) {
  auto loaded = node.load_again();
  if (!loaded) {
    spdlog::error("node: the configuration was not reloaded, the old one stays: {}",
                  to_string(loaded.error()));
    return;
  }
  node.reload(std::move(*loaded));
}

/// Follows signals until the root has ended; returns why it gave up, empty after an ordered end.
class service_loop {
 public:
  service_loop(live_node& node, signal_watch& signals, const process_settings& settings)
      : node_(node), signals_(signals), settings_(settings) {}

  std::string run() {
    while (!node_.ended()) {
      struct ::pollfd waits[] {
        {signals_.descriptor(), POLLIN, 0}, { node_.ended_descriptor(), POLLIN, 0 }
      };
      ::poll(waits, std::size(waits), wait_ms());
      for (int s = signals_.take(); s != 0; s = signals_.take())
        on_signal(s);
      if (stopping_ && !node_.ended() && std::chrono::steady_clock::now() >= deadline_)
        give_up();
    }
    return *node_.ended();
  }

 private:
  int wait_ms() const {
    if (!stopping_)
      return -1;
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::max(left, milliseconds{0}).count());
  }

  void on_signal(int signal) {
    if (signal == SIGHUP)
      return stopping_ ? void() : reload(node_);
    if (stopping_) {
      spdlog::warn("node: second signal: running attempts are cancelled now");
      return node_.hurry();
    }
    spdlog::info("node: signal {}: shutting down", signal);
    stopping_ = true;
    const milliseconds grace = settings_.drain_grace;
    deadline_ = std::chrono::steady_clock::now() + grace + hard_margin;
    node_.shut_down(grace);
  }

  [[noreturn]] void give_up() {
    spdlog::critical("node: these parts did not stop in time: {}", node_.survivors());
    spdlog::default_logger()->flush();
    ::_exit(exit_code::failure);
  }

  live_node& node_;
  signal_watch& signals_;
  const process_settings& settings_;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point deadline_{};
};

int serve_until_told(const place& where, std::shared_ptr<const config::configuration> settings,
                     adapters::home_lock lock, signal_watch& signals, bool verbose) {
  // Shared: an actor may still call back while the node ends.
  const auto process = std::make_shared<process_settings>();
  process->verbose = verbose;
  process->take(*settings);
  auto node = live_node::start(where, std::move(settings), std::move(lock), node_mode::service,
                               [process](const config::configuration& c) { process->take(c); });
  if (!node)
    return report(node.error(), false);
  auto server = serve(**node, where);
  if (!server) {
    print_error(server.error());
    (*node)->shut_down(milliseconds{0});
    (*node)->wait_for_end(hard_margin);
    (*node)->release(release_limit);
    return exit_code::of(server.error().code);
  }
  (*node)->start_claiming();
  spdlog::info("ready: node {} version {} home {} socket {}", (*node)->node_id(), program_version,
               where.home, where.socket_path());
  const auto why = service_loop(**node, signals, *process).run();
  (*server)->stop();
  (*node)->release(release_limit);
  if (why.empty()) {
    spdlog::info("node: ended");
    return exit_code::ok;
  }
  spdlog::critical("node: gave up: {}", why);
  return exit_code::failure;
}

} // namespace

int run_node(const arguments& args) {
  signal_watch signals;
  auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  if (auto there = require_home(*where); !there)
    return report(there.error(), args.json);
  const auto p = local_ports();
  auto settings = load_configuration(where->config_path, *p.files, *p.zones);
  if (!settings)
    return report(settings.error(), args.json);
  auto id = node_id_of(*where, *p.files, *p.clock, *p.random);
  if (!id)
    return report(id.error(), args.json);
  auto lock = lock_home(*where, *id, signals);
  if (!lock)
    return report(lock.error(), args.json);
  return serve_until_told(*where, std::move(*settings), std::move(*lock), signals, args.verbose);
}

} // namespace boyd::app
