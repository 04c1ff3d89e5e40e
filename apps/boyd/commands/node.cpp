#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../live_node.hpp"
#include "../node_guard.hpp"
#include "../serving.hpp"
#include "../signals.hpp"
#include "../terminal.hpp"
#include "adapters/heap/heap.hpp"
#include "adapters/posix/resident_code.hpp"
#include "adapters/unique_fd.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/time_zones.hpp"
#include "boyd_version.hpp"
#include "commands.hpp"

#include <spdlog/spdlog.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <poll.h>
#include <ratio>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace boyd::app {

namespace {

/// After the grace: cancelling attempts, final records, stopping in order; then _exit.
constexpr milliseconds hard_margin = 40s;
constexpr milliseconds release_limit = 2s;
/// After this time the start is over, with what follows it.
constexpr milliseconds settling = 2s;
/// From then on it is looked at this often whether the node idles, which takes no more processor.
constexpr milliseconds idle_look = 60s;
constexpr milliseconds idle_processor = 200ms;
constexpr std::uint64_t worth_a_release = std::uint64_t{4} << 20;
constexpr milliseconds least_trial = 50ms;
/// A stop during a migration, or while a server does not answer, waits no longer than this for it.
constexpr milliseconds opening_limit = 3s;
/// It is looked at this often whether another home stands in the place of this one.
constexpr milliseconds home_look = 1s;

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

/// Of this process, in bytes.
std::uint64_t resident_memory() {
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident; // proc(5): in pages
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// A node runs for months without what its start, or its latest work, took: it is given back when
/// the start is over, and when the node idles and has taken more since.
class memory_care {
 public:
  std::chrono::steady_clock::time_point next_look() const { return next_look_; }

  void look() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look_)
      return;
    next_look_ = now + idle_look;
    const auto used = std::clock();
    const auto since = used - std::exchange(at_last_look_, used);
    const bool idles = since < idle_processor.count() * CLOCKS_PER_SEC / std::milli::den;
    if (after_release_ != 0 && (!idles || resident_memory() < after_release_ + worth_a_release))
      return;
    adapters::release_heap();
    adapters::release_resident_code();
    after_release_ = resident_memory();
  }

 private:
  std::chrono::steady_clock::time_point next_look_ = std::chrono::steady_clock::now() + settling;
  std::clock_t at_last_look_ = 0; ///< processor time of the process
  std::uint64_t after_release_ = 0;
};

/// Counts what actors' threads are through with, for the process's own thread.
class bell {
 public:
  bell() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  /// Threads: any.
  void ring() { static_cast<void>(::eventfd_write(event_.get(), 1)); }
  /// How often it rang since the last call.
  std::uint64_t take() {
    std::uint64_t rung = 0;
    return ::eventfd_read(event_.get(), &rung) == 0 ? rung : 0;
  }
  /// Readable when it has rung.
  int descriptor() const { return event_.get(); }

 private:
  adapters::unique_fd event_;
};

/// What `boyd stop` asked for, for the process's own thread.
struct stop_wish {
  bell asked;
  std::atomic<bool> now{false}; ///< running attempts are cancelled at once
};

/// Follows signals until the root has ended; returns why it gave up, empty after an ordered end.
class service_loop {
 public:
  service_loop(live_node& node, signal_watch& signals, node_guard& guard,
               const process_settings& settings, stop_wish& wish, milliseconds margin)
      : node_(node), signals_(signals), guard_(guard), settings_(settings), wish_(wish),
        margin_(margin) {}

