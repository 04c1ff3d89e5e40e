#include "bench/support/queue_node.hpp"

#include "actors/dispatcher/pool.hpp"
#include "actors/governor/actor.hpp"
#include "actors/permits/actor.hpp"
#include "actors/store/actor.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "actors/workspace/actor.hpp"
#include "bench/support/wiring.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"

#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>

namespace boyd::bench {

namespace {

constexpr auto kernel_id = bench_kernel_id;

/// A count that one thread waits for.
struct counter {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t value = 0;
  stopwatch_clock::time_point at{};

  void add(std::uint64_t n) {
    const auto now = stopwatch_clock::now();
    {
      const std::lock_guard lock(mutex);
      value += n;
      at = now;
    }
    changed.notify_one();
  }

  result<stopwatch_clock::time_point> wait(std::uint64_t count, milliseconds limit) {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, limit, [&] { return value >= count; }))
      return fail(errc::timed_out,
                  "only " + std::to_string(value) + " of " + std::to_string(count) + " came");
    return at;
  }
};

queue_listener_actor::behavior_type listener(queue_listener_actor::pointer self,
                                             std::shared_ptr<counter> settled) {
  install_handlers(self, "listener");
  return {[](queue_changed&) {
            // nop
          },
          [settled](dispatches_settled& m) { settled->add(m.dispatch_ids.size()); }};
}

configuration_ptr make_configuration(const queue_settings& s, const std::string& store) {
  auto c = std::make_shared<config::configuration>();
  c->node_settings.max_concurrent = static_cast<int>(s.max_concurrent);
  c->node_settings.store = store;
  if (s.keep_rows >= milliseconds{0})
    c->node_settings.retention = s.keep_rows;
  config::kernel k;
  k.kernel_id = kernel_id;
  for (std::size_t i = 0; i < s.agents; ++i) {
    config::agent a;
    a.agent_id = "agent-" + std::to_string(i);
    a.max_concurrent = static_cast<int>(s.max_concurrent);
    if (s.commands) {
      a.run.emplace<config::command_executor>().argv = {"true"};
    } else {
      auto& answer = a.run.emplace<config::script_executor>().answers.emplace_back();
      answer.summary = "nothing to do";
      answer.delay = s.run_time;
    }
    k.agents.push_back(std::move(a));
  }
  c->kernels.push_back(std::move(k));
  return c;
}

/// The same id for the same cycle of jobs, in every process.
std::string cycle_of_jobs(std::uint64_t index) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "00000000-0000-7000-8000-%012llx",
                static_cast<unsigned long long>(index));
  return text.data();
}

} // namespace

struct observing_runner::shared {
  counter started;
};

observing_runner::observing_runner() : shared_(std::make_unique<shared>()) {}
observing_runner::~observing_runner() = default;

result<process_handle> observing_runner::start(process_spec, process_events events) {
  shared_->started.add(1);
  process_exit end;
  end.exit_code = 0;
  events.on_exit(end);
  return process_handle{1};
}

void observing_runner::signal(process_handle, int) {
  // Whatever is signalled has ended already.
}

result<stopwatch_clock::time_point> observing_runner::wait_started(std::uint64_t count) {
  return shared_->started.wait(count, longest_wait);
}

struct queue_node::parts {
  node_context_ptr context;
  queue_settings settings;
  configuration_ptr configuration;
  std::string prompt;
  std::shared_ptr<counter> settled = std::make_shared<counter>();
  caf::actor_system_config system_configuration;
  std::unique_ptr<caf::actor_system> system;
  store_actor store;
  permits_actor permits;
  governor_actor governor;
  workspace_actor workspace;
  dispatcher_pool_actor pool;
  queue_listener_actor listening;
  std::optional<caf::scoped_actor> me;

  dispatch_spec next_spec(const std::string& cycle_id, std::size_t agent) {
    dispatch_spec spec;
    spec.dispatch_id = make_uuid_v7(context->ports.clock->now(), *context->ports.random);
    spec.kernel_id = kernel_id;
    spec.cycle_id = cycle_id;
    spec.agent_id = configuration->kernels.front().agents[agent].agent_id;
    return spec;
  }

  store_request next_batch(std::size_t rows) {
    store_request request;
    const auto agents = configuration->kernels.front().agents.size();
    while (rows > 0) {
      store::enqueue_cycle op;
      op.kernel_id = kernel_id;
      op.cycle_id = make_uuid_v7(context->ports.clock->now(), *context->ports.random);
      const auto n = std::min(rows, agents);
      for (std::size_t i = 0; i < n; ++i) {
        op.specs.push_back(next_spec(op.cycle_id, i));
        op.specs.back().prompt = prompt;
      }
      request.operations.emplace_back(std::move(op));
      rows -= n;
    }
    return request;
  }

  store_request next_jobs(std::uint64_t first, std::size_t rows) {
    store_request request;
    const auto agents = configuration->kernels.front().agents.size();
    for (std::size_t i = 0; i < rows; ++i) {
      const auto job = first + i;
      const auto cycle = cycle_of_jobs(job / agents);
      if (request.operations.empty() || job % agents == 0) {
        store::enqueue_cycle op;
        op.kernel_id = kernel_id;
        op.cycle_id = cycle;
        request.operations.emplace_back(std::move(op));
      }
      auto& specs = std::get<store::enqueue_cycle>(request.operations.back()).specs;
      specs.push_back(next_spec(cycle, job % agents));
      specs.back().prompt = "{\"i\":" + std::to_string(job) + "}";
    }
    return request;
  }

