#include "actors/planner/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/final_refusal.hpp"
#include "boyd/exec/chat_targets.hpp"
#include "boyd/ports/entropy.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace boyd::planning {

namespace {

constexpr milliseconds record_retry = 1s;
/// A conversation answers by itself within its limit; this much later it is given up.
constexpr milliseconds answer_margin = 10s;

advice_reply failed(const std::string& why) {
  return advice_of(nullptr, error{errc::actor_down, why, {}, {}});
}

advice_reply gone(const std::string& why) {
  return failed("the question to the model failed: " + why);
}

/// It takes the question away, perhaps.
void answered(question& q, const advice_reply& reply) {
  q.conversation = nullptr;
  const auto done = std::move(q.done);
  done(reply);
}

/// Also of a question that ended before its first call.
advice_reply told_by(const conversation_reply& r, const exec::chat_target& first) {
  auto reply = advice_of(static_cast<const exec::chat_loop*>(r.dialogue.get()), r.cut);
  auto& facts = reply.facts;
  if (facts.provider_id.empty()) {
    facts.provider_id = first.provider.provider_id;
    facts.model = first.model;
  }
  facts.why = config::redact_text(std::move(facts.why), r.secrets);
  facts.latency = r.took;
  return reply;
}

/// What is asked, without the targets.
exec::conversation conversation_of(const planner_parts& parts, const question& q,
                                   const config::adviser& settings, std::string_view voice) {
  exec::conversation c;
  c.max_output_tokens = settings.max_output_tokens;
  c.max_turns = question_turns;
  c.budget = settings.budget.run;
  c.kernel_id = q.kernel->kernel_id;
  c.agent_id = voice;
  c.scopes = exec::day_scopes(*q.configuration, parts.context->node_id, c.kernel_id, c.agent_id,
                              settings.budget.day);
  c.dispatch_id = q.cycle_id + "/" + c.agent_id;
  // Of each question its own: one that is asked again after a crash is another call.
  c.fence = static_cast<std::int64_t>(parts.context->ports.random->next() >> 1U);
  c.judge = [](const model::tool_call&) {
    return exec::judgement{config::policy_decision::deny, "no tools are available here"};
  };
  c.unit = [random = parts.context->ports.random] { return random->unit(); };
  c.waits_for_provider = false;
  return c;
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
  const auto refuse = [&](const std::string& why) {
    auto reply = failed(why);
    reply.facts.provider_id = settings.provider_id;
    reply.facts.model = settings.model;
    done(reply);
  };
  if (!parts.context->ports.http)
    return refuse("model calls are not available here");
  auto targets =
      exec::chat_targets(*q.configuration, settings.provider_id, settings.model, settings.fallback);
  if (!targets)
    return refuse(to_string(targets.error()));
  auto c = conversation_of(parts, q, settings, voice);
  c.messages = std::move(messages);
  c.schema_json = std::move(schema);
  conversation_order order;
  order.context = parts.context;
  order.configuration = q.configuration;
  order.targets = std::move(*targets);
  order.make = [c = std::move(c)](std::vector<exec::chat_target> with_keys) mutable {
    c.targets = std::move(with_keys);
    return std::make_shared<exec::chat_loop>(std::move(c));
  };
  order.caller = q.kernel->kernel_id + "/" + std::string(voice);
  order.record = parts.context->layout().execution(q.cycle_id) + "/" +
                 std::string(voice.substr(voice.find(':') + 1)) + ".jsonl";
  order.limit = limit;
  order.store = parts.store;
  order.governor = parts.governor;
  order.workspace = parts.workspace;
  order.asker = self->address();
  const auto first = order.targets.front();
  q.conversation = spawn_conversation(self->system(), std::move(order));
  q.done = std::move(done);
  self->monitor(q.conversation);
  self->state.conversations.add(q.conversation);
  ask<conversation_reply>(
      self, q.conversation, conversation_query{},
      [self, number = q.number, first](const result<conversation_reply>& r) {
        if (auto* asked = find_question(self, number); asked != nullptr && asked->conversation)
          answered(*asked, r ? told_by(*r, first) : gone(to_string(r.error())));
      },
      limit + answer_margin);
}

void conversation_down(self_pointer self, const caf::actor_addr& who) {
  const auto asks = [&](const auto& each) {
    return each.second.conversation && each.second.conversation.address() == who;
  };
  auto& s = self->state;
  s.conversations.forget(who);
  if (auto plan = std::ranges::find_if(s.plans, asks); plan != s.plans.end())
    return answered(plan->second, gone("it ended without an answer"));
  if (auto words = std::ranges::find_if(s.reductions, asks); words != s.reductions.end())
    answered(words->second, gone("it ended without an answer"));
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
                spdlog::error("planner: cannot record the decision of cycle {}: {}", kept->cycle_id,
                              to_string(r.error()));
              // It takes the question away, and itself with it.
              const auto end = kept->end;
              end();
            });
}

} // namespace boyd::planning
