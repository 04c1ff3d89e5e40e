#include "client.hpp"

#include "adapters/control/control_client.hpp"
#include "adapters/posix/home_lock.hpp"
#include "boyd/core/signal_stack.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/time_zones.hpp"
#include "json_view.hpp"
#include "live_line.hpp"
#include "serving.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace boyd::app {

namespace {

/// Another command that holds the home is waited for this long.
constexpr milliseconds home_patience = 5s;
constexpr milliseconds home_look_again = 50ms;
constexpr milliseconds probe_limit = 2s;
/// For the beginning of the stream of events.
constexpr milliseconds stream_limit = 2s;
/// After the end of a stream, until the next is tried; longer and longer while there is none.
constexpr milliseconds stream_pause = 200ms;
constexpr milliseconds longest_stream_pause = 2s;
/// How often a wait looks whether a signal has come.
constexpr milliseconds signal_look = 100ms;
/// What an attempt that runs gets when a foreground cycle is interrupted.
constexpr milliseconds interrupt_grace = 0ms;
/// What it gets when the cycle is over: attempts have limits of their own, below it.
constexpr milliseconds finish_grace = std::chrono::hours{24 * 8};
/// How often that wait looks whether attempts run, and how long it waits for the answer.
constexpr milliseconds attempt_look = 500ms;
constexpr milliseconds attempt_answer = 5s;
constexpr milliseconds end_limit = 40s;
constexpr milliseconds release_limit = 2s;

/// A node that stops between the look and the question is asked for again.
constexpr int question_tries = 3;

bool is_gone(const error& e) {
  return e.code == errc::not_found || e.code == errc::io_error;
}

error interrupted_error() {
  return {errc::cancelled, "interrupted", {}, {}};
}

adapters::http_request to_http(api_request r) {
  return {std::move(r.method), std::move(r.path), std::move(r.query), std::move(r.body)};
}

/// Through the control socket.
class online_client final : public client {
 public:
  online_client(std::string socket, signal_watch& signals)
      : socket_(std::move(socket)), signals_(signals) {}

  ~online_client() override { stop(); }

  result<api_response> call(api_request request, milliseconds limit) override {
    auto answer = adapters::control_call(socket_, to_http(std::move(request)), limit,
                                         [this] { return !signals_.interrupted(); });
    if (!answer)
      return fail(std::move(answer.error()));
    api_response out;
    out.status = answer->status;
    out.content_type = std::move(answer->content_type);
    out.body = std::move(answer->body);
    return out;
  }

  void watch(std::function<void(std::string_view)> on_line, std::function<void()> on_gap) override {
    stop();
    stop_ = false;
    const auto open = std::make_shared<std::promise<void>>();
    auto opened = open->get_future();
    watcher_ = std::thread([this, open, on_line = std::move(on_line), on_gap = std::move(on_gap)] {
      give_signal_stack();
      bool told = false;
      const auto on_open = [&] {
        if (std::exchange(told, true))
          on_gap();
        else
          open->set_value();
      };
      auto pause = stream_pause;
      while (!stop_) {
        pause = stream(on_line, on_open) ? stream_pause : std::min(2 * pause, longest_stream_pause);
        if (!told)
          on_open(); // nobody streams: it is not waited for any longer
        std::unique_lock lock(mutex_);
        stopped_.wait_for(lock, pause, [this] { return stop_.load(); });
      }
    });
    for (milliseconds waited{0}; waited < stream_limit && !signals_.interrupted();
         waited += signal_look)
      if (opened.wait_for(signal_look) == std::future_status::ready)
        break;
  }

  bool pause(milliseconds moment) override { return signals_.pause(moment); }
  bool online() const override { return true; }
  std::optional<utc_time> home_since() const override { return std::nullopt; }
  bool close() override {
    stop();
    return true;
  }