  /// Sends what `next(done, rows)` makes, `in_flight` requests at once, until `count` rows are in.
  template <class Next>
  result<void> send_all(std::size_t count, Next next) {
    const auto send = [&](std::size_t done, std::size_t rows) {
      return (*me)->request(store, longest_wait, next(done, rows));
    };
    std::deque<decltype(send(0, 1))> flying;
    std::optional<error> failed;
    const auto receive = [&] {
      flying.front().receive([&](result<store_reply>& r) { note(r, failed); },
                             [&](caf::error& e) {
                               failed = error{errc::actor_down, text_of(e), "store", {}};
                             });
      flying.pop_front();
    };
    for (std::size_t done = 0; done < count && !failed;) {
      const auto rows = std::min(count - done, settings.batch);
      flying.push_back(send(done, rows));
      done += rows;
      if (flying.size() >= settings.in_flight)
        receive();
    }
    while (!flying.empty())
      receive();
    if (failed)
      return fail(std::move(*failed));
    return {};
  }

  static void note(const result<store_reply>& r, std::optional<error>& failed) {
    if (!r) {
      failed = r.error();
      return;
    }
    if (const auto* e = r->failure())
      failed = *e;
  }

  /// One operation alone.
  template <class Operation>
  result<typename Operation::reply> ask(Operation op) {
    result<typename Operation::reply> outcome = fail(errc::bug, "no answer");
    store_request request;
    const auto ticket = request.add(std::move(op));
    (*me)
        ->request(store, longest_wait, std::move(request))
        .receive([&](result<store_reply>& r) { outcome = ticket.of(r); },
                 [&](caf::error& e) { outcome = fail(errc::actor_down, text_of(e)); });
    return outcome;
  }
};

queue_node::queue_node(node_context_ptr context, const queue_settings& settings,
                       const std::string& store)
    : parts_(std::make_unique<parts>()) {
  auto& p = *parts_;
  p.context = std::move(context);
  p.settings = settings;
  p.configuration =
      settings.configuration ? settings.configuration : make_configuration(settings, store);
  p.prompt.assign(settings.prompt_bytes, 'x');
  configure_actors(p.system_configuration);
  p.system = std::make_unique<caf::actor_system>(p.system_configuration);
  p.store = spawn_store(*p.system, p.context);
  p.permits = spawn_permits(*p.system, p.configuration);
  p.workspace = spawn_workspace(*p.system, p.context);
  p.governor = spawn_governor(*p.system, p.context, p.configuration);
  p.pool = spawn_dispatcher_pool(*p.system, p.context, p.configuration,
                                 {p.store, p.permits, p.workspace, p.governor});
  p.listening = p.system->spawn(listener, p.settled);
  caf::anon_send(p.store, subscribe_queue{{}, p.listening});
  p.me.emplace(*p.system);
}

queue_node::~queue_node() {
  auto& p = *parts_;
  (*p.me)
      ->request(p.pool, longest_wait, drain_order{{}, milliseconds{0}})
      .receive(
          [](result<drained>&) {
            // Nothing runs any more.
          },
          [](caf::error&) {
            // The pool is gone: nothing runs either.
          });
  const auto end = [](const auto& handle) {
    caf::anon_send_exit(handle, caf::exit_reason::user_shutdown);
  };
  end(p.pool);
  end(p.listening);
  end(p.workspace);
  end(p.governor);
  end(p.permits);
  end(p.store);
  p.me.reset();
}

result<void> queue_node::enqueue(std::size_t count) {
  auto& p = *parts_;
  return p.send_all(count, [&](std::size_t, std::size_t rows) { return p.next_batch(rows); });
}

result<void> queue_node::enqueue_jobs(std::uint64_t first, std::size_t count) {
  auto& p = *parts_;
  return p.send_all(
      count, [&](std::size_t done, std::size_t rows) { return p.next_jobs(first + done, rows); });
}

void queue_node::start_claiming() {
  caf::anon_send(parts_->pool, boyd::start_claiming{});
}

result<stopwatch_clock::time_point> queue_node::wait_settled(std::uint64_t count,
                                                             milliseconds limit) {
  return parts_->settled->wait(count, limit);
}

result<void> queue_node::wait_done(std::size_t count) {
  if (auto all = wait_settled(count); !all)
    return fail(std::move(all.error()));
  auto done = this->count(dispatch_status::done);
  if (!done)
    return fail(std::move(done.error()));
  if (*done != count)
    return fail(errc::bug, "not every dispatch is done in the database");
  return {};
}

result<std::uint64_t> queue_node::count(dispatch_status status) {
  auto counts = parts_->ask(store::count_by_status{kernel_id});
  if (!counts)
    return fail(std::move(counts.error()));
  const auto it = counts->find(status);
  return it == counts->end() ? 0 : it->second;
}

result<void> queue_node::wait_open() {
  if (auto open = parts_->ask(store::list_nodes{}); !open)
    return fail(std::move(open.error()));
  return {};
}

result<double> queue_node::mailbox_wait() {
  auto& p = *parts_;
  const auto since = stopwatch_clock::now();
  result<void> answered = fail(errc::bug, "no answer");
  (*p.me)
      ->request(p.store, longest_wait, health_query{})
      .receive([&](result<part_health>&) { answered = {}; },
               [&](caf::error& e) { answered = fail(errc::actor_down, text_of(e)); });
  if (!answered)
    return fail(std::move(answered.error()));
  constexpr double milli = 1e3;
  return seconds_since(since) * milli;
}

std::size_t queue_node::actors() const {
  return parts_->system->registry().running();
}

std::uint64_t job_number(const std::string& prompt) {
  const auto colon = prompt.find(':');
  std::uint64_t number = 0;
  if (colon != std::string::npos)
    std::from_chars(prompt.data() + colon + 1, prompt.data() + prompt.size(), number);
  return number;
}

} // namespace boyd::bench
