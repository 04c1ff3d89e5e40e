#include "live_node.hpp"

#include "actors/node/leftovers.hpp"
#include "actors/node/root.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/frugal_scheduler.hpp"
#include "actors/support/handlers.hpp"
#include "adapters/curl/http_client.hpp"
#include "adapters/libgit2/worktrees.hpp"
#include "adapters/posix/confined_files.hpp"
#include "adapters/posix/left_runs.hpp"
#include "adapters/posix/open_files.hpp"
#include "adapters/posix/process_runner.hpp"
#include "adapters/sqlite/knowledge_index.hpp"
#include "adapters/yaml/yaml.hpp"
#include "boyd/core/signal_stack.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/graph/foreign_lines.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/process_runner.hpp"
#include "boyd_version.hpp"
#include "crash_note.hpp"
#include "home_claim.hpp"
#include "lost_database.hpp"
#include "signal_stack_hook.hpp"
#include "store_identity.hpp"

#include <caf/actor_clock.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/logger.hpp>
#include <caf/send.hpp>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace boyd::app {

namespace {

constexpr unsigned most_threads = 4;
constexpr unsigned least_threads = 2;
/// Messages that an actor handles in a row before others get their turn.
constexpr std::int64_t throughput = 100;
/// A request may wait for a whole cycle.
constexpr milliseconds longest_answer = std::chrono::hours{26};
/// The root itself answers earlier, whatever the parts do.
constexpr milliseconds longest_reload = 2 * limits::request_timeout;
constexpr milliseconds tree_limit = 2s;
/// What is left of an end is looked at this often.
constexpr milliseconds look_again = 100ms;
/// A heartbeat that was sent as a command ended comes through within this time, or is cut off.
constexpr milliseconds calls_patience = 2s;
constexpr std::size_t host_name_bytes = 256;

void configure(caf::actor_system_config& c) {
  const auto cores = std::max(std::thread::hardware_concurrency(), least_threads);
  c.set("scheduler.max-threads", static_cast<std::int64_t>(std::min(cores, most_threads)));
  c.set("scheduler.max-throughput", throughput);
  c.load<frugal_scheduler>();
  c.set("logger.verbosity", caf::atom("quiet"));
  c.add_thread_hook<signal_stack_hook>();
}

std::string host_name() {
  std::array<char, host_name_bytes> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "localhost";
}

std::atomic<bool> something_leaked{false};

/// The lock is held: whoever wrote them is gone. A node starts without this, too.
void remove_leftovers(file_system& files, const std::string& home) {
  const auto removed = remove_leftover_prompts(files, home);
  if (!removed)
    spdlog::warn("node: cannot remove prompt files of an earlier node: {}",
                 to_string(removed.error()));
  else if (*removed > 0)
    spdlog::info("node: removed {} prompt files of an earlier node", *removed);
}

/// The same for temporary directories, as soon as programs can be started.
void remove_left_scratch(const ports& all, const std::string& home) {
  const auto removed = remove_leftover_scratch(*all.files, *all.processes, home);
  if (!removed)
    spdlog::warn("node: cannot remove temporary files of an earlier node: {}",
                 to_string(removed.error()));
}

/// Descriptors of a node at rest, and of a run: a call of a model has one, a program three.
constexpr std::uint64_t files_at_rest = 256;
constexpr std::uint64_t files_of_a_run = 3;

/// Raises the limit of open files; the one before, which programs of agents get.
std::uint64_t make_room_for_files(const config::configuration& c) {
  const auto limit = adapters::raise_open_files();
  const auto runs = static_cast<std::uint64_t>(c.node_settings.max_concurrent);
  const auto needed = files_at_rest + files_of_a_run * runs;
  if (limit.now < needed)
    spdlog::warn(
        "node: the limit of open files is {}, but node.max_concurrent: {} may need {}; raise the "
        "hard limit (ulimit -Hn {}, LimitNOFILE= in a unit) or lower node.max_concurrent",
        limit.now, runs, needed, needed);
  return limit.before;
}

/// For commands that only ask: nothing may be started.
class no_processes final : public process_runner {
 public:
  result<process_handle> start(process_spec, process_events) override {
    return fail(errc::refused, "this command cannot start programs");
  }
  void signal(process_handle, int) override {}
  std::size_t running() const override { return 0; }
};

/// How the root ended, for whoever waits.
struct end_of_root {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::string> reason;
  adapters::unique_fd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  void set(std::string why) {
    {
      const std::lock_guard lock(mutex);
      reason = std::move(why);
    }
    changed.notify_all();
    const std::uint64_t one = 1;
    if (::write(event.get(), &one, sizeof one) < 0)
      spdlog::error("node: cannot announce the end of the root");
  }
};

/// Waits for the root's end.
caf::behavior sentinel(caf::event_based_actor* self, root_actor root,
                       std::shared_ptr<end_of_root> end) {
  install_handlers(self, "sentinel");
  self->set_down_handler([self, end](caf::down_msg& m) {
    const bool orderly = m.reason == caf::exit_reason::user_shutdown || !m.reason;
    end->set(orderly ? std::string{} : text_of(m.reason));
    self->quit();
  });
  self->monitor(root);
  return {[](const message&) {
    // nop
  }};
}

/// Ends an asker without a trace: at the root its watch would stay for the root's life, at the
/// clock its time-out, and each would hold the asker's memory.
void leave(caf::event_based_actor* self, const root_actor& root) {
  self->demonitor(root.address());
  self->system().clock().cancel_timeouts(self);
  self->quit();
}

/// One question to the root from outside the actor system. A promise that an ending actor keeps is
/// lost (FAULTS.md, fact 4), so the root's end is an answer, too.
template <class T, class Message>
void ask_root(caf::actor_system& system, const root_actor& root, Message what,
              std::function<void(result<T>)> done, milliseconds limit) {
  system.spawn([root, what = std::move(what), done = std::move(done),
                limit](caf::event_based_actor* self) mutable {
    install_handlers(self, "asker");
    self->set_down_handler([self, root, done](caf::down_msg&) {
      done(fail(errc::actor_down, "the node has stopped", {}, "try again"));
      leave(self, root);
    });
    self->monitor(root);
    boyd::ask<T>(
        self, root, std::move(what),
        [self, root, done](result<T> r) {
          done(std::move(r));
          leave(self, root);
        },
        limit);
  });
}

/// Of the actors' own calls none is left by now.
void let_calls_end(const http_client& calls) {
  for (auto left = calls_patience; calls.running() > 0 && left > 0ms; left -= look_again)
    std::this_thread::sleep_for(look_again);
}

} // namespace

