#include "actors/adviser/actor.hpp"

#include "actors/adviser/core.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/chat_targets.hpp"
#include "boyd/faults/faulty_ports.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/model/probe.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/ports/http_client.hpp"
#include "boyd/queue/spend.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace boyd {

namespace {

/// The transport is through with a call.
struct adviser_call_ended : message {
  std::uint64_t call = 0;
  result<void> transport;
};

/// The wait before a repetition is over.
struct adviser_again : message {
  std::uint64_t call = 0;
};

/// The question has had its time.
struct adviser_overdue : message {};

using adviser_impl =
    adviser_actor::extend<caf::reacts_to<place_answer>, caf::reacts_to<adviser_call_ended>,
                          caf::reacts_to<adviser_again>, caf::reacts_to<adviser_overdue>>;

constexpr std::size_t key_bytes = 1u << 20;
/// Of the record of one question; more is not kept.
constexpr std::size_t record_bytes = 4u << 20;

/// An answer as it comes, on the client's own thread.
struct heard_answer {
  std::mutex mutex;
  std::optional<http_head> head;
  std::string body;
};

struct adviser_state {
  advice_order order;
  std::vector<exec::chat_target> targets; ///< in the order in which they are asked
  std::vector<std::string> secrets;
  std::optional<exec::chat_loop> loop;
  caf::typed_response_promise<result<advice_reply>> promise;
  std::shared_ptr<heard_answer> heard;
  std::uint64_t calling = 0;       ///< the call that is under way; 0: none
  std::optional<http_handle> call; ///< what the client has of it
  std::string record;
  steady_time began{};
  bool over = false;
  static inline const char* name = "adviser";