  std::string run() {
    while (!node_.ended()) {
      struct ::pollfd waits[] {
        {signals_.descriptor(), POLLIN, 0}, {node_.ended_descriptor(), POLLIN, 0},
            {reloaded_->descriptor(), POLLIN, 0}, {
          wish_.asked.descriptor(), POLLIN, 0
        }
      };
      ::poll(waits, std::size(waits), wait_ms());
      memory_.look();
      if (node_.is_home_replaced())
        leave_home();
      for (int s = signals_.take(); s != 0; s = signals_.take())
        on_signal(s);
      on_stop_wish();
      on_reloaded();
      if (!guard_.look().empty() && !stopping_)
        stop_within(margin_); // it drains by itself
      if (stopping_ && !node_.ended() && std::chrono::steady_clock::now() >= deadline_)
        give_up();
    }
    return *node_.ended();
  }

  /// What the end may still take when all actors have ended: nothing of the grace.
  milliseconds time_left() const {
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - std::chrono::steady_clock::now());
    return std::max(std::min(left, margin_), release_limit);
  }

 private:
  int wait_ms() const {
    auto until = stopping_ ? std::min(deadline_, guard_.next_look()) : guard_.next_look();
    until = std::min(until, memory_.next_look());
    until = std::min(until, std::chrono::steady_clock::now() + home_look);
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    return static_cast<int>(std::max(left, milliseconds{0}).count());
  }

  void on_signal(int signal) {
    if (signal == SIGHUP)
      return stopping_ ? void() : reload();
    if (stopping_)
      return hurry("second signal");
    spdlog::info("node: signal {}: stopping", signal);
    begin_stop();
  }

  void on_stop_wish() {
    if (wish_.asked.take() == 0)
      return;
    if (!stopping_)
      begin_stop();
    if (wish_.now)
      hurry("boyd stop --now");
  }

  void begin_stop() {
    const milliseconds grace = settings_.drain_grace;
    stop_within(grace + margin_);
    node_.shut_down(grace);
  }

  /// A bad file keeps what was.
  void reload() {
    guard_.say_reloading();
    ++reloads_;
    auto loaded = node_.load_again();
    if (loaded)
      return node_.reload(std::move(*loaded), [bell = reloaded_] { bell->ring(); });
    spdlog::error("node: configuration not reloaded; the previous one stays active: {}",
                  to_string(loaded.error()));
    reloaded_->ring();
  }

  void on_reloaded() {
    const auto over = reloaded_->take();
    reloads_ -= over;
    if (over > 0 && reloads_ == 0 && !stopping_)
      guard_.say_ready();
  }

  void stop_within(milliseconds limit) {
    stopping_ = true;
    deadline_ = std::chrono::steady_clock::now() + limit;
    guard_.say_stopping(limit);
  }

  /// A storm of signals is one more.
  void hurry(const char* why) {
    if (std::exchange(hurries_, true))
      return;
    spdlog::warn("node: {}: cancelling running attempts now", why);
    deadline_ = std::min(deadline_, std::chrono::steady_clock::now() + margin_);
    node_.hurry();
  }

  /// At once: an ordered stop would write into what stands there now, which may be another node's.
  [[noreturn]] void leave_home() {
    spdlog::critical(
        "node: the home was replaced by another one; exiting at once, to write nothing into it");
    spdlog::default_logger()->flush();
    ::_exit(exit_code::gave_up);
  }

  [[noreturn]] void give_up() {
    spdlog::critical("node: these parts did not stop in time: {}", node_.survivors());
    spdlog::default_logger()->flush();
    ::_exit(exit_code::overdue);
  }

  live_node& node_;
  signal_watch& signals_;
  node_guard& guard_;
  const process_settings& settings_;
  stop_wish& wish_;
  milliseconds margin_;
  bool stopping_ = false;
  bool hurries_ = false;
  std::uint64_t reloads_ = 0; ///< that are not over yet
  /// Shared: a reload may be over behind this.
  std::shared_ptr<bell> reloaded_ = std::make_shared<bell>();
  std::chrono::steady_clock::time_point deadline_{};
  memory_care memory_;
};

