#include "actors/permits/actor.hpp"

#include "actors/permits/core.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/faults/points.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace boyd {

namespace {

/// The permit with this number has been out for its probation.
struct probation_over : message {
  std::uint64_t number = 0;
};

using permits_impl = permits_actor::extend<caf::reacts_to<probation_over>>;

struct permits_state {
  permit_core core;
  milliseconds probation{0};
  int paced = 0;                ///< runs, in all
  std::uint64_t probations = 0; ///< begun so far: an old timer ends no new one
  std::map<permit_core::holder_id, permit_holder_actor> holders;
  std::map<caf::actor_addr, permit_core::holder_id> ids;
  permit_core::holder_id next_id = 1;
  static inline const char* name = "permits";
};

using self_pointer = permits_impl::stateful_pointer<permits_state>;

permit_core::holder_id id_of(self_pointer self, const permit_holder_actor& holder) {
  auto& s = self->state;
  auto [it, fresh] = s.ids.try_emplace(holder.address(), s.next_id);
  if (fresh) {
    s.holders.emplace(s.next_id++, holder);
    self->monitor(holder);
  }
  return it->second;
}

void hand_out(self_pointer self) {
  faults::may_crash("permits.grant");
  auto& s = self->state;
  const auto grants = s.core.distribute();
  for (const auto& g : grants)
    self->send(s.holders.at(g.holder), permit_grant{{}, g.count});
  if (!grants.empty() && s.core.on_probation())
    self->delayed_send(self, s.probation, probation_over{{}, ++s.probations});
}

void wish(self_pointer self, const permit_request& m) {
  self->state.core.wish(id_of(self, m.holder), m.wish.holder, m.wish.kernel_id, m.wish.count,
                        m.wish.priority);
  hand_out(self);
}

void pace(self_pointer self, int runs) {
  auto& s = self->state;
  s.paced += std::max(runs, 0);
  s.probation = std::min(crash_probation, crash_probation_of_all / std::max(s.paced, 1));
  s.core.pace(runs);
}

void forget(self_pointer self, const caf::actor_addr& gone) {
  auto& s = self->state;
  auto it = s.ids.find(gone);
  if (it == s.ids.end())
    return;
  s.core.gone(it->second);
  s.holders.erase(it->second);
  s.ids.erase(it);
  hand_out(self);
}

permits_impl::behavior_type permits_behavior(self_pointer self, permit_limits first) {
  install_handlers(self, "permits");
  self->set_down_handler([self](caf::down_msg& m) { forget(self, m.source); });
  self->state.core.set_limits(first.node, first.kernels);
  return {
      [self](permit_request& m) {
        faults::may_crash("permits.ask");
        wish(self, m);
      },
      [self](permit_release& m) {
        faults::may_crash("permits.release");
        self->state.core.release(id_of(self, m.holder), m.count);
        hand_out(self);
      },
      [self](permit_limits& m) {
        faults::may_crash("parts.reload");
        self->state.core.set_limits(m.node, m.kernels);
        hand_out(self);
      },
      [self](permit_pacing& m) {
        faults::may_crash("permits.pace");
        pace(self, m.runs);
      },
      [self](permits_query&) -> result<permits_status> {
        const auto& core = self->state.core;
        permits_status status;
        status.limit = core.limit();
        status.in_use = core.in_use();
        status.peak = core.peak();
        status.holders = core.holders();
        return status;
      },
      [](health_query&) -> result<part_health> { return part_health{}; },
      [self](probation_over& m) {
        if (m.number != self->state.probations)
          return;
        self->state.core.outlived();
        hand_out(self);
      },
  };
}

} // namespace

permit_limits limits_of(const config::configuration& configuration) {
  permit_limits limits;
  limits.node = configuration.node_settings.max_concurrent;
  for (const auto& k : configuration.kernels)
    limits.kernels.emplace_back(k.kernel_id, k.max_concurrent);
  return limits;
}

permits_actor spawn_permits(caf::actor_system& system, configuration_ptr configuration) {
  return system.spawn(permits_behavior, limits_of(*configuration));
}

} // namespace boyd
