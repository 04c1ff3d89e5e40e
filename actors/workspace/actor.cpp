#include "actors/workspace/actor.hpp"

#include "actors/keeper/plain.hpp"
#include "actors/support/fault_context.hpp"
#include "actors/workspace/performer.hpp"

#include <caf/actor_system.hpp>

#include <array>
#include <memory>
#include <utility>
#include <variant>

namespace boyd {

namespace {

using parts_type = keeper_parts<workspace_request, workspace_reply>;
using keeper_type = keeper<with_keeper<workspace_actor>::base, workspace_request, workspace_reply>;

/// What a run did is written when nobody waits for it any more, and thousands of runs may end at
/// once: as many records may wait as calls of models may be under way.
constexpr std::size_t waiting_records = 16'384;

struct workspace_state {
  std::unique_ptr<keeper_type> keep;
  /// Keepers of one worker each for run_tool; made when first needed, since most nodes never do.
  std::array<workspace_actor, tool_workers> tools;
  static inline const char* name = "workspace";
};

using impl = with_keeper<workspace_actor>;
using self_pointer = impl::stateful_pointer<workspace_state>;

/// Linked: they end together and are made anew together.
workspace_actor tool_keeper(self_pointer self, const std::string& workspace, parts_type parts) {
  auto& keeper = self->state.tools[tool_worker_of(workspace)];
  if (!keeper) {
    parts.name = "workspace tools";
    parts.limits = {.queue = tool_queue, .group = 1, .reserve = 0};
    keeper = self->spawn<caf::linked>(
        plain_keeper<workspace_actor, workspace_request, workspace_reply>, std::move(parts));
  }
  return keeper;
}

impl::behavior_type workspace_keeper(self_pointer self, parts_type parts) {
  install_handlers(self, parts.name);
  self->state.keep = std::make_unique<keeper_type>(self, parts);
  self->state.keep->start();
  return {
      [self, parts](workspace_request& r) -> keeper_type::promise {
        const auto* tool = std::get_if<run_tool>(&r.what);
        const bool is_record = std::holds_alternative<append_record>(r.what);
        if (tool == nullptr)
          return self->state.keep->accept(std::move(r), is_record);
        auto promise = self->make_response_promise<result<workspace_reply>>();
        const auto keeper = tool_keeper(self, tool->workspace, parts);
        return promise.delegate(keeper, std::move(r));
      },
      [self](health_query&) { return self->state.keep->health(); },
      [self](batch_done& m) { self->state.keep->on_done(m, [](const auto&) {}); },
      [self](ping&) { return self->state.keep->pulse(); },
      [self](keeper_tick& m) { self->state.keep->on_tick(m); },
      [self](restart_worker& m) { self->state.keep->on_restart(m); },
  };
}

} // namespace

workspace_actor spawn_workspace(caf::actor_system& system, node_context_ptr context) {
  parts_type parts;
  parts.name = "workspace";
  parts.limits.reserve = waiting_records;
  parts.clock = context->ports.clock;
  parts.random = context->ports.random;
  parts.restarts = context->restarts;
  parts.detached = context->detached_workers;
  parts.probe_interval = context->housekeeping.probe;
  parts.idle_probe_interval = context->housekeeping.idle_probe;
  parts.make_performer = [own = with_fault_points(context, faults::workspace_files)] {
    using made = session_performer<workspace_session, workspace_request, workspace_reply>;
    return std::make_unique<made>(own);
  };
  return system.spawn(workspace_keeper, std::move(parts));
}

} // namespace boyd
