#include "actors/kernel/actor.hpp"

#include "actors/kernel/state.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/faults/points.hpp"

#include <caf/actor_system.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd {

namespace kernel_impl {

utc_time now_of(self_pointer self) {
  return self->state.parts.context->ports.clock->now();
}

cycle_time time_of_cycle(self_pointer self) {
  const auto& s = self->state;
  return {now_of(self), s.parts.context->ports.clock->steady() - s.cycle_since};
}

std::string trouble_scope(self_pointer self) {
  return "trouble:" + self->state.settings->kernel_id;
}

std::string single_scope(self_pointer self) {
  return "single:" + self->state.settings->kernel_id;
}

namespace {

kernel_status status_of(self_pointer self) {
  const auto& s = self->state;
  kernel_status status;
  status.kernel_id = s.settings->kernel_id;
  status.phase = s.cycle ? phase_of(s.cycle->step()) : "idle";
  status.cycle_id = s.cycle ? s.cycle->id() : "";
  if (s.parts.context->scheduled && s.rule)
    status.next_slot = s.next_slot ? s.next_slot : s.rule->next_after(now_of(self));
  status.paused = s.paused;
  status.problem = s.problem;
  const auto behind = effects::behind_of(s.effects.open());
  // Of a node that only asks the gateway tells it: nothing is tried again there.
  if (status.problem.empty() && !s.parts.context->passive && (!behind.empty() || !s.shows_latest))
    status.problem =
        "STATE.md, its commit or the log of facts is behind the recorded cycles; retrying" +
        (behind.empty() ? "" : ": " + behind.front());
  if (status.problem.empty())
    status.problem = missed_slots(self);
  status.latest = s.latest;
  return status;
}

/// A cycle that runs keeps the settings it was begun with: cycle_core points into them, so the old
/// configuration stays alive with it; the next cycle takes the new ones.
void reload(self_pointer self, const configuration_ptr& configuration) {
  auto& s = self->state;
  if (s.cycle) {
    s.pending_configuration = configuration;
    return;
  }
  if (auto read = read_settings(self, configuration); !read)
    spdlog::error("kernel {}: keeping the previous settings: {}", s.parts.kernel_id,
                  to_string(read.error()));
  look(self);
}

void forget_listener(self_pointer self, const caf::down_msg& m) {
  std::erase_if(self->state.listeners, [&](const auto& l) { return l.address() == m.source; });
}

/// It runs, or this life of the node is to bring it to its end.
bool is_to_end(const kernel_state& s, const std::string& id) {
  const auto of_slot = [&](const occurrence& slot) { return slot.cycle_id == id; };
  return (s.cycle && s.cycle->id() == id) || s.resuming == id ||
         std::ranges::any_of(s.ended,
                             [&](const auto& each) { return each.record.cycle_id == id; }) ||
         std::ranges::any_of(s.to_resume,
                             [&](const auto& each) { return each.row.cycle_id == id; }) ||
         std::ranges::any_of(
             s.admitted,
             [&](const auto& each) { return each.cycle_id == id || of_slot(each.slot); }) ||
         std::ranges::any_of(s.unanswered,
                             [&](const auto& each) { return of_slot(each.second.asked.slot); }) ||
         std::ranges::any_of(s.doubtful,
                             [&](const auto& each) { return of_slot(each.asked.slot); });
}

/// One that is neither under way nor the latest: its row tells.
void await_in_store(self_pointer self, const std::string& id, awaited_promise promise) {
  const auto& kernel_id = self->state.settings->kernel_id;
  ask_store(
      self, self->state.parts.store, store::list_cycles{kernel_id, true, 1, id},
      [self, id, promise](result<std::vector<cycle_record>> rows) mutable {
        auto& s = self->state;
        if (!rows)
          return answer<awaited_cycle>(promise, fail(rows.error()));
        const bool ended = !rows->empty() && rows->front().status != cycle_status::running;
        if (is_to_end(s, id))
          s.waiters[id].push_back(promise);
        else if (ended)
          answer<awaited_cycle>(promise, awaited_cycle{{},
                                                       std::move(rows->front()),
                                                       {},
                                                       effects::behind_of(s.effects.open(), id)});
        else if (rows->empty())
          answer<awaited_cycle>(
              promise, fail(errc::not_found, "no such cycle: " + id, {}, "see: boyd state log"));
        else
          answer<awaited_cycle>(
              promise, fail(errc::conflict,
                            "cycle " + id + " is run by another node: " + rows->front().node_id, {},
                            "repeat the request without wait=1 until the cycle has ended"));
      });
}

caf::typed_response_promise<result<finish_reply>> finish(self_pointer self) {
  auto& s = self->state;
  s.stopping = true;
  s.finishing = self->make_response_promise<result<finish_reply>>();
  auto promise = *s.finishing;
  // A cycle that waits is looked at once more: its last agent may just have ended. Then it is
  // recorded as any other, and its end answers; else the final block says how far it got.
  if (s.cycle && s.cycle->step() == cycle_step::wait)
    ask_rows(self);
  else if (!s.cycle || s.cycle->step() < cycle_step::wait)
    write_final_block(self);
  return promise;
}

} // namespace

void await(self_pointer self, const std::string& id, awaited_promise promise) {
  auto& s = self->state;
  if (!s.loaded || is_to_end(s, id))
    s.waiters[id].push_back(std::move(promise));
  else if (s.latest && s.latest->cycle_id == id)
    answer<awaited_cycle>(
        promise, awaited_cycle{{}, *s.latest, {}, effects::behind_of(s.effects.open(), id)});
  else
    await_in_store(self, id, std::move(promise));
}

} // namespace kernel_impl

