#include "actors/planner/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/final_refusal.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::planning {

namespace {

constexpr milliseconds record_retry = 1s;
/// An adviser answers by itself within its limit; this much later it is given up.
constexpr milliseconds adviser_margin = 10s;

advice_reply gone(const std::string& why) {
  advice_reply reply;
  reply.facts.fell_back = plan::fallback_reason::provider;
  reply.facts.why = "whoever asked the model has failed: " + why;
  return reply;
}

/// It takes the question away, perhaps.
void answered(question& q, const advice_reply& reply) {
  q.adviser = nullptr;
  const auto done = std::move(q.done);
  done(reply);
}

} // namespace

question* find_question(self_pointer self, std::uint64_t number) {
  for (auto& [kernel, q] : self->state.plans)
    if (q.number == number)
      return &q;
  for (auto& [kernel, q] : self->state.reductions)
    if (q.number == number)
      return &q;
  return nullptr;
}

void put_question(self_pointer self, question& q, const config::adviser& settings,
                  std::string_view voice, std::vector<model::message_json> messages,
                  std::string schema, milliseconds limit,
                  std::function<void(const advice_reply&)> done) {
  const auto& parts = self->state.parts;
  advice_order order;
  order.context = parts.context;
  order.configuration = q.configuration;
  order.settings = &settings;
  order.kernel_id = q.kernel->kernel_id;
  order.cycle_id = q.cycle_id;
  order.voice = std::string(voice);
  order.messages = std::move(messages);
  order.schema_json = std::move(schema);
  order.limit = limit;
  order.store = parts.store;
  order.governor = parts.governor;
  order.workspace = parts.workspace;
  order.asker = self->address();
  q.adviser = spawn_adviser(self->system(), std::move(order));
  q.done = std::move(done);
  self->monitor(q.adviser);
  self->state.advisers.add(q.adviser);
  ask<advice_reply>(
      self, q.adviser, advice_query{},
      [self, number = q.number](const result<advice_reply>& r) {
        if (auto* asked = find_question(self, number); asked != nullptr && asked->adviser)
          answered(*asked, r ? *r : gone(to_string(r.error())));
      },
      limit + adviser_margin);
}

void adviser_down(self_pointer self, const caf::actor_addr& who) {
  const auto asks = [&](const auto& each) {
    return each.second.adviser && each.second.adviser.address() == who;
  };
  auto& s = self->state;
  s.advisers.forget(who);
  if (auto plan = std::ranges::find_if(s.plans, asks); plan != s.plans.end())
    return answered(plan->second, gone("it has ended without an answer"));
  if (auto words = std::ranges::find_if(s.reductions, asks); words != s.reductions.end())
    answered(words->second, gone("it has ended without an answer"));
}

void keep_record(self_pointer self, std::uint64_t number) {
  auto* q = find_question(self, number);
  if (q == nullptr)
    return;
  store::enqueue_cycle record;
  record.kernel_id = q->kernel->kernel_id;
  record.cycle_id = q->cycle_id;
  record.decisions = {q->row};
  ask_store(self, self->state.parts.store, std::move(record),
            [self, number](const result<store::enqueue_cycle::reply>& r) {
              auto* kept = find_question(self, number);
              if (kept == nullptr)
                return;
              if (!r && !is_final_refusal(r.error()))
                return self->delayed_send(self, record_retry, record_again{{}, number});
              if (!r) // the answer counts without its row, which the store's log and status tell of
                spdlog::error("planner: the decision of cycle {} is not on record: {}",
                              kept->cycle_id, to_string(r.error()));
              // It takes the question away, and itself with it.
              const auto end = kept->end;
              end();
            });
}

} // namespace boyd::planning
