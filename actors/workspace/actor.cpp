#include "actors/workspace/actor.hpp"

#include "actors/keeper/plain.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/fault_context.hpp"
#include "actors/workspace/performer.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace boyd {

namespace {

using parts_type = keeper_parts<workspace_request, workspace_reply>;
using keeper_type = keeper<with_keeper<workspace_actor>::base, workspace_request, workspace_reply>;

/// What a run did is written when nobody waits for it any more, and thousands of runs may end at
/// once: as many records may wait as calls of models may be under way.
constexpr std::size_t waiting_records = 16'384;

/// Counts the workers that have it: one that hangs cannot tell of itself.
using living_workers = std::shared_ptr<std::atomic<int>>;

using session = session_performer<workspace_session, workspace_request, workspace_reply>;

class counted_session final : public session {
 public:
  counted_session(const node_context_ptr& own, living_workers living)
      : session(own), living_(std::move(living)) {
    ++*living_;
  }
  ~counted_session() override { --*living_; }
  counted_session(const counted_session&) = delete;
  counted_session& operator=(const counted_session&) = delete;

 private:
  living_workers living_;
};

/// A keeper of one worker for run_tool, look_at_workspace and read_items; made when first needed,
/// since most nodes never do.
struct tool_slot {
  workspace_actor keeper;
  living_workers living;
  std::map<std::uint64_t, std::string> under_way; ///< workspaces of calls, oldest first
};

/// A worker that was given up, and where it hangs.
struct lost_worker {
  std::string workspace;
  living_workers living;
};

struct workspace_state {
  std::unique_ptr<keeper_type> keep;
  std::array<tool_slot, tool_workers> tools;
  std::vector<lost_worker> lost;
  std::uint64_t next_call = 1;
  milliseconds hangs_after{0};
  static inline const char* name = "workspace";
};

using impl = with_keeper<workspace_actor>;
using self_pointer = impl::stateful_pointer<workspace_state>;

/// A call of a file tool with what it takes to begin it anew.
struct tool_call_under_way {
  std::shared_ptr<const workspace_request> request;
  keeper_type::promise promise;
  std::string workspace;
  bool again = false; ///< it was given back by a worker that was lost
};

/// Linked: they end together and are made anew together.
tool_slot& tool_slot_of(self_pointer self, const std::string& workspace, const parts_type& parts,
                        const node_context_ptr& own) {
  auto& slot = self->state.tools[tool_worker_of(workspace)];
  if (slot.keeper)
    return slot;
  slot.living = std::make_shared<std::atomic<int>>(0);
  auto of_tools = parts;
  of_tools.name = "workspace tools";
  of_tools.limits = {.queue = tool_queue, .group = 1, .reserve = 0};
  of_tools.worker_intensity = {};
  of_tools.may_overlap = true; // beside those that hang, which is counted
  of_tools.make_performer = [own, living = slot.living] {
    return std::make_unique<counted_session>(own, living);
  };
  slot.keeper = self->spawn<caf::linked>(
      plain_keeper<workspace_actor, workspace_request, workspace_reply>, std::move(of_tools));
  return slot;
}

/// Those that came back have ended.
void forget_found(self_pointer self) {
  std::erase_if(self->state.lost, [](const auto& l) { return *l.living == 0; });
}

/// The slot's worker hangs: another one takes its place. What waited behind it is given back by the
/// keeper as it ends, and begins anew; what hangs may still come to its end in the lost thread.
void give_up(self_pointer self, tool_slot& slot, const std::string& workspace) {
  auto& s = self->state;
  spdlog::error("workspace: the file system of {} does not answer; a file tool worker hangs there "
                "({} of at most {})",
                workspace, s.lost.size() + 1, lost_tool_workers);
  s.lost.push_back({workspace, slot.living});
  self->unlink_from(slot.keeper);
  caf::anon_send<caf::message_priority::high>(
      caf::actor_cast<caf::actor>(slot.keeper),
      caf::exit_msg{self->address(), caf::exit_reason::kill});
  slot.keeper = nullptr;
  slot.under_way.clear();
}

/// The workspace of what the workers of the file tools do, or a name for that of records; empty for
/// everything else.
std::string tool_workspace_of(const workspace_request& r) {
  if (std::holds_alternative<explain_execution>(r.what) ||
      std::holds_alternative<replay_execution>(r.what))
    return "executions";
  if (const auto* tool = std::get_if<run_tool>(&r.what))
    return tool->workspace;
  if (const auto* items = std::get_if<read_items>(&r.what))
    return items->workspace;
  const auto* look = std::get_if<look_at_workspace>(&r.what);
  return look != nullptr ? look->workspace : std::string();
}

result<void> may_begin(self_pointer self, const std::string& workspace) {
  forget_found(self);
  const auto& lost = self->state.lost;
  if (std::ranges::any_of(lost, [&](const auto& l) { return l.workspace == workspace; }))
    return fail(errc::timed_out, "the file system of the workspace does not answer", workspace,
                "check its mount; calls continue when it answers again");
  if (lost.size() >= lost_tool_workers)
    return fail(errc::overloaded,
                std::to_string(lost.size()) +
                    " file tool workers hang in file systems that do not answer",
                lost.front().workspace, "check the mounts listed by boyd status");
  return {};
}

void run_file_tool(self_pointer self, const parts_type& parts, const node_context_ptr& own,
                   tool_call_under_way call) {
  if (auto may = may_begin(self, call.workspace); !may) {
    call.promise.deliver(result<workspace_reply>(fail(std::move(may.error()))));
    return;
  }
  auto& slot = tool_slot_of(self, call.workspace, parts, own);
  const auto number = self->state.next_call++;
  slot.under_way.emplace(number, call.workspace);
  const auto keeper = slot.keeper;
  self->request(keeper, self->state.hangs_after, *call.request)
      .then(
          [self, &slot, number, parts, own, call](result<workspace_reply>& reply) mutable {
            slot.under_way.erase(number);
            const bool given_back = !reply && reply.error().code == errc::actor_down;
            if (given_back && !std::exchange(call.again, true))
              return run_file_tool(self, parts, own, std::move(call));
            call.promise.deliver(std::move(reply));
          },
          [self, &slot, number, keeper, parts, own, call](const caf::error& e) mutable {
            const bool late = e == caf::sec::request_timeout;
            // One that waited behind a call that hung is late itself when it came right after it.
            if (late && slot.keeper != keeper && !std::exchange(call.again, true))
              return run_file_tool(self, parts, own, std::move(call));
            // The oldest is the one at work; those behind it are given back.
            const bool hangs = late && slot.keeper == keeper && !slot.under_way.empty() &&
                               slot.under_way.begin()->first == number;
            if (hangs)
              give_up(self, slot, call.workspace);
            else if (slot.keeper == keeper)
              slot.under_way.erase(number);
            call.promise.deliver(result<workspace_reply>(fail(from_caf(e, "workspace tools"))));
          });
}

result<part_health> health_of(self_pointer self) {
  forget_found(self);
  auto health = self->state.keep->health();
  const auto& lost = self->state.lost;
  if (!health || lost.empty())
    return health;
  std::string where;
  for (const auto& l : lost)
    where += (where.empty() ? "" : ", ") + l.workspace;
  health->ok = false;
  health->reason += (health->reason.empty() ? "" : "; ") + std::to_string(lost.size()) + " of " +
                    std::to_string(lost_tool_workers) +
                    " spare file tool workers hang in: " + where;
  return health;
}

impl::behavior_type workspace_keeper(self_pointer self, parts_type parts, node_context_ptr own,
                                     milliseconds hangs_after) {
  self->state.hangs_after = hangs_after;
  install_handlers(self, parts.name);
  // What agents ask of the file tools costs one restart of this part, and not at once the node.
  self->set_exit_handler([self](caf::exit_msg& m) {
    self->quit(is_exhausted(m.reason) ? crash_error(text_of(m.reason)) : m.reason);
  });
  self->state.keep = std::make_unique<keeper_type>(self, parts);
  self->state.keep->start();
  return {
      [self, parts, own](workspace_request& r) -> keeper_type::promise {
        const auto workspace = tool_workspace_of(r);
        const bool is_record = std::holds_alternative<append_record>(r.what) ||
                               std::holds_alternative<begin_record>(r.what) ||
                               std::holds_alternative<update_record>(r.what) ||
                               std::holds_alternative<end_record>(r.what);
        if (workspace.empty())
          return self->state.keep->accept(std::move(r), is_record);
        auto promise = self->make_response_promise<result<workspace_reply>>();
        run_file_tool(
            self, parts, own,
            {std::make_shared<const workspace_request>(std::move(r)), promise, workspace});
        return promise;
      },
      [self](health_query&) { return health_of(self); },
      [self](batch_done& m) { self->state.keep->on_done(m, [](const auto&) {}); },
      [self](ping&) { return self->state.keep->pulse(); },
      [self](keeper_tick& m) { self->state.keep->on_tick(m); },
      [self](restart_worker& m) { self->state.keep->on_restart(m); },
  };
}

} // namespace

workspace_actor spawn_workspace(caf::actor_system& system, node_context_ptr context,
                                milliseconds hangs_after) {
  parts_type parts;
  parts.name = "workspace";
  parts.limits.reserve = waiting_records;
  parts.clock = context->ports.clock;
  parts.random = context->ports.random;
  parts.restarts = context->restarts;
  parts.roll = context->workers;
  parts.worker_intensity = vital_intensity;
  parts.detached = context->detached_workers;
  parts.probe_interval = context->housekeeping.probe;
  parts.idle_probe_interval = context->housekeeping.idle_probe;
  auto own = with_fault_points(context, faults::workspace_files);
  parts.make_performer = [own] { return std::make_unique<session>(own); };
  return system.spawn(workspace_keeper, std::move(parts), std::move(own), hangs_after);
}

} // namespace boyd
