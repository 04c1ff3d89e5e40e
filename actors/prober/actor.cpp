#include "actors/prober/actor.hpp"

#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/chat_targets.hpp"
#include "boyd/faults/faulty_ports.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/ports/http_client.hpp"
#include "boyd/queue/spend.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace boyd {

namespace {

/// The transport is through with a call.
struct probe_call_ended : message {
  result<void> transport;
};

using prober_impl = prober_actor::extend<caf::reacts_to<probe_call_ended>>;

constexpr std::size_t key_bytes = 1u << 20;
constexpr const char* spending_kernel = "boyd";
constexpr const char* spending_agent = "doctor";

/// An answer as it comes, on the client's own thread; nobody else looks before its end.
struct collected {
  http_head head;
  std::string body;
};

struct prober_state {
  probe_order order;
  std::optional<model::provider_probe> probe;
  std::vector<std::string> secrets;
  caf::typed_response_promise<result<probe_reply>> promise;
  std::shared_ptr<collected> answer;
  std::optional<http_handle> call;
  steady_time called_at;
  std::string run_id; ///< of this probe, in the spending
  std::size_t request_bytes = 0;
  std::int64_t most_output = 0; ///< tokens that the request asks for at most
  std::string call_id;          ///< of the call under way; empty: nothing is reserved
  int calls = 0;
  probe_reply reply;
  static inline const char* name = "prober";
};

using self_pointer = prober_impl::stateful_pointer<prober_state>;

void go_on(self_pointer self);

void finish(self_pointer self) {
  auto& s = self->state;
  s.reply.checks = s.probe->checks();
  s.reply.found = s.probe->found();
  s.reply.answers = s.probe->answers();
  for (auto& c : s.reply.checks) {
    c.what = config::redact_text(std::move(c.what), s.secrets);
    c.next = config::redact_text(std::move(c.next), s.secrets);
  }
  const auto end = [self](std::string unkept) {
    auto& state = self->state;
    state.reply.unkept = std::move(unkept);
    answer<probe_reply>(state.promise, std::move(state.reply));
    self->quit();
  };
  // An endpoint that did not answer says nothing of what was found earlier.
  if (s.reply.found == model::found_capabilities{})
    return end({});
  store::put_fact fact;
  fact.scope = model::findings_scope(s.order.provider.provider_id);
  fact.key = s.order.model;
  fact.value =
      model::to_text(s.reply.found, s.order.provider.base_url, s.order.context->ports.clock->now());
  ask_store(self, s.order.store, std::move(fact),
            [end](const result<store::ok>& r) { end(r ? std::string() : to_string(r.error())); });
}

void start(self_pointer self, http_request request) {
  auto& s = self->state;
  const auto collecting = std::make_shared<collected>();
  s.answer = collecting;
  s.called_at = s.order.context->ports.clock->steady();
  const caf::actor_addr me = self->address();
  http_events events;
  events.on_head = [collecting](const http_head& head) { collecting->head = head; };
  events.on_body = [collecting](std::string_view bytes) { collecting->body += bytes; };
  events.on_end = [me](const result<void>& transport) {
    if (auto strong = caf::actor_cast<caf::actor>(me))
      caf::anon_send(strong, probe_call_ended{{}, transport});
  };
  if (auto passed = faults::pass("models.call"); !passed)
    return events.on_end(fail(std::move(passed.error())));
  s.request_bytes = request.body.size();
  s.call = s.order.context->ports.http->start(
      std::move(request), faults::watched(std::move(events), faults::point("models.answer")));
}

void on_ended(self_pointer self, const result<void>& transport) {
  auto& s = self->state;
  if (!s.answer)
    return;
  s.call.reset();
  const auto took = std::chrono::duration_cast<milliseconds>(
      s.order.context->ports.clock->steady() - s.called_at);
  auto used = s.probe->finish(s.answer->head, s.answer->body, transport, took);
  s.answer.reset();
  if (used && !s.call_id.empty()) {
    if (const auto cut = model::cap_usage(*used, s.request_bytes, s.most_output); !cut.empty())
      spdlog::warn("provider {}: {}", s.order.provider.provider_id, cut);
    const auto cost = model::cost_of(s.order.provider, s.order.model, *used);
    s.reply.used.input += used->input;
    s.reply.used.output += used->output;
    s.reply.cost += cost;
    store_request settle;
    settle.operations.emplace_back(store::settle_spend{
        s.call_id, {used->input, used->cached, used->output, used->reasoning, cost}});
    caf::anon_send(s.order.store, std::move(settle));
  }
  go_on(self);
}

store::reserve_spend reservation(prober_state& s, const model::usage& most) {
  const auto& day = s.order.configuration->node_settings.budget_day;
  s.call_id = s.run_id + "/1/" + std::to_string(++s.calls);
  s.most_output = most.output;
  store::reserve_spend r;
  r.call_id = s.call_id;
  r.dispatch_id = s.run_id;
  r.kernel_id = spending_kernel;
  r.agent_id = spending_agent;
  r.provider_id = s.order.provider.provider_id;
  r.model = s.order.model;
  r.most = {most.input, 0, most.output, 0, model::cost_of(s.order.provider, s.order.model, most)};
  r.limits = {{queue::node_scope(s.order.context->node_id), day.tokens, day.cost}};
  return r;
}

void go_on(self_pointer self) {
  auto& s = self->state;
  auto next = s.probe->next();
  if (!next)
    return finish(self);
  s.call_id.clear();
  if (next->most == model::usage{})
    return start(self, std::move(next->request));
  ask_store(
      self, s.order.store, reservation(s, next->most),
      [self, request = std::move(next->request)](const result<store::reserve_spend::reply>& r) {
        if (r && r->granted)
          return start(self, request);
        auto& probe = *self->state.probe;
        if (!r)
          probe.stop("the store takes no reservation: " + to_string(r.error()), "see: boyd doctor");
        else
          probe.stop("today's budget of the node does not allow the call",
                     "wait for tomorrow (UTC), or raise node.budget_day");
        go_on(self);
      });
}

void begin(self_pointer self, std::string key) {
  auto& s = self->state;
  s.secrets = config::with_secrets(s.order.configuration->secrets, {key, s.order.provider.api_key});
  s.run_id = make_uuid_v7(s.order.context->ports.clock->now(), *s.order.context->ports.random);
  s.probe.emplace(s.order.provider, s.order.model, std::move(key));
  go_on(self);
}

void read_key(self_pointer self) {
  auto& s = self->state;
  const auto& file = s.order.provider.api_key_file;
  if (file.empty())
    return begin(self, s.order.provider.api_key);
  ask<workspace_reply>(
      self, s.order.workspace, workspace_request{{}, read_text_file{file, key_bytes}},
      [self, file](result<workspace_reply> r) {
        if (r)
          return begin(self, exec::key_in(r->text));
        answer<probe_reply>(self->state.promise,
                            fail(errc::not_found,
                                 "the key cannot be read: " + std::move(r.error().what), file,
                                 "put the key into this file, readable for the node's user"));
        self->quit();
      });
}

prober_impl::behavior_type prober_behavior(self_pointer self, probe_order order) {
  install_handlers(self, "prober");
  self->set_down_handler([self](caf::down_msg&) {
    auto& s = self->state;
    if (s.call)
      s.order.context->ports.http->cancel(*s.call);
    self->quit();
  });
  self->monitor(order.asker);
  self->state.order = std::move(order);
  return {
      [self](probe_query&) {
        self->state.promise = self->make_response_promise<result<probe_reply>>();
        read_key(self);
        return self->state.promise;
      },
      [self](probe_call_ended& m) { on_ended(self, m.transport); },
  };
}

} // namespace

prober_actor spawn_prober(caf::actor_system& system, probe_order order) {
  return system.spawn(prober_behavior, std::move(order));
}

} // namespace boyd