  ~adviser_state() {
    if (call)
      order.context->ports.http->cancel(*call);
  }
};

using self_pointer = adviser_impl::stateful_pointer<adviser_state>;

void perform(self_pointer self, exec::chat_effects effects);

steady_time now_of(self_pointer self) {
  return self->state.order.context->ports.clock->steady();
}

void write_record(self_pointer self) {
  auto& s = self->state;
  if (s.record.empty())
    return;
  const auto who = s.order.voice.substr(s.order.voice.find(':') + 1);
  // Nothing waits for it: a record that cannot be written is in the workspace's health.
  caf::anon_send(
      s.order.workspace,
      workspace_request{{},
                        append_record{s.order.context->layout().execution(s.order.cycle_id) + "/" +
                                          who + ".jsonl",
                                      std::exchange(s.record, {})}});
}

void note(self_pointer self, const std::string& json) {
  auto& s = self->state;
  if (s.record.size() + json.size() > record_bytes)
    return;
  s.record +=
      config::redact_text("{\"at\":\"" + format_rfc3339(s.order.context->ports.clock->now(), true) +
                              "\"," + json.substr(1),
                          s.secrets) +
      '\n';
}

/// The last thing it does.
void finish(self_pointer self, plan::fallback_reason reason, const std::string& why) {
  auto& s = self->state;
  if (std::exchange(s.over, true))
    return;
  advice_reply reply;
  if (s.loop)
    reply.facts = adviser::cost_of(s.loop->usage_json());
  // Also of a question that ended before its first call.
  if (reply.facts.provider_id.empty()) {
    reply.facts.provider_id = s.order.settings->provider_id;
    reply.facts.model = s.targets.empty() ? s.order.settings->model : s.targets.front().model;
  }
  reply.facts.fell_back = reason;
  reply.facts.why = config::redact_text(std::string(first_line(why)), s.secrets);
  reply.facts.latency = std::chrono::duration_cast<milliseconds>(now_of(self) - s.began);
  if (reason == plan::fallback_reason::none)
    reply.answer = s.loop->outcome().text;
  write_record(self);
  if (s.promise.pending())
    answer<advice_reply>(s.promise, std::move(reply));
  self->quit();
}

/// Ends the conversation from outside.
void cut_short(self_pointer self, plan::fallback_reason reason, const std::string& why) {
  auto& s = self->state;
  if (s.over)
    return;
  if (s.loop)
    perform(self, s.loop->stop(why));
  finish(self, reason, why);
}

void start_call(self_pointer self, exec::effect::call_model& e) {
  auto& s = self->state;
  const auto call = e.call;
  const caf::actor_addr me = self->address();
  const auto ended = [me, call](const result<void>& transport) {
    if (auto strong = caf::actor_cast<caf::actor>(me))
      caf::anon_send(strong, adviser_call_ended{{}, call, transport});
  };
  const auto heard = std::make_shared<heard_answer>();
  s.heard = heard;
  s.calling = call;
  if (auto passed = faults::pass("models.call"); !passed)
    return ended(fail(std::move(passed.error())));
  http_events events;
  events.on_head = [heard](const http_head& head) {
    std::lock_guard lock(heard->mutex);
    heard->head = head;
  };
  events.on_body = [heard](std::string_view bytes) {
    std::lock_guard lock(heard->mutex);
    heard->body += bytes;
  };
  events.on_end = ended;
  s.call = s.order.context->ports.http->start(
      std::move(e.request), faults::watched(std::move(events), faults::point("models.answer")));
}

void reserve(self_pointer self, exec::effect::reserve& e) {
  ask_store(self, self->state.order.store, std::move(e.what),
            [self, call = e.call](const result<store::reserve_spend::reply>& r) {
              perform(self, self->state.loop->on_reserved(call, r));
            });
}

void perform_one(self_pointer self, exec::chat_effect& any) {
  auto& s = self->state;
  const auto me = [self] { return place_holder_actor(adviser_impl(self)); };
  if (auto* e = std::get_if<exec::effect::ask_place>(&any)) {
    const place_wish wish{{},      e->provider_id, s.order.kernel_id + "/" + s.order.voice,
                          e->call, e->tokens,      e->model};
    self->send(s.order.governor, place_request{{}, wish, me()});
  } else if (auto* d = std::get_if<exec::effect::drop_place>(&any)) {
    self->send(s.order.governor, place_release{{}, d->provider_id, d->call, {}, me()});
  } else if (auto* l = std::get_if<exec::effect::leave_place>(&any)) {
    self->send(
        s.order.governor,
        place_release{
            {}, l->provider_id, l->call, call_ended{l->tokens, std::move(l->trouble)}, me()});
  } else if (auto* r = std::get_if<exec::effect::reserve>(&any)) {
    reserve(self, *r);
  } else if (auto* paid = std::get_if<exec::effect::settle_spend>(&any)) {
    // Sent, not asked: the adviser may be gone before the answer. What the store does not take
    // stays reserved, which counts the most that the call could have cost.
    store_request request;
    request.operations.emplace_back(std::move(paid->what));
    caf::anon_send(s.order.store, std::move(request));
  } else if (auto* c = std::get_if<exec::effect::call_model>(&any)) {
    start_call(self, *c);
  } else if (std::holds_alternative<exec::effect::cancel_call>(any)) {
    if (s.call)
      s.order.context->ports.http->cancel(*s.call);
    s.call.reset();
    s.calling = 0;
  } else if (auto* w = std::get_if<exec::effect::wait_repeat>(&any)) {
    self->delayed_send(self, w->delay, adviser_again{{}, w->call});
  } else if (auto* n = std::get_if<exec::effect::note_turn>(&any)) {
    note(self, n->json);
  } else if (auto* warning = std::get_if<exec::effect::warn>(&any)) {
    spdlog::warn("kernel {}, {}: {}", s.order.kernel_id, s.order.voice, warning->text);
  } else if (std::holds_alternative<exec::effect::talk_over>(any)) {
    const auto& out = s.loop->outcome();
    finish(self, adviser::reason_of(out), out.error);
  }
}

void perform(self_pointer self, exec::chat_effects effects) {
  for (auto& e : effects)
    perform_one(self, e);
}

void on_place(self_pointer self, const place_answer& m) {
  auto& s = self->state;
  if (s.over || !s.loop)
    return;
  if (m.why && !s.loop->leads_on(m.why->kind)) {
    // Whoever plans does not wait until the provider takes calls again.
    cut_short(self, adviser::reason_of_place(*m.why), m.why->what);
    return;
  }
  perform(self, s.loop->on_place(m.call, m.why));
}

void on_call_ended(self_pointer self, const adviser_call_ended& m) {
  auto& s = self->state;
  if (s.over || m.call == 0 || s.calling != m.call)
    return;
  s.call.reset();
  s.calling = 0;
  const auto heard = std::exchange(s.heard, nullptr);
  std::unique_lock lock(heard->mutex);
  if (heard->head)
    s.loop->on_head(m.call, *heard->head);
  s.loop->on_body(m.call, heard->body);
  lock.unlock();
  perform(self, s.loop->on_call_end(m.call, m.transport));
}

void take_findings(exec::chat_target& target, const store::get_facts::reply& facts) {
  if (const auto found = facts.find(target.model); found != facts.end())
    model::apply(model::found_in(found->second, target.provider.base_url), target.provider);
}

void begin(self_pointer self) {
  auto& s = self->state;
  if (s.over)
    return;
  for (const auto& t : s.targets)
    s.secrets = config::with_secrets(std::move(s.secrets), {t.key});
  exec::conversation c;
  c.targets = s.targets;
  c.messages = std::move(s.order.messages);
  c.schema_json = s.order.schema_json;
  c.max_output_tokens = s.order.settings->max_output_tokens;
  c.max_turns = adviser::turns;
  c.budget = s.order.settings->budget.run;
  const auto& day = s.order.settings->budget.day;
  const auto& node = s.order.configuration->node_settings.budget_day;
  c.scopes = {{queue::agent_scope(s.order.kernel_id, s.order.voice), day.tokens, day.cost},
              {queue::node_scope(s.order.context->node_id), node.tokens, node.cost}};
  c.dispatch_id = s.order.cycle_id + "/" + s.order.voice;
  c.kernel_id = s.order.kernel_id;
  c.agent_id = s.order.voice;
  // Of each question its own: one that is asked again after a crash is another call.
  c.fence = static_cast<std::int64_t>(s.order.context->ports.random->next() >> 1U);
  c.judge = [](const model::tool_call&) {
    return exec::judgement{config::policy_decision::deny, "there are no tools here"};
  };
  c.unit = [random = s.order.context->ports.random] { return random->unit(); };
  s.loop.emplace(std::move(c));
  perform(self, s.loop->begin());
}

/// What `boyd doctor --provider` found stands for what the configuration leaves open. What cannot
/// be read is left open.
void read_findings(self_pointer self) {
  store_request request;
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < self->state.targets.size(); ++i)
    if (const auto& provider = self->state.targets[i].provider; exec::leaves_open(provider)) {
      request.operations.emplace_back(
          store::get_facts{model::findings_scope(provider.provider_id)});
      asked.push_back(i);
    }
  if (asked.empty())
    return begin(self);
  ask<store_reply>(self, self->state.order.store, std::move(request),
                   [self, asked](result<store_reply> r) {
                     for (std::size_t i = 0; r && i < std::min(asked.size(), r->values.size()); ++i)
                       if (const auto facts = reply_of<store::get_facts>(r->values[i]))
                         take_findings(self->state.targets[asked[i]], *facts);
                     begin(self);
                   });
}