 private:
  /// Until the node ends, or nothing more is wanted; false when there is no stream to be had.
  bool stream(const std::function<void(std::string_view)>& on_line,
              const std::function<void()>& on_open) {
    const auto streamed = adapters::control_stream(
        socket_, {"GET", "/api/v1/events", {}, {}},
        [&](std::string_view line) {
          on_line(line);
          return !stop_;
        },
        [this] { return !stop_; }, on_open);
    if (!streamed)
      spdlog::debug("events: {}", to_string(streamed.error()));
    return streamed.has_value();
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    stopped_.notify_all();
    if (watcher_.joinable())
      watcher_.join();
  }

  std::string socket_;
  signal_watch& signals_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  std::atomic<bool> stop_{false};
  std::thread watcher_;
};

/// The actors in this process.
class offline_client final : public client {
 public:
  /// `server`: so that others can ask while a cycle runs here; may be null.
  offline_client(std::unique_ptr<live_node> node, std::unique_ptr<adapters::control_server> server,
                 signal_watch& signals, bool runs_work)
      : node_(std::move(node)), server_(std::move(server)), signals_(signals),
        runs_work_(runs_work) {}

  ~offline_client() override { close(); }

  result<api_response> call(api_request request, milliseconds limit) override {
    struct slot {
      std::mutex mutex;
      std::condition_variable changed;
      std::optional<result<api_response>> answer;
    };
    auto s = std::make_shared<slot>();
    request.caller = this_process();
    node_->ask(std::move(request), [s](result<api_response> r) {
      const std::lock_guard lock(s->mutex);
      s->answer = std::move(r);
      s->changed.notify_all();
    });
    const auto begin = std::chrono::steady_clock::now();
    std::unique_lock lock(s->mutex);
    while (!s->answer) {
      s->changed.wait_for(lock, signal_look);
      if (s->answer)
        break;
      if (signals_.interrupted())
        return fail(interrupted_error());
      if (auto end = node_->ended())
        return fail(errc::actor_down, "the node gave up: " + *end);
      if (std::chrono::steady_clock::now() - begin > limit)
        return fail(errc::timed_out, "no answer in time");
    }
    return std::move(*s->answer);
  }

  void watch(std::function<void(std::string_view)> on_line, std::function<void()>) override {
    node_->watch([on_line = std::move(on_line)](const std::string& lines) {
      std::string_view rest = lines;
      while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size());
        on_line(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
      return true;
    });
  }

  bool pause(milliseconds moment) override { return signals_.pause(moment); }
  bool online() const override { return false; }
  std::optional<utc_time> home_since() const override { return node_->started_at(); }
  std::optional<error> copy_problem() const override { return node_->copy_problem(); }

  bool close() override {
    if (!node_)
      return released_;
    if (server_)
      server_->stop();
    if (!runs_work_ || signals_.interrupted())
      node_->shut_down(interrupt_grace);
    else
      finish_attempts();
    if (!node_->wait_for_end(end_limit)) {
      spdlog::error("these parts did not stop: {}", node_->survivors());
      released_ = false;
    } else {
      released_ = node_->release(release_limit);
    }
    node_.reset();
    return released_;
  }

 private:
  /// Claims nothing more, and waits for the end of what runs; a signal cancels that. Without
  /// anything that runs the node has its usual time to end.
  void finish_attempts() {
    node_->shut_down(finish_grace);
    auto until = std::chrono::steady_clock::now() + end_limit;
    while (!node_->wait_for_end(attempt_look)) {
      if (signals_.interrupted())
        return node_->hurry();
      if (runs_attempts())
        until = std::chrono::steady_clock::now() + end_limit;
      else if (std::chrono::steady_clock::now() > until)
        return;
    }
  }

  bool runs_attempts() {
    const auto body =
        ask(get("/api/v1/dispatches", {{"status", "running"}, {"limit", "1000"}}), attempt_answer);
    const auto rows = body ? rows_of(object_of(*body), "items") : json::array();
    return std::any_of(rows.begin(), rows.end(), [&](const json& row) {
      return text_of(row, "lease_owner") == node_->node_id();
    });
  }

