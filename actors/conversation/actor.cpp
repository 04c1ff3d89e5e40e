#include "actors/conversation/actor.hpp"

#include "actors/conversation/line.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/ports/clock.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/spdlog.h>

#include <mutex>
#include <utility>

namespace boyd {

namespace {

using namespace conversing;

/// The conversation has had its time.
struct conversation_overdue : message {};

using conversation_impl =
    conversation_actor::extend<caf::reacts_to<place_answer>, caf::reacts_to<call_returned>,
                               caf::reacts_to<call_again>, caf::reacts_to<conversation_overdue>>;

/// Of the record of one conversation; more is not kept.
constexpr std::size_t record_bytes = 4u << 20;

/// The dialogue, shared with the client's thread, which puts answers into it as they come.
struct shared_dialogue {
  std::mutex mutex;
  std::shared_ptr<exec::dialogue> core;
};

struct conversation_state {
  conversation_order order;
  targets_ptr targets;
  std::vector<std::string> secrets;
  std::shared_ptr<shared_dialogue> dialogue;
  line calls;
  caf::typed_response_promise<result<conversation_reply>> promise;
  std::string record;
  steady_time began{};
  bool over = false;
  static inline const char* name = "conversation";
};

using self_pointer = conversation_impl::stateful_pointer<conversation_state>;

steady_time now_of(self_pointer self) {
  return self->state.order.context->ports.clock->steady();
}

/// The last thing that it does.
void finish(self_pointer self, std::optional<error> cut) {
  auto& s = self->state;
  if (std::exchange(s.over, true))
    return;
  // Nothing waits for it: a record that cannot be written is in the workspace's health.
  if (!s.record.empty())
    caf::anon_send(
        s.order.workspace,
        workspace_request{{}, append_record{s.order.record, std::exchange(s.record, {})}});
  conversation_reply reply;
  reply.cut = std::move(cut);
  reply.took = std::chrono::duration_cast<milliseconds>(now_of(self) - s.began);
  if (s.dialogue) {
    const std::lock_guard lock(s.dialogue->mutex);
    reply.dialogue = std::exchange(s.dialogue->core, nullptr);
  }
  reply.secrets = s.secrets;
  if (s.promise.pending())
    answer<conversation_reply>(s.promise, std::move(reply));
  self->quit();
}

void note(self_pointer self, const std::string& json) {
  auto& s = self->state;
  if (s.order.record.empty() || s.record.size() + json.size() > record_bytes)
    return;
  s.record += record_line(*s.order.context, json, s.secrets);
}

void talk(self_pointer self, const dialogue_event& event);

/// In the place of the tool.
void answer_tool(self_pointer self, const exec::effect::run_tool& wanted) {
  const auto answer = self->state.order.answer_tool(wanted.call);
  const auto& text = answer.first;
  const bool is_error = answer.second;
  talk(self, [&](exec::dialogue& d) {
    auto* loop = dynamic_cast<exec::chat_loop*>(&d);
    return loop == nullptr ? exec::chat_effects{}
                           : loop->on_tool_result(wanted.step, text, is_error);
  });
}

/// Hands an event to the dialogue and carries out what comes of it.
void talk(self_pointer self, const dialogue_event& event) {
  auto& s = self->state;
  if (s.over || !s.dialogue)
    return;
  std::unique_lock lock(s.dialogue->mutex);
  auto effects = event(*s.dialogue->core);
  lock.unlock();
  for (auto& any : effects) {
    if (s.calls.perform(self, any))
      continue;
    if (const auto* n = std::get_if<exec::effect::note_turn>(&any))
      note(self, n->json);
    else if (const auto* warning = std::get_if<exec::effect::warn>(&any))
      spdlog::warn("{}: {}", s.order.caller, warning->text);
    else if (const auto* tool = std::get_if<exec::effect::run_tool>(&any);
             tool != nullptr && s.order.answer_tool)
      answer_tool(self, *tool);
    else if (std::holds_alternative<exec::effect::talk_over>(any))
      finish(self, std::nullopt);
  }
}

/// Ends the conversation from outside.
void cut_short(self_pointer self, errc code, const std::string& why) {
  talk(self, [&](exec::dialogue& d) { return d.stop(why); });
  finish(self, error{code, why, {}, {}});
}

void begin(self_pointer self) {
  auto& s = self->state;
  if (s.over)
    return;
  for (const auto& t : *s.targets)
    s.secrets = config::with_secrets(std::move(s.secrets), {t.key});
  s.dialogue = std::make_shared<shared_dialogue>();
  s.dialogue->core = s.order.make(*s.targets);
  s.calls.open({s.order.context, s.order.store, s.order.governor, s.order.caller, self->address(),
                [self](const dialogue_event& event) { talk(self, event); },
                [shared = s.dialogue](const std::function<void(exec::dialogue&)>& part) {
                  const std::lock_guard lock(shared->mutex);
                  if (shared->core)
                    part(*shared->core);
                }});
  talk(self, [](exec::dialogue& d) { return d.begin(); });
}

void open(self_pointer self) {
  auto& s = self->state;
  s.began = now_of(self);
  s.secrets = s.order.configuration->secrets;
  s.targets = std::make_shared<std::vector<exec::chat_target>>(s.order.targets);
  self->delayed_send(self, s.order.limit, conversation_overdue{});
  prepare(self, s.order.workspace, s.order.uses_findings ? s.order.store : store_actor{}, s.targets,
          [self](const result<void>& ready) {
            if (!ready)
              return finish(self, ready.error());
            begin(self);
          });
}

conversation_impl::behavior_type conversation_behavior(self_pointer self,
                                                       conversation_order order) {
  install_handlers(self, "conversation");
  self->set_down_handler(
      [self](caf::down_msg&) { cut_short(self, errc::cancelled, "the caller has ended"); });
  self->monitor(order.asker);
  self->state.order = std::move(order);
  return {
      [self](conversation_query&) {
        self->state.promise = self->make_response_promise<result<conversation_reply>>();
        auto promise = self->state.promise;
        open(self);
        return promise;
      },
      [self](stop_conversation&) {
        cut_short(self, errc::cancelled, "the cycle or the node is ending");
      },
      [self](place_answer& m) { self->state.calls.on_place(m); },
      [self](call_returned& m) { self->state.calls.on_returned(m); },
      [self](call_again& m) { self->state.calls.on_again(m); },
      [self](conversation_overdue&) {
        cut_short(self, errc::timed_out,
                  "no answer within " + format_duration(self->state.order.limit));
      },
  };
}

} // namespace

conversation_actor spawn_conversation(caf::actor_system& system, conversation_order order) {
  return system.spawn(conversation_behavior, std::move(order));
}

} // namespace boyd