/// The key of each target from `from` on that has one in a file.
void read_keys(self_pointer self, std::size_t from) {
  auto& targets = self->state.targets;
  while (from < targets.size() && targets[from].provider.api_key_file.empty())
    ++from;
  if (from == targets.size())
    return read_findings(self);
  const auto file = targets[from].provider.api_key_file;
  ask<workspace_reply>(self, self->state.order.workspace,
                       workspace_request{{}, read_text_file{file, key_bytes}},
                       [self, file, from](const result<workspace_reply>& r) {
                         if (!r)
                           return finish(self, plan::fallback_reason::provider,
                                         "the key cannot be read: " + file + ": " + r.error().what);
                         self->state.targets[from].key = exec::key_in(r->text);
                         read_keys(self, from + 1);
                       });
}

void open(self_pointer self) {
  auto& s = self->state;
  s.began = now_of(self);
  s.secrets = s.order.configuration->secrets;
  if (!s.order.context->ports.http)
    return finish(self, plan::fallback_reason::provider, "this node calls no models");
  const auto& settings = *s.order.settings;
  auto targets = exec::chat_targets(*s.order.configuration, settings.provider_id, settings.model,
                                    settings.fallback);
  if (!targets)
    return finish(self, plan::fallback_reason::provider, to_string(targets.error()));
  s.targets = std::move(*targets);
  self->delayed_send(self, s.order.limit, adviser_overdue{});
  read_keys(self, 0);
}

adviser_impl::behavior_type adviser_behavior(self_pointer self, advice_order order) {
  install_handlers(self, "adviser");
  self->set_down_handler([self](caf::down_msg&) {
    cut_short(self, plan::fallback_reason::stopped, "whoever asked has ended");
  });
  self->monitor(order.asker);
  self->state.order = std::move(order);
  return {
      [self](advice_query&) {
        self->state.promise = self->make_response_promise<result<advice_reply>>();
        auto promise = self->state.promise;
        open(self);
        return promise;
      },
      [self](stop_advice&) {
        cut_short(self, plan::fallback_reason::stopped, "the cycle or the node ends");
      },
      [self](place_answer& m) { on_place(self, m); },
      [self](adviser_call_ended& m) { on_call_ended(self, m); },
      [self](adviser_again& m) {
        if (!self->state.over)
          perform(self, self->state.loop->on_repeat(m.call));
      },
      [self](adviser_overdue&) {
        cut_short(self, plan::fallback_reason::timeout,
                  "no answer within " + format_duration(self->state.order.limit));
      },
  };
}

} // namespace

adviser_actor spawn_adviser(caf::actor_system& system, advice_order order) {
  return system.spawn(adviser_behavior, std::move(order));
}

} // namespace boyd