  std::unique_ptr<live_node> node_;
  std::unique_ptr<adapters::control_server> server_;
  signal_watch& signals_;
  bool runs_work_; ///< it was told to claim
  bool released_ = true;
};

/// Nothing: nobody listens. A value: somebody does, in good order or not.
std::optional<result<void>> probe(const std::string& socket) {
  auto answer = adapters::control_call(socket, {"GET", "/healthz", {}, {}}, probe_limit);
  if (answer)
    return result<void>{};
  if (answer.error().code == errc::not_found)
    return std::nullopt;
  return result<void>(fail(std::move(answer.error())));
}

error held_error(const place& where, const std::optional<error>& problem, error lock) {
  lock.what = "the home is in use and its control socket does not answer";
  if (problem)
    lock.what += " (" + problem->what + ")";
  if (auto owner = adapters::read_home_owner(where.home); owner && *owner && (*owner)->pid > 0)
    lock.what += ": process " + std::to_string((*owner)->pid) + ", started " +
                 format_rfc3339((*owner)->started_at);
  lock.where = where.layout().control_socket();
  lock.next = "wait until that process has ended, or stop it";
  lock.code = errc::locked;
  return lock;
}

/// A dry run renders the prompts that a cycle would have, doctor calls providers with their keys:
/// with all of the configuration.
bool needs_all_variables(const arguments& args, node_mode mode) {
  return mode != node_mode::answering || args.verb == "plan" || args.verb == "doctor";
}

result<std::unique_ptr<client>> go_offline(const arguments& args, const place& where,
                                           adapters::home_lock lock, node_mode mode,
                                           signal_watch& signals,
                                           const own_node_asker& before_work) {
  const auto p = local_ports();
  auto configuration = needs_all_variables(args, mode)
                           ? load_configuration(where.config_path, *p.files, *p.zones)
                           : load_configuration_to_ask(where.config_path, *p.files, *p.zones);
  if (!configuration)
    return fail(std::move(configuration.error()));
  if (mode != node_mode::answering && mode != node_mode::trying)
    if (auto armed = arm_faults_of_environment(*p.random); !armed)
      return fail(std::move(armed.error()));
  auto node = live_node::start(where, *configuration, std::move(lock), mode);
  if (!node)
    return fail(std::move(node.error()));
  std::unique_ptr<adapters::control_server> server;
  if (mode == node_mode::one_cycle) {
    if (auto served = serve(**node, where))
      server = std::move(*served);
    else
      spdlog::warn("cycle: others cannot ask meanwhile: {}", to_string(served.error()));
  }
  auto* started = node->get();
  auto opened = std::make_unique<offline_client>(std::move(*node), std::move(server), signals,
                                                 mode == node_mode::one_cycle);
  if (mode == node_mode::one_cycle) {
    if (before_work)
      before_work(*opened, started->node_id());
    started->start_claiming();
  }
  return std::unique_ptr<client>(std::move(opened));
}

} // namespace

result<std::string> client::ask(api_request request, milliseconds limit) {
  const auto answer = call(std::move(request), limit);
  return answer ? body_of(*answer) : fail(answer.error());
}

result<std::unique_ptr<client>> open_client(const arguments& args, node_mode offline_mode,
                                            signal_watch& signals,
                                            const own_node_asker& before_work) {
  auto where = place_of(args);
  if (!where)
    return fail(std::move(where.error()));
  if (auto there = require_home(*where); !there)
    return fail(std::move(there.error()));
  const auto p = local_ports();
  const auto until = p.clock->steady() + home_patience;
  while (true) {
    std::optional<error> problem;
    if (auto found = probe(where->layout().control_socket())) {
      if (*found)
        return std::unique_ptr<client>(
            std::make_unique<online_client>(where->layout().control_socket(), signals));
      problem = found->error();
    }
    auto id = node_id_of(*where, *p.files, *p.clock, *p.random);
    if (!id)
      return fail(std::move(id.error()));
    auto lock = adapters::home_lock::acquire(where->home, p.clock->now(), *id, home_look_again);
    if (lock)
      return go_offline(args, *where, std::move(*lock), offline_mode, signals, before_work);
    if (lock.error().code != errc::locked)
      return fail(std::move(lock.error()));
    if (p.clock->steady() >= until)
      return fail(held_error(*where, problem, std::move(lock.error())));
    if (!signals.pause(home_look_again))
      return fail(interrupted_error());
  }
}

