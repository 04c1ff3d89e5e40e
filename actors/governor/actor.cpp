#include "actors/governor/actor.hpp"

#include "actors/support/handlers.hpp"
#include "actors/support/past_faults.hpp"
#include "boyd/model/governor.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>

namespace boyd {

namespace {

/// Time may have brought a place or opened a breaker. `number`: an old timer does nothing.
struct governor_tick : message {
  std::uint64_t number = 0;
};

using governor_impl =
    governor_actor::extend<caf::reacts_to<governor_tick>, caf::reacts_to<late_order>>;

/// Waits that are longer are cut: the clock may be looked at more often, never less.
constexpr milliseconds longest_look = 30s;

/// Providers that a reload has removed are kept for the runs that began with them, the last so
/// many.
constexpr std::size_t removed_providers = 64;

/// What a ticket stands for.
struct place {
  std::string provider_id;
  place_holder_actor holder;
  std::uint64_t call = 0;
};

struct governor_state {
  node_context_ptr context;
  std::map<std::string, model::governor_core> providers;
  std::deque<std::string>
      removed; ///< those of them that the configuration has no more, oldest first
  std::map<model::governor_core::ticket_id, place> places;
  /// By holder, then by its number for the call. A holder is monitored as long as it is here.
  std::map<caf::actor_addr, std::map<std::uint64_t, model::governor_core::ticket_id>> tickets;
  /// Of each provider, the models that nobody calls, as last logged.
  std::map<std::string, std::map<std::string, model::breaker_state>> breakers;
  model::governor_core::ticket_id next_ticket = 1;
  std::uint64_t ticks = 0;
  std::optional<steady_time> tick_at;
  static inline const char* name = "governor";
};

using self_pointer = governor_impl::stateful_pointer<governor_state>;

steady_time now_of(self_pointer self) {
  return self->state.context->ports.clock->steady();
}

void tell(self_pointer self, const place_holder_actor& holder, place_answer word) {
  send_past_faults(self, holder, faults::point("governor.answer"), std::move(word));
}

void forget(self_pointer self, model::governor_core::ticket_id ticket) {
  auto& s = self->state;
  auto it = s.places.find(ticket);
  if (it == s.places.end())
    return;
  auto of_holder = s.tickets.find(it->second.holder.address());
  of_holder->second.erase(it->second.call);
  if (of_holder->second.empty()) {
    self->demonitor(of_holder->first);
    s.tickets.erase(of_holder);
  }
  s.places.erase(it);
}

void log_breakers(self_pointer self, const std::string& id, const model::governor_core& core) {
  auto& known = self->state.breakers[id];
  std::map<std::string, model::breaker_state> present;
  for (const auto& m : core.open_models(now_of(self))) {
    present.emplace(m.name, m.state);
    if (const auto before = known.find(m.name);
        m.state == model::breaker_state::open &&
        (before == known.end() || before->second != m.state))
      spdlog::warn("provider {}: {} failures in a row of model {}; no calls for {} s (last: {})",
                   id, model::breaker_failures, m.name,
                   std::chrono::duration_cast<std::chrono::seconds>(model::breaker_wait).count(),
                   m.last);
  }
  for (const auto& [name, state] : known)
    if (present.count(name) == 0)
      spdlog::info("provider {}: model {} answers again", id, name);
  known = std::move(present);
}

/// Hands out what may be handed out now and looks again when time alone brings something.
void decide(self_pointer self) {
  auto& s = self->state;
  std::optional<steady_time> next;
  for (auto& [id, core] : s.providers) {
    for (auto& d : core.decide(now_of(self))) {
      auto it = s.places.find(d.ticket);
      if (it == s.places.end())
        continue;
      tell(self, it->second.holder,
           place_answer{{}, it->second.call, std::move(d.why), d.input_ratio});
      if (!d.granted)
        forget(self, d.ticket);
    }
    log_breakers(self, id, core);
    if (const auto at = core.next_look(); at && (!next || *at < *next))
      next = at;
  }
  if (!next || (s.tick_at && *s.tick_at <= *next))
    return;
  s.tick_at = next;
  const auto wait = std::clamp<milliseconds>(std::chrono::ceil<milliseconds>(*next - now_of(self)),
                                             1ms, longest_look);
  self->delayed_send(self, wait, governor_tick{{}, ++s.ticks});
}

void refuse(self_pointer self, const place_request& m, model::trouble_kind kind, std::string what) {
  model::trouble t;
  t.kind = kind;
  t.what = std::move(what);
  tell(self, m.holder, place_answer{{}, m.wish.call, std::move(t)});
}

/// `fault`: what is to go wrong with the wish, if anything.
void ask(self_pointer self, const place_request& m, const error* fault) {
  auto& s = self->state;
  auto core = s.providers.find(m.wish.provider_id);
  // The run began with a configuration that had it, and may be tried again with the present one.
  if (core == s.providers.end())
    return refuse(self, m, model::trouble_kind::unavailable,
                  "no such provider in the configuration: " + m.wish.provider_id);
  if (fault != nullptr)
    return refuse(self, m, model::trouble_kind::unavailable, to_string(*fault));
  const auto ticket = s.next_ticket++;
  auto [of_holder, fresh] = s.tickets.try_emplace(m.holder.address());
  if (fresh)
    self->monitor(m.holder);
  of_holder->second[m.wish.call] = ticket;
  s.places.emplace(ticket, place{m.wish.provider_id, m.holder, m.wish.call});
  core->second.ask(ticket, m.wish.agent, m.wish.tokens, now_of(self), m.wish.model);
  decide(self);
}

void release(self_pointer self, const place_release& m) {
  auto& s = self->state;
  auto of_holder = s.tickets.find(m.holder.address());
  if (of_holder == s.tickets.end())
    return;
  auto found = of_holder->second.find(m.call);
  if (found == of_holder->second.end())
    return;
  const auto ticket = found->second;
  if (auto core = s.providers.find(m.provider_id); core != s.providers.end()) {
    if (m.ended)
      core->second.done(ticket, m.ended->tokens, m.ended->trouble, now_of(self), m.ended->counted);
    else
      core->second.drop(ticket, now_of(self));
  }
  forget(self, ticket);
  decide(self);
}

/// The holder is gone: so are its places.
void gone(self_pointer self, const caf::actor_addr& holder) {
  auto& s = self->state;
  auto of_holder = s.tickets.find(holder);
  if (of_holder == s.tickets.end())
    return;
  const auto tickets = std::move(of_holder->second);
  s.tickets.erase(of_holder);
  for (const auto& [call, ticket] : tickets) {
    if (auto it = s.places.find(ticket); it != s.places.end()) {
      if (auto core = s.providers.find(it->second.provider_id); core != s.providers.end())
        core->second.drop(ticket, now_of(self));
      s.places.erase(it);
    }
  }
  decide(self);
}

void forget_removed(self_pointer self);

/// Runs under way finish on the configuration that they began with: a provider that is gone serves
/// them within its last limits. No new run is led there.
void set_limits(self_pointer self, const config::configuration& c) {
  auto& s = self->state;
  std::erase_if(s.removed, [&](const auto& id) {
    return config::find_provider(c, id) != nullptr; // it is back
  });
  for (const auto& [id, core] : s.providers)
    if (config::find_provider(c, id) == nullptr &&
        std::ranges::find(s.removed, id) == s.removed.end())
      s.removed.push_back(id);
  for (const auto& p : c.providers) {
    auto [it, fresh] = s.providers.try_emplace(p.provider_id, p);
    if (!fresh)
      it->second.set_limits(p);
  }
  forget_removed(self);
  decide(self);
}

/// Of more removed providers than are kept, the oldest go, with what waits there.
void forget_removed(self_pointer self) {
  auto& s = self->state;
  while (s.removed.size() > removed_providers) {
    s.providers.erase(s.removed.front());
    s.removed.pop_front();
  }
  std::vector<model::governor_core::ticket_id> orphans;
  for (const auto& [ticket, at] : s.places)
    if (s.providers.count(at.provider_id) == 0)
      orphans.push_back(ticket);
  for (const auto ticket : orphans) {
    const auto at = s.places.at(ticket);
    model::trouble t;
    t.kind = model::trouble_kind::unavailable;
    t.what = "the provider was removed from the configuration: " + at.provider_id;
    tell(self, at.holder, place_answer{{}, at.call, std::move(t)});
    forget(self, ticket);
  }
}

governors_reply status_of(self_pointer self) {
  governors_reply reply;
  const auto& s = self->state;
  for (const auto& [id, core] : s.providers) {
    const bool removed = std::ranges::find(s.removed, id) != s.removed.end();
    if (removed && core.in_use() == 0 && core.waiting() == 0)
      continue;
    governor_status row;
    row.provider_id = id;
    row.limit = core.limit();
    row.in_use = core.in_use();
    row.waiting = core.waiting();
    row.breaker = core.breaker(now_of(self));
    row.last_trouble = core.last_trouble();
    reply.providers.push_back(std::move(row));
  }
  return reply;
}

governor_impl::behavior_type governor_behavior(self_pointer self, node_context_ptr context,
                                               configuration_ptr configuration) {
  install_handlers(self, "governor");
  self->set_down_handler([self](caf::down_msg& m) { gone(self, m.source); });
  self->state.context = std::move(context);
  set_limits(self, *configuration);
  return {
      [self](place_request& m) {
        past_faults(self, faults::point("governor.place"),
                    [self, m = std::move(m)](const error* why) { ask(self, m, why); });
      },
      [self](place_release& m) {
        past_faults(self, faults::point("governor.release"),
                    [self, m = std::move(m)](const error*) { release(self, m); });
      },
      [self](governors_query&) -> result<governors_reply> { return status_of(self); },
      [self](reload_order& m) {
        faults::may_crash("parts.reload");
        set_limits(self, *m.configuration);
      },
      [](health_query&) -> result<part_health> { return part_health{}; },
      [self](governor_tick& m) {
        if (m.number != self->state.ticks)
          return;
        self->state.tick_at.reset();
        decide(self);
      },
      [](late_order& m) { m.carry_out(); },
  };
}

} // namespace

governor_actor spawn_governor(caf::actor_system& system, node_context_ptr context,
                              configuration_ptr configuration) {
  return system.spawn(governor_behavior, std::move(context), std::move(configuration));
}

} // namespace boyd
