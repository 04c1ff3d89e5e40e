#include "actors/kernel/state.hpp"
#include "actors/support/ask.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::kernel_impl {

namespace {

using nlohmann::json;

/// The recorder is asked again this often.
constexpr milliseconds facts_retry = 10s;

/// The scope of the store's facts that keep them, by cycle: each node has a graph of its own.
std::string scope_of(self_pointer self) {
  const auto& s = self->state;
  return "owed-edges:" + s.settings->kernel_id + "/" + s.parts.context->node_id;
}

std::string to_text(const std::vector<graph_fact>& facts) {
  auto all = json::array();
  for (const auto& f : facts)
    all.push_back({{"from", f.from},
                   {"to", f.to},
                   {"type", f.type},
                   {"at", to_unix_ms(f.at)},
                   {"meta", f.meta_json}});
  return all.dump();
}

/// What is none in it is left out: nobody but Boyd writes it.
std::vector<graph_fact> facts_of(const std::string& text) {
  std::vector<graph_fact> facts;
  for (const auto& f : json::parse(text, nullptr, false)) {
    const auto text_at = [&](const char* name) {
      const auto it = f.find(name);
      return it != f.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    const auto at = f.is_object() ? f.find("at") : f.end();
    if (f.is_object() && at != f.end() && at->is_number_integer())
      facts.push_back({text_at("from"), text_at("to"), text_at("type"),
                       from_unix_ms(at->get<std::int64_t>()), text_at("meta")});
  }
  return facts;
}

void pay_next(self_pointer self);

void pay_later(self_pointer self) {
  self->state.paying_facts = false;
  self->delayed_send(self, facts_retry, pay_facts_tick{});
}

/// A text that stays in the store when this fails is recorded again, which changes nothing.
void forget(self_pointer self, const std::string& cycle_id) {
  auto& s = self->state;
  s.owed_facts.erase(cycle_id);
  ask_store(self, s.parts.store, store::put_fact{scope_of(self), cycle_id, {}},
            [self](const result<store::ok>&) { pay_next(self); });
}

void pay_next(self_pointer self) {
  auto& s = self->state;
  if (s.owed_facts.empty() || s.stopping) {
    s.paying_facts = false;
    return;
  }
  const auto& [cycle_id, facts] = *s.owed_facts.begin();
  ask<graph_reply>(self, s.parts.graph_recorder, graph_request{{}, facts},
                   [self, cycle_id = cycle_id](const result<graph_reply>& r) {
                     // What the recorder will never take must not stand before the others.
                     const bool refused = !r && (r.error().code == errc::invalid_argument ||
                                                 r.error().code == errc::limit_exceeded);
                     if (!r && !refused)
                       return pay_later(self);
                     if (refused)
                       spdlog::error("kernel {}: the edges of cycle {} are not recorded: {}",
                                     self->state.settings->kernel_id, cycle_id,
                                     to_string(r.error()));
                     else
                       spdlog::info("kernel {}: the edges of cycle {} are made up for",
                                    self->state.settings->kernel_id, cycle_id);
                     forget(self, cycle_id);
                   });
}

} // namespace

void owe_facts(self_pointer self, const cycle_core& cycle) {
  auto& s = self->state;
  auto facts = cycle.facts();
  if (!cycle.owes_facts() || facts.empty())
    return;
  s.owed_facts[cycle.id()] = std::move(facts);
  if (s.owed_facts.size() > most_owed_facts) {
    const auto oldest = s.owed_facts.begin();
    spdlog::warn("kernel {}: more than {} cycles are owed their edges: those of cycle {} wait for "
                 "the next start",
                 s.settings->kernel_id, most_owed_facts, oldest->first);
    s.owed_facts.erase(oldest);
  }
  if (!std::exchange(s.paying_facts, true))
    pay_later(self);
}

std::optional<store::put_fact> owed_facts_of(self_pointer self, const std::string& cycle_id) {
  const auto& all = self->state.owed_facts;
  const auto it = all.find(cycle_id);
  if (it == all.end())
    return std::nullopt;
  return store::put_fact{scope_of(self), cycle_id, to_text(it->second)};
}

store::get_facts owed_facts_query(self_pointer self) {
  return {scope_of(self)};
}

void take_owed_facts(self_pointer self, const std::map<std::string, std::string>& kept) {
  auto& s = self->state;
  s.owed_facts.clear();
  for (const auto& [cycle_id, text] : kept)
    s.owed_facts[cycle_id] = facts_of(text);
  pay_facts(self);
}

void pay_facts(self_pointer self) {
  auto& s = self->state;
  if (!s.parts.context->passive && !std::exchange(s.paying_facts, true))
    pay_next(self);
}

} // namespace boyd::kernel_impl