result<std::unique_ptr<client>>
open_own_node(const place& where, std::shared_ptr<const config::configuration> configuration,
              signal_watch& signals, const std::function<void(client&)>& before_work) {
  const auto p = local_ports();
  auto id = node_id_of(where, *p.files, *p.clock, *p.random);
  if (!id)
    return fail(std::move(id.error()));
  auto lock = lock_home(where, *id, signals);
  if (!lock)
    return fail(std::move(lock.error()));
  auto started =
      live_node::start(where, std::move(configuration), std::move(*lock), node_mode::one_cycle);
  if (!started)
    return fail(std::move(started.error()));
  auto* node = started->get();
  auto opened = std::make_unique<offline_client>(std::move(*started), nullptr, signals, true);
  before_work(*opened);
  node->start_claiming();
  return std::unique_ptr<client>(std::move(opened));
}

result<adapters::home_lock> lock_home(const place& where, const std::string& node_id,
                                      signal_watch& signals) {
  const auto p = local_ports();
  if (auto passed = faults::pass("home.lock"); !passed)
    return fail(errc::io_error, std::move(passed.error().what), where.home,
                std::move(passed.error().next));
  const auto until = p.clock->steady() + home_patience;
  while (true) {
    auto lock = adapters::home_lock::acquire(where.home, p.clock->now(), node_id);
    if (lock || lock.error().code != errc::locked || p.clock->steady() >= until)
      return lock;
    if (auto found = probe(where.layout().control_socket()); found && *found)
      return lock;
    if (!signals.pause(home_look_again))
      return fail(interrupted_error());
  }
}

result<std::string> body_of(const api_response& response) {
  constexpr int first_error_status = 400;
  if (response.status < first_error_status)
    return response.body;
  return fail(adapters::error_of({response.status, response.content_type, response.body}));
}

result<std::string> ask_once(const arguments& args, const api_request& request) {
  signal_watch signals;
  return with_live_line(args, args.verb + ": waiting for the answer",
                        [&] { return ask_once(args, request, signals); });
}

namespace {

/// What an agent reads may be the output of a command.
node_mode mode_of(const arguments& args) {
  const bool reads = args.verb == "context cat" || (args.verb == "plan" && !args.agent.empty());
  return reads ? node_mode::trying : node_mode::answering;
}

} // namespace

result<std::string> ask_once(const arguments& args, const api_request& request,
                             signal_watch& signals) {
  for (int tries = 1;; ++tries) {
    auto c = open_client(args, mode_of(args), signals);
    if (!c)
      return fail(std::move(c.error()));
    auto answer = (*c)->call(request, question_limit);
    (*c)->close();
    auto body = answer ? body_of(*answer) : result<std::string>(fail(std::move(answer.error())));
    // Whoever answered has just stopped: ask whoever answers now.
    const bool gone = !body && (*c)->online() &&
                      (body.error().code == errc::actor_down || (!answer && is_gone(body.error())));
    if (!gone || request.method != "GET" || tries >= question_tries)
      return body;
  }
}

bool home_is_in_use(const arguments& args) {
  const auto where = place_of(args);
  const auto owner = where ? adapters::read_home_owner(where->home)
                           : result<std::optional<adapters::lock_owner>>(fail(where.error()));
  return !owner || owner->has_value(); // what is not known is not told
}

api_request get(std::string path, std::map<std::string, std::string> query) {
  api_request r;
  r.method = "GET";
  r.path = std::move(path);
  std::erase_if(query, [](const auto& entry) { return entry.second.empty(); });
  r.query = std::move(query);
  return r;
}

api_request post(std::string path, std::string body) {
  api_request r;
  r.method = "POST";
  r.path = std::move(path);
  r.body = std::move(body);
  return r;
}

} // namespace boyd::app