/// A time that an environment variable shortens for a trial of what happens when it is over.
result<milliseconds> trial_of(const char* variable, milliseconds usual) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0')
    return usual;
  auto time = parse_duration(text);
  if (!time || *time < least_trial || *time > usual)
    return fail(errc::invalid_argument,
                fmt::format("not a duration from {}ms to {}ms: {}", least_trial.count(),
                            usual.count(), text),
                variable, "unset it");
  return time;
}

/// What a node is given by whoever starts it.
struct service_surroundings {
  adapters::service_manager manager;
  milliseconds heartbeat{0};
  milliseconds stop_margin{0};
  bool verbose = false;
};

result<service_surroundings> surroundings_of(const arguments& args) {
  auto manager = adapters::service_manager::from_environment();
  if (!manager)
    return fail(std::move(manager.error()));
  const auto heartbeat = trial_of("BOYD_HEARTBEAT", limits::heartbeat);
  if (!heartbeat)
    return fail(heartbeat.error());
  const auto margin = trial_of("BOYD_STOP_MARGIN", hard_margin);
  if (!margin)
    return fail(margin.error());
  return service_surroundings{std::move(*manager), *heartbeat, *margin, args.verbose};
}

/// The actors have ended; what they have set to work may hang. False, and told, when it does.
bool end_whole(live_node& node, milliseconds limit) {
  if (node.release(limit, opening_limit))
    return true;
  if (node.is_only_opening_store()) {
    spdlog::warn("node: stopped while opening the database; the next start repeats it");
    return true;
  }
  const auto names = node.living_workers();
  std::string hang;
  for (const auto& name : names)
    hang += (hang.empty() ? "" : ", ") + name;
  spdlog::critical("node: exiting with unfinished work: {}",
                   hang.empty() ? "a worktree, a program or a model call"
                                : "the workers of " + hang);
  return false;
}

int serve_until_told(const place& where, std::shared_ptr<const config::configuration> settings,
                     adapters::home_lock lock, signal_watch& signals,
                     const service_surroundings& around) {
  // Shared: an actor may still call back while the node ends.
  const auto process = std::make_shared<process_settings>();
  process->verbose = around.verbose;
  process->take(*settings);
  auto node = live_node::start(
      where, std::move(settings), std::move(lock), node_mode::service,
      [process](const config::configuration& c) { process->take(c); }, around.heartbeat);
  if (!node)
    return report(node.error(), false);
  stop_wish wish; // outlives the server's thread, which serve_until_told stops before its end
  auto server = serve(**node, where, [&wish](bool now) {
    wish.now = wish.now || now;
    wish.asked.ring();
  });
  if (!server) {
    print_error(server.error());
    (*node)->shut_down(milliseconds{0});
    (*node)->wait_for_end(hard_margin);
    (*node)->release(release_limit);
    return exit_code::of(server.error().code);
  }
  (*node)->start_claiming();
  spdlog::info("ready: node {} version {} home {} socket {}", (*node)->node_id(), program_version,
               where.home, where.layout().control_socket());
  node_guard guard(**node, around.manager, around.heartbeat);
  guard.say_ready();
  service_loop loop(**node, signals, guard, *process, wish, around.stop_margin);
  const auto why = loop.run();
  (*server)->stop();
  const bool whole = end_whole(**node, loop.time_left());
  if (!why.empty()) {
    spdlog::critical("node: giving up: {}", why);
    return exit_code::gave_up;
  }
  if (!whole)
    return exit_code::overdue;
  spdlog::info("node: ended");
  return exit_code::ok;
}

} // namespace

int run_node(const arguments& args) {
  if (args.background)
    return run_node_in_background(args);
  signal_watch signals;
  auto around = surroundings_of(args);
  if (!around)
    return report(around.error(), args.json);
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
  if (auto armed = arm_faults_of_environment(*p.random); !armed)
    return report(armed.error(), args.json);
  auto lock = lock_home(*where, *id, signals);
  if (!lock)
    return report(lock.error(), args.json);
  return serve_until_told(*where, std::move(*settings), std::move(*lock), signals, *around);
}

} // namespace boyd::app