using kernel_impl::self_pointer;

namespace {

kernel_impl::kernel_self::behavior_type kernel_behavior(self_pointer self, kernel_parts parts) {
  using namespace kernel_impl;
  install_handlers(self, "kernel");
  self->set_down_handler([self](caf::down_msg& m) { forget_listener(self, m); });
  self->state.parts = std::move(parts);
  self->state.progress = now_of(self);
  if (auto read = read_settings(self, self->state.parts.configuration); !read)
    throw std::runtime_error(to_string(read.error()));
  self->send(self->state.parts.store, subscribe_queue{{}, queue_listener_actor(kernel_self(self))});
  load(self);
  return {
      [self](trigger_cycle& m) {
        auto promise = self->make_response_promise<result<trigger_reply>>();
        admit_trigger(self, std::move(m), promise);
        return promise;
      },
      [self](await_cycle& m) {
        auto promise = self->make_response_promise<result<awaited_cycle>>();
        await(self, m.cycle_id, promise);
        return promise;
      },
      [self](kernel_query&) -> result<kernel_status> { return status_of(self); },
      [self](health_query&) -> result<part_health> {
        const auto status = status_of(self);
        part_health h;
        h.ok = status.problem.empty();
        h.reason = status.problem;
        h.notice = self->state.clock_note;
        return h;
      },
      [self](reload_order& m) {
        faults::may_crash("parts.reload");
        reload(self, m.configuration);
      },
      [self](stop_order&) {
        faults::may_crash("kernel.stop");
        self->state.stopping = true;
        stop_questions_of(self);
      },
      [self](finish_order&) { return finish(self); },
      [self](subscribe_events& m) {
        faults::may_crash("parts.subscribe");
        self->monitor(m.listener);
        self->state.listeners.push_back(m.listener);
      },
      [](queue_changed&) {
        // nop
      },
      [self](dispatches_settled& m) { hear_settled(self, m); },
      [self](look_tick& m) {
        follow_again(self);
        repair_latest(self);
        if (m.generation == self->state.look_generation)
          look(self);
      },
      [self](step_tick& m) {
        if (m.generation != self->state.step_generation)
          return;
        if (self->state.cycle)
          run_step(self);
        else
          start_next(self);
      },
      [self](load_tick&) { load(self); },
      [self](doubt_tick&) {
        self->state.deciding_doubt = false;
        settle_doubts(self);
      },
  };
}

} // namespace

kernel_actor spawn_kernel(caf::actor_system& system, kernel_parts parts) {
  return system.spawn(kernel_behavior, std::move(parts));
}

} // namespace boyd
