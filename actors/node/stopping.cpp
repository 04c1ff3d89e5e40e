#include "actors/node/parts.hpp"
#include "actors/support/ask.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::node_impl {

namespace {

/// After the grace a cancelled process gets TERM, then KILL: this long the drain may take on top.
constexpr milliseconds drain_margin = 15s;
constexpr milliseconds final_record_limit = 10s;
/// For what is being started anew when the stop comes.
constexpr milliseconds renewal_limit = 2s;

} // namespace

void stop_tree(self_pointer self) {
  auto& s = self->state;
  s.shell->begin_shutdown();
  s.shell->reconcile();
  if (!s.shell->all_stopped())
    return;
  if (s.failed.empty() && !s.shell->given_up().empty()) {
    s.failed = "lost during the shutdown: " + s.shell->given_up();
    spdlog::critical("node: {}; the next start continues the work", s.failed);
  }
  if (s.failed.empty())
    self->quit(caf::exit_reason::user_shutdown);
  else
    self->quit(crash_error(s.failed));
}

namespace {

/// Once, however often it is called.
void finish_kernels(self_pointer self) {
  if (std::exchange(self->state.finishing, true))
    return;
  auto waiting = std::make_shared<std::size_t>(1);
  auto one_less = [self, waiting] {
    if (--*waiting == 0)
      self->send(self, kernels_stopped{});
  };
  for (const auto& k : self->state.configuration->kernels) {
    const auto kernel = child<kernel_actor>(self, kernel_child(k.kernel_id));
    if (!kernel) {
      spdlog::warn("node: kernel {} is not running, so it makes no final record", k.kernel_id);
      continue;
    }
    ++*waiting;
    ask_past_faults<finish_reply>(
        self, kernel, finish_order{},
        [id = k.kernel_id, one_less](result<finish_reply> r) {
          if (!r)
            spdlog::warn(
                "node: kernel {} made no final record: {}; the next start continues the cycle", id,
                to_string(r.error()));
          one_less();
        },
        final_record_limit);
  }
  // What has brought the node down is known afterwards, too.
  ++*waiting;
  record_restarts(self, one_less);
  one_less();
}

/// No cycle begins and nothing is claimed any more; `then` when nothing runs. False: there are no
/// dispatchers.
template <class Then>
bool stop_taking_work(self_pointer self, milliseconds grace, Then then) {
  for (const auto& k : kernels_of(self))
    self->send(k, stop_order{});
  const auto pool = child<dispatcher_pool_actor>(self, "dispatchers");
  if (pool)
    ask_past_faults<drained>(self, pool, drain_order{{}, grace}, std::move(then),
                             grace + drain_margin);
  return static_cast<bool>(pool);
}

} // namespace

void shut_down_in_turn(self_pointer self, milliseconds grace) {
  auto& s = self->state;
  if (s.stop_behind_renewal || s.shell->changing().empty())
    return shut_down(self, grace);
  s.stop_behind_renewal = grace;
  stop_taking_work(self, grace, [](result<drained>) {
    // Asked again when all is there.
  });
  self->delayed_send(self, renewal_limit, shutdown_order{{}, grace});
}

void shut_down(self_pointer self, milliseconds grace) {
  auto& s = self->state;
  if (std::exchange(s.stopping, true))
    return;
  give_up_reload(self);
  s.shell->hold();
  if (!s.context->passive)
    spdlog::info("node: stopping{}",
                 s.context->scheduled
                     ? "; running attempts have " + format_duration(grace) + " to finish"
                     : std::string());
  const bool asked = stop_taking_work(self, grace, [self](result<drained> r) {
    if (!r)
      spdlog::warn("node: the dispatchers did not finish: {}", to_string(r.error()));
    finish_kernels(self);
  });
  if (!asked)
    finish_kernels(self);
}

void look_at_drain(self_pointer self) {
  auto& s = self->state;
  // Without another part what runs can still be recorded, or given back.
  if (!s.failed.empty() || child<store_actor>(self, "store"))
    return;
  s.failed = "the store ended during the shutdown";
  const auto all = s.shell->view();
  if (const auto store = std::ranges::find(all, "store", &child_view::id);
      store != all.end() && !store->last_error.empty())
    s.failed += ": " + store->last_error;
  spdlog::critical("node: {}; ending running attempts, the next start continues the work",
                   s.failed);
  say_pulse(s);
  // The pool will not be drained: its dispatchers try to record until they are ended.
  if (auto pool = child<dispatcher_pool_actor>(self, "dispatchers"))
    self->send(pool, hurry_order{});
  finish_kernels(self);
}

void reconcile(self_pointer self) {
  auto& s = self->state;
  if (s.shell->reconcile())
    return;
  if (s.failed.empty()) {
    s.failed = "too many restarts: " + s.shell->escalation();
    spdlog::critical("node: giving up: {}", s.failed);
    say_pulse(s);
  }
  // Leave the queue consistent: what runs is given back.
  shut_down(self, milliseconds{0});
}

} // namespace boyd::node_impl
