#include "actors/retention/actor.hpp"

#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "actors/sweeper/actor.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/clock.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace boyd {

namespace {

/// A node that is restarted often must come to it as well.
constexpr milliseconds first_look = 1min;
constexpr milliseconds between_sweeps = std::chrono::hours{24};

struct retention_tick : message {
  bool again = false; ///< behind a batch that was not the last one
};

using retention_impl = retention_actor::extend<
    // The own clock, or: there is more to remove.
    caf::reacts_to<retention_tick>>;

struct retention_state {
  node_context_ptr context;
  configuration_ptr configuration;
  store_actor store;
  workspace_actor workspace;
  std::optional<steady_time> swept;
  static inline const char* name = "retention";
};

using self_pointer = retention_impl::stateful_pointer<retention_state>;

void look_in(self_pointer self, milliseconds delay) {
  self->delayed_send(self, delay, retention_tick{{}, false});
}

/// Of dispatches that are gone. Every record is looked at: not at each look.
void sweep(self_pointer self, milliseconds later) {
  auto& s = self->state;
  const auto now = s.context->ports.clock->steady();
  if (s.swept && now - *s.swept < between_sweeps)
    return look_in(self, later);
  s.swept = now;
  const auto sweeper =
      spawn_sweeper(self->system(), {s.context, s.configuration->node_settings.retention, false,
                                     s.store, s.workspace, self->address()});
  ask<sweep_report>(
      self, sweeper, begin_sweep{},
      [self, later](const result<sweep_report>& r) {
        if (!r)
          spdlog::warn("retention: cannot remove files of old executions: {}",
                       to_string(r.error()));
        else if (r->executions + r->contents > 0)
          spdlog::info("retention: removed {} executions and {} contents", r->executions,
                       r->contents);
        look_in(self, later);
      },
      sweep_limit);
}

/// One batch; another one follows at once while there is something to remove.
void remove_finished(self_pointer self, bool again) {
  auto& s = self->state;
  const auto later = s.context->housekeeping.retention;
  if (auto passed = faults::pass("retention.run"); !passed) {
    spdlog::warn("retention: {}", to_string(passed.error()));
    return look_in(self, later);
  }
  store::remove_finished op;
  op.age = s.configuration->node_settings.retention;
  op.limit = limits::retention_batch;
  op.node_age = std::max(op.age, op.node_age);
  if (!again)
    op.node_id = s.context->node_id;
  ask_store(self, s.store, op, [self, later](result<store::remove_finished::reply> r) {
    if (!r)
      spdlog::warn("retention: cannot remove anything: {}", to_string(r.error()));
    if (r && r->ended > 0)
      spdlog::warn("retention: {} cycles and slots of nodes that did not return have been ended",
                   r->ended);
    if (r && r->removed > 0)
      self->send(self, retention_tick{{}, true});
    else
      sweep(self, later);
  });
}

retention_impl::behavior_type retention_behavior(self_pointer self, node_context_ptr context,
                                                 configuration_ptr configuration, store_actor store,
                                                 workspace_actor workspace) {
  install_handlers(self, "retention");
  auto& s = self->state;
  s.context = std::move(context);
  s.configuration = std::move(configuration);
  s.store = std::move(store);
  s.workspace = std::move(workspace);
  if (!s.context->passive)
    look_in(self, std::min(first_look, s.context->housekeeping.retention));
  return {
      [self](reload_order& m) {
        faults::may_crash("parts.reload");
        self->state.configuration = m.configuration;
      },
      [self](retention_tick& m) { remove_finished(self, m.again); },
  };
}

} // namespace

retention_actor spawn_retention(caf::actor_system& system, node_context_ptr context,
                                configuration_ptr configuration, store_actor store,
                                workspace_actor workspace) {
  return system.spawn(retention_behavior, std::move(context), std::move(configuration),
                      std::move(store), std::move(workspace));
}

} // namespace boyd
