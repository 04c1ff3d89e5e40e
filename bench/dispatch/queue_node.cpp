#include "bench/dispatch/queue_node.hpp"

#include "actors/dispatcher/pool.hpp"
#include "actors/permits/actor.hpp"
#include "actors/store/actor.hpp"
#include "actors/support/handlers.hpp"
#include "actors/workspace/actor.hpp"
#include "bench/support/wiring.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace boyd::bench {

namespace {

constexpr auto longest_wait = std::chrono::minutes{10};
constexpr auto kernel_id = "bench";

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

  result<stopwatch_clock::time_point> wait(std::uint64_t count) {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, longest_wait, [&] { return value >= count; }))
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
  config::kernel k;
  k.kernel_id = kernel_id;
  for (std::size_t i = 0; i < s.agents; ++i) {
    config::agent a;
    a.agent_id = "agent-" + std::to_string(i);
    a.max_concurrent = static_cast<int>(s.max_concurrent);
    if (s.commands)
      a.run.emplace<config::command_executor>().argv = {"true"};
    else
      a.run.emplace<config::script_executor>().answers.emplace_back().summary = "nothing to do";
    k.agents.push_back(std::move(a));
  }
  c->kernels.push_back(std::move(k));
  return c;
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
  return shared_->started.wait(count);
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
  workspace_actor workspace;
  dispatcher_pool_actor pool;
  queue_listener_actor listening;
  std::optional<caf::scoped_actor> me;

  store_request next_batch(std::size_t rows) {
    store_request request;
    const auto now = context->ports.clock->now();
    auto& random = *context->ports.random;
    while (rows > 0) {
      store::enqueue_cycle op;
      op.kernel_id = kernel_id;
      op.cycle_id = make_uuid_v7(now, random);
      const auto n = std::min(rows, configuration->kernels.front().agents.size());
      for (std::size_t i = 0; i < n; ++i) {
        dispatch_spec spec;
        spec.dispatch_id = make_uuid_v7(now, random);
        spec.kernel_id = op.kernel_id;
        spec.cycle_id = op.cycle_id;
        spec.agent_id = configuration->kernels.front().agents[i].agent_id;
        spec.prompt = prompt;
        op.specs.push_back(std::move(spec));
      }
      request.operations.emplace_back(std::move(op));
      rows -= n;
    }
    return request;
  }
};

queue_node::queue_node(node_context_ptr context, const queue_settings& settings,
                       const std::string& store)
    : parts_(std::make_unique<parts>()) {
  auto& p = *parts_;
  p.context = std::move(context);
  p.settings = settings;
  p.configuration = make_configuration(settings, store);
  p.prompt.assign(settings.prompt_bytes, 'x');
  configure_actors(p.system_configuration);
  p.system = std::make_unique<caf::actor_system>(p.system_configuration);
  p.store = spawn_store(*p.system, p.context);
  p.permits = spawn_permits(*p.system, p.configuration);
  p.workspace = spawn_workspace(*p.system, p.context);
  p.pool =
      spawn_dispatcher_pool(*p.system, p.context, p.configuration, p.store, p.permits, p.workspace);
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
  end(p.permits);
  end(p.store);
  p.me.reset();
}

result<void> queue_node::enqueue(std::size_t count) {
  auto& p = *parts_;
  auto& me = *p.me;
  const auto send = [&](std::size_t rows) {
    return me->request(p.store, longest_wait, p.next_batch(rows));
  };
  std::deque<decltype(send(1))> flying;
  std::optional<error> failed;
  const auto receive = [&] {
    flying.front().receive(
        [&](result<store_reply>& r) {
          if (!r)
            failed = r.error();
          else
            for (const auto& value : r->values)
              if (const auto* e = std::get_if<error>(&value))
                failed = *e;
        },
        [&](caf::error& e) {
          failed = error{errc::actor_down, text_of(e), "store", {}};
        });
    flying.pop_front();
  };
  while (count > 0 && !failed) {
    const auto rows = std::min(count, p.settings.batch);
    flying.push_back(send(rows));
    count -= rows;
    if (flying.size() >= p.settings.in_flight)
      receive();
  }
  while (!flying.empty())
    receive();
  if (failed)
    return fail(std::move(*failed));
  return {};
}

void queue_node::start_claiming() {
  caf::anon_send(parts_->pool, boyd::start_claiming{});
}

result<void> queue_node::wait_done(std::size_t count) {
  auto& p = *parts_;
  if (auto all = p.settled->wait(count); !all)
    return fail(std::move(all.error()));
  result<void> outcome = fail(errc::bug, "no answer");
  store_request request;
  request.operations.emplace_back(store::count_by_status{kernel_id});
  (*p.me)
      ->request(p.store, longest_wait, std::move(request))
      .receive(
          [&](result<store_reply>& r) {
            if (!r) {
              outcome = fail(r.error());
              return;
            }
            const auto& counts = std::get<store::count_by_status::reply>(r->values.at(0));
            const auto done = counts.find(dispatch_status::done);
            if (done != counts.end() && done->second == count)
              outcome = {};
            else
              outcome = fail(errc::bug, "not every dispatch is done in the database");
          },
          [&](caf::error& e) { outcome = fail(errc::actor_down, text_of(e)); });
  return outcome;
}

result<void> queue_node::wait_open() {
  auto& p = *parts_;
  result<void> outcome = fail(errc::bug, "no answer");
  store_request request;
  request.operations.emplace_back(store::list_nodes{});
  (*p.me)
      ->request(p.store, longest_wait, std::move(request))
      .receive(
          [&](result<store_reply>& r) {
            if (r)
              outcome = {};
            else
              outcome = fail(r.error());
          },
          [&](caf::error& e) { outcome = fail(errc::actor_down, text_of(e)); });
  return outcome;
}

} // namespace boyd::bench