result<void> arm_faults_of_environment(entropy& random) {
  const auto words = environment()("BOYD_FAULTS").value_or("");
  auto all = faults::parse(words);
  if (!all)
    return fail(errc::invalid_configuration, std::move(all.error().what), "BOYD_FAULTS",
                std::move(all.error().next));
  return faults::arm(*all, random.next());
}

struct live_node::parts {
  // The lock is destroyed last, after the processes are gone.
  std::optional<adapters::home_lock> lock;
  node_context_ptr context;
  std::string config_path;
  std::shared_ptr<end_of_root> end = std::make_shared<end_of_root>();
  caf::actor_system_config configuration;
  std::unique_ptr<caf::actor_system> system;
  root_actor root;
  caf::actor sentinel; ///< an actor that nobody holds ends as unreachable
  std::optional<error> copy_problem;
};

live_node::live_node(std::unique_ptr<parts> p)
    : parts_(std::move(p)), workers_(parts_->context->workers) {}

result<std::unique_ptr<live_node>>
live_node::start(const place& where, std::shared_ptr<const config::configuration> configuration,
                 adapters::home_lock lock, node_mode mode, reload_function on_reload,
                 milliseconds heartbeat) {
  auto p = std::make_unique<parts>();
  p->lock.emplace(std::move(lock));
  p->config_path = where.config_path;
  auto context = std::make_shared<node_context>();
  auto& ports = context->ports;
  ports = local_ports();
  if (auto there = check_database_is_there(where, *configuration, *ports.files); !there)
    return fail(std::move(there.error()));
  remove_leftovers(*ports.files, where.home);
  // Also to ask with: `boyd doctor --provider`. It does nothing before its first request.
  ports.http = adapters::make_http_client();
  const bool asks = mode == node_mode::answering || mode == node_mode::trying;
  if (mode == node_mode::answering) {
    ports.processes = std::make_shared<no_processes>();
  } else {
    adapters::process_runner_options options;
    options.inherit_descriptor = p->lock->descriptor();
    if (!asks)
      if (const auto left = adapters::end_left_runs(where.home); left > 0)
        spdlog::warn("node: ended {} processes left by agents of an earlier node", left);
    if (!asks)
      options.open_files = make_room_for_files(*configuration);
    auto runner = adapters::make_process_runner(options);
    if (!runner)
      return fail(std::move(runner.error()));
    ports.processes = std::move(*runner);
    remove_left_scratch(ports, where.home);
  }
  ports.workspaces = adapters::make_confined_files({where.home});
  if (!asks)
    ports.trees = adapters::make_worktrees(where.layout().worktrees());
  ports.make_knowledge_index = adapters::make_sqlite_knowledge_index;
  auto id = node_id_of(where, *ports.files, *ports.clock, *ports.random);
  if (!id)
    return fail(std::move(id.error()));
  const bool is_shared = configuration->node_settings.store != embedded_store;
  const auto claim = std::make_shared<home_claim>(home_claim::options{
      ports.files, ports.clock, ports.random, where.home, *id, host_name(), is_shared});
  // Of the opening here: later ones are of another thread.
  const auto found = std::make_shared<std::optional<error>>();
  store_check check;
  if (asks)
    check = [claim, seen = std::weak_ptr(found)](dispatch_store& opened) -> result<void> {
      const auto problem = seen.lock();
      if (!problem)
        return {};
      if (auto original = claim->check_original(opened);
          !original && original.error().code == errc::invalid_configuration)
        *problem = original.error();
      return {};
    };
  else
    check = [claim](dispatch_store& opened) { return claim->hold(opened); };
  if (auto added = add_store(ports, where, *configuration, mode == node_mode::service, check);
      !added)
    return fail(std::move(added.error()));
  if (auto mine = look_ahead(ports.make_store); !mine)
    return fail(std::move(mine.error()));
  p->copy_problem = *found;
  if (!asks) {
    context->after_crash = has_crash_note(where.home, *ports.files);
    leave_crash_note(where.home);
    ports.make_store = strict_after_crash(std::move(ports.make_store), where.home, ports.files);
  }
  context->home = where.home;
  context->node_id = *id;
  context->host = host_name();
  context->pid = ::getpid();
  context->version = program_version;
  // What the lock tells those whom it refuses is what status tells.
  context->started_at = p->lock->started_at();
  context->environment = environment();
  context->parse_tree = adapters::parse_yaml;
  context->scheduled = mode == node_mode::service;
  context->passive = asks;
  if (!asks)
    if (auto taken = graph::take_log_as_found(*ports.files, where.home, *context->written); !taken)
      spdlog::warn("node: cannot look at the log of facts: {}", to_string(taken.error()));
  context->housekeeping.heartbeat = heartbeat;
  context->heartbeat = std::make_shared<boyd::pulse>();
  context->shared_store = is_shared;
  if (mode == node_mode::service)
    context->parse_configuration = [files = ports.files, zones = ports.zones](
                                       const std::string& path, const std::string& text) {
      return app::parse_configuration(path, text, *files, *zones);
    };
  p->context = context;
  configure(p->configuration);
  p->system = std::make_unique<caf::actor_system>(p->configuration);
  p->root = spawn_root(*p->system, p->context, std::move(configuration), std::move(on_reload));
  p->sentinel = p->system->spawn(sentinel, p->root, p->end);
  return std::unique_ptr<live_node>(new live_node(std::move(p)));
}

