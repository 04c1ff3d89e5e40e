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

#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace boyd::app {

namespace {

/// After the grace: cancelling attempts, final records, stopping in order; then _exit.
constexpr milliseconds hard_margin = 40s;
constexpr milliseconds release_limit = 2s;

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
  service_loop(live_node& node, signal_watch& signals, milliseconds grace)
      : node_(node), signals_(signals), grace_(grace) {}

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
    deadline_ = std::chrono::steady_clock::now() + grace_ + hard_margin;
    node_.shut_down(grace_);
  }

  [[noreturn]] void give_up() {
    spdlog::critical("node: these parts did not stop in time: {}", node_.survivors());
    spdlog::default_logger()->flush();
    ::_exit(exit_code::failure);
  }

  live_node& node_;
  signal_watch& signals_;
  milliseconds grace_;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point deadline_{};
};

int serve_until_told(const place& where, std::shared_ptr<const config::configuration> settings,
                     adapters::home_lock lock, signal_watch& signals) {
  const auto grace = settings->node_settings.drain_grace;
  auto node = live_node::start(where, std::move(settings), std::move(lock), node_mode::service);
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
  const auto why = service_loop(**node, signals, grace).run();
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
  if (!args.verbose)
    spdlog::set_level(spdlog::level::from_str((*settings)->node_settings.log_level));
  return serve_until_told(*where, std::move(*settings), std::move(*lock), signals);
}

} // namespace boyd::app
