#pragma once

#include "actors/support/ask.hpp"
#include "actors/support/node_context.hpp"
#include "boyd/exec/chat_targets.hpp"
#include "boyd/model/probe.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_addr.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The calls of a conversation with a model, for the actor that leads it: an attempt
/// (actors/executor), or an actor of its own (actors/conversation/actor.hpp).
namespace boyd::conversing {

/// The transport has ended a call.
struct call_returned : message {
  std::uint64_t call = 0;
  result<void> transport;
};

/// The wait before a repetition is over.
struct call_again : message {
  std::uint64_t call = 0;
};

/// An event of the dialogue, and what comes of it.
using dialogue_event = std::function<exec::chat_effects(exec::dialogue&)>;

/// Carries out the effects of one dialogue that concern calls: the place at the governor, the
/// reservation, the request, the repetition. The owner is an actor, and takes place_answer,
/// call_returned and call_again. Ends the call that is under way with itself. One thread: the
/// owner's.
class line {
 public:
  struct parts {
    node_context_ptr context;
    store_actor store;
    governor_actor governor; ///< may be null where the dialogue asks for no place
    std::string caller;      ///< KERNEL/AGENT: callers take turns at the governor
    caf::actor_addr owner;
    /// Hands an event to the dialogue and performs what comes of it. On the owner's thread.
    std::function<void(const dialogue_event&)> talk;
    /// Hands a part of an answer to the dialogue. On the client's thread: it holds no actor.
    std::function<void(const std::function<void(exec::dialogue&)>&)> hear;
  };

  line() = default;
  ~line() { cancel(); }
  line(const line&) = delete;
  line& operator=(const line&) = delete;

  /// Before all else.
  void open(parts p) { parts_ = std::move(p); }

  /// False: the effect does not concern calls.
  template <class Self>
  bool perform(Self* self, exec::chat_effect& any) {
    if (auto* r = std::get_if<exec::effect::reserve>(&any)) {
      ask_store(self, parts_.store, std::move(r->what),
                [this, call = r->call](const result<store::reserve_spend::reply>& reply) {
                  parts_.talk([&](exec::dialogue& d) { return d.on_reserved(call, reply); });
                });
    } else if (const auto* w = std::get_if<exec::effect::wait_repeat>(&any)) {
      self->delayed_send(self, w->delay, call_again{{}, w->call});
    } else {
      return perform_plain(any);
    }
    return true;
  }

  void on_place(const place_answer& m) const;
  void on_returned(const call_returned& m);
  void on_again(const call_again& m) const;

 private:
  bool perform_plain(exec::chat_effect& any);
  void start(exec::effect::call_model& e);
  void cancel();
  void release(const std::string& provider_id, std::uint64_t call,
               std::optional<call_ended> ended) const;

  parts parts_;
  std::optional<std::pair<std::uint64_t, http_handle>> under_way_;
};

/// One line of a record: `json`, an object with members, with the time before them.
std::string record_line(const node_context& context, const std::string& json,
                        const std::vector<std::string>& secrets);

using targets_ptr = std::shared_ptr<std::vector<exec::chat_target>>;

/// The part did not answer: nothing is known of what it was asked.
inline bool is_silence(const error& e) {
  return e.code == errc::overloaded || e.code == errc::actor_down || e.code == errc::timed_out;
}

/// Of a file with a key.
inline constexpr std::size_t key_bytes = 1u << 20;

/// `not_found`, but for a workspace that did not answer.
error key_trouble(const std::string& file, const error& why);
/// What `boyd doctor --provider` found stands for what the configuration leaves open.
void take_findings(exec::chat_target& target, const store::get_facts::reply& facts);

/// Reads the key of each target from `from` on that has one in a file, then what is known of its
/// provider (`store` null: nothing is). `done(result<void>)`: key_trouble, or the store's error.
template <class Self, class Done>
void prepare(Self* self, const workspace_actor& workspace, const store_actor& store,
             const targets_ptr& targets, Done done, std::size_t from = 0) {
  const auto next = [=] { prepare(self, workspace, store, targets, done, from + 1); };
  const auto look_up = [=] {
    const auto& provider = (*targets)[from].provider;
    if (!store || !exec::leaves_open(provider))
      return next();
    ask_store(self, store, store::get_facts{model::findings_scope(provider.provider_id)},
              [=](const result<store::get_facts::reply>& facts) {
                if (!facts)
                  return done(result<void>(fail(facts.error())));
                take_findings((*targets)[from], *facts);
                next();
              });
  };
  if (from == targets->size())
    return done(result<void>{});
  const auto& file = (*targets)[from].provider.api_key_file;
  if (file.empty())
    return look_up();
  ask<workspace_reply>(self, workspace, workspace_request{{}, read_text_file{file, key_bytes}},
                       [=](const result<workspace_reply>& r) {
                         if (!r)
                           return done(result<void>(fail(key_trouble(file, r.error()))));
                         (*targets)[from].key = exec::key_in(r->text);
                         look_up();
                       });
}

} // namespace boyd::conversing