live_node::~live_node() {
  if (parts_ && parts_->system) {
    // Destroying a system whose actors live waits for ever: the process ends soon anyway.
    something_leaked = true;
    static_cast<void>(parts_.release());
  }
}

void live_node::ask(api_request request, answer_function done) {
  ask_root<api_response>(*parts_->system, parts_->root, std::move(request), std::move(done),
                         longest_answer);
}

void live_node::watch(line_function on_line) {
  caf::anon_send(parts_->root, watch_events{{}, std::move(on_line)});
}

void live_node::start_claiming() {
  caf::anon_send(parts_->root, boyd::start_claiming{});
}

void live_node::reload(std::shared_ptr<const config::configuration> configuration,
                       std::function<void()> done) {
  ask_root<reload_reply>(
      *parts_->system, parts_->root, reload_order{{}, std::move(configuration)},
      [done = std::move(done)](const result<reload_reply>& r) {
        if (!r)
          spdlog::warn("node: reload incomplete: {}", to_string(r.error()));
        done();
      },
      longest_reload);
}

void live_node::shut_down(milliseconds grace) {
  caf::anon_send<caf::message_priority::high>(parts_->root, shutdown_order{{}, grace});
}

void live_node::hurry() {
  caf::anon_send<caf::message_priority::high>(parts_->root, hurry_order{});
}

bool live_node::is_home_replaced() const {
  return parts_->lock->is_replaced();
}

int live_node::ended_descriptor() const {
  return parts_->end->event.get();
}

std::optional<std::string> live_node::ended() const {
  const std::lock_guard lock(parts_->end->mutex);
  return parts_->end->reason;
}

bool live_node::wait_for_end(milliseconds limit) {
  std::unique_lock lock(parts_->end->mutex);
  return parts_->end->changed.wait_for(lock, limit,
                                       [&] { return parts_->end->reason.has_value(); });
}

std::string live_node::survivors() {
  struct shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<std::string> text;
  };
  auto s = std::make_shared<shared>();
  ask_root<tree_reply>(
      *parts_->system, parts_->root, tree_query{},
      [s](result<tree_reply> r) {
        std::string text;
        if (!r)
          text = "root (" + to_string(r.error()) + ")";
        else
          for (const auto& c : r->children)
            if (c.state != "stopped" && c.state != "ended")
              text += (text.empty() ? "" : ", ") + c.name + " (" + c.state + ")";
        const std::lock_guard lock(s->mutex);
        s->text = std::move(text);
        s->changed.notify_all();
      },
      tree_limit);
  std::unique_lock lock(s->mutex);
  s->changed.wait_for(lock, tree_limit * 2, [&] { return s->text.has_value(); });
  auto text = s->text.value_or("the scheduler does not answer");
  lock.unlock();
  const auto add = [&](const char* title, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i)
      text += (i > 0 ? ", " : std::string("; ") + title + ": ") + names[i];
  };
  // Known without the actors, which may not be able to say anything.
  std::vector<std::string> silent;
  for (const auto& p : pulse().silent)
    silent.push_back(p.name);
  add("no answer from", silent);
  add("workers that live", living_workers());
  return text;
}

bool live_node::is_only_opening_store() const {
  return workers_->names() == std::vector<std::string>{"store", opening_of_store};
}

bool live_node::release(milliseconds limit, milliseconds opening_limit) {
  struct shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  auto s = std::make_shared<shared>();
  // ~actor_system waits for the last reference to its logger, and this thread's storage holds one.
  caf::logger::set_current_actor_system(nullptr);
  parts_->root = nullptr;
  parts_->sentinel = nullptr;
  // The configuration is used by the system until its end: both go together.
  auto* whole = parts_.release();
  std::thread([whole, s] {
    give_signal_stack();
    whole->system.reset();
    let_calls_end(*whole->context->ports.http);
    delete whole;
    const std::lock_guard lock(s->mutex);
    s->done = true;
    s->changed.notify_all();
  }).detach();
  std::unique_lock lock(s->mutex);
  const auto begin = std::chrono::steady_clock::now();
  const auto patience = [&] { return is_only_opening_store() ? opening_limit : limit; };
  while (!s->done && std::chrono::steady_clock::now() < begin + patience())
    s->changed.wait_for(lock, std::min<milliseconds>(look_again, limit), [&] { return s->done; });
  something_leaked = something_leaked || !s->done;
  return s->done;
}

result<std::shared_ptr<const config::configuration>> live_node::load_again() const {
  const auto& p = parts_->context->ports;
  return app::load_configuration(parts_->config_path, *p.files, *p.zones);
}

pulse_report live_node::pulse() const {
  return parts_->context->heartbeat->read();
}

utc_time live_node::started_at() const {
  return parts_->context->started_at;
}

const std::string& live_node::node_id() const {
  return parts_->context->node_id;
}

const std::optional<error>& live_node::copy_problem() const {
  return parts_->copy_problem;
}

bool all_released() {
  return !something_leaked;
}

} // namespace boyd::app
