#include "actors/store/actor.hpp"

#include "actors/keeper/actor.hpp"
#include "actors/store/news.hpp"
#include "actors/store/performer.hpp"
#include "actors/support/fault_context.hpp"
#include "boyd/faults/points.hpp"

#include <caf/actor_system.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace boyd {

namespace {

/// What is held back has waited long enough.
struct coming_overdue : message {
  std::uint64_t number = 0;
};

using store_impl = with_keeper<store_actor>::extend<caf::reacts_to<coming_overdue>>;
using store_keeper = keeper<store_impl::base, store_request, store_reply>;

class store_performer : public performer<store_request, store_reply> {
 public:
  store_performer(const node_context_ptr& context, std::shared_ptr<long_work> work,
                  wake_function wake)
      : context_(with_fault_points(context, faults::spool_files)),
        session_(context->ports.make_store(),
                 queue::settlement_spool(context_->ports.files, context->layout().spool()),
                 *context->ports.clock, std::move(work), context->workers) {
    if (context->ports.listen)
      wakeups_ = context->ports.listen(std::move(wake));
  }

  void perform(std::vector<job<store_request, store_reply>>& batch) override {
    session_.perform(batch);
  }
  void tidy() override { session_.tidy(); }
  void probe() override { session_.probe(); }
  part_health health() override { return session_.health(); }

 private:
  node_context_ptr context_;
  store_session session_;
  std::unique_ptr<wakeup_source> wakeups_; ///< here, for its end may take time
};

/// Work that waits for the claims that share its transaction.
struct coming_work {
  std::vector<store_keeper::held_request> together; ///< the work first, then its claims
  std::size_t missing = 0;                          ///< answers
};

struct store_state {
  std::unique_ptr<store_keeper> keep;
  std::vector<queue_listener_actor> listeners;
  work_taker_actor taker;
  std::uint64_t announced = 0;       ///< the newest number
  bool pass_next = false;            ///< the latest work with its claims failed
  std::optional<coming_work> coming; ///< of that number
  small_cycles small;
  static inline const char* name = "store";

  /// CAF drops promises silently.
  ~store_state() {
    if (coming)
      for (auto& held : coming->together)
        held.asker.deliver(
            result<store_reply>(fail(errc::actor_down, "the part is going down", name)));
  }
};

using self_pointer = store_impl::stateful_pointer<store_state>;

/// Results of finished work are never refused for lack of room.
bool is_essential(const store_request& request) {
  return std::ranges::any_of(request.operations, [](const store::operation& op) {
    return std::holds_alternative<store::settle>(op) ||
           std::holds_alternative<store::renew_leases>(op);
  });
}

/// A store that can be read and ends its worker with each write does not work.
bool changes_something(const store_request& request) {
  return !std::ranges::all_of(request.operations, store::is_question);
}

void tell_settled(self_pointer self, const queue_news& news) {
  for (const auto& l : self->state.listeners)
    if ((!news.settled().empty() || !news.refused().empty()) && !faults::lost("queue.settled"))
      self->send(l, dispatches_settled{{}, news.settled(), news.rows(), news.refused()});
}

/// `queued` empty: the store has to be asked.
void tell(self_pointer self, const std::vector<queued_work>& queued, bool elsewhere) {
  for (const auto& l : self->state.listeners)
    if (!faults::lost("queue.changed"))
      self->send(l, queue_changed{{}, queued, elsewhere});
}

void tell(self_pointer self, const queue_news& news) {
  tell_settled(self, news);
  if (news.has_work())
    tell(self, news.queued(), false);
}

// -- work and its claims in one transaction ------------------------------------------------------

/// Whatever has come of it goes to the worker.
void let_go(self_pointer self) {
  auto& s = self->state;
  auto all = std::move(s.coming->together);
  s.coming.reset();
  s.keep->accept(std::move(all));
}

/// Holds a little work back until those who can run it have claimed it; null: this is not such.
std::optional<store_keeper::promise> hold_back(self_pointer self, store_request& r) {
  auto& s = self->state;
  if (s.coming || !s.taker || r.with != 0)
    return std::nullopt;
  auto work = work_of(r);
  // A claim that always fails must not keep the work out for ever.
  if (work.empty() || std::exchange(s.pass_next, false))
    return std::nullopt;
  r.with = ++s.announced;
  auto asker = self->make_response_promise<result<store_reply>>();
  s.coming.emplace().missing = work.size();
  s.coming->together.push_back({std::move(r), asker});
  self->delayed_send(self, limits::claim_patience, coming_overdue{{}, s.announced});
  if (!faults::lost("queue.coming"))
    self->send(s.taker, work_coming{{}, s.announced, std::move(work)});
  return asker;
}

/// Takes an answer to what is held back, or one that comes too late; null: this is none.
std::optional<store_keeper::promise> take_answer(self_pointer self, store_request& r) {
  auto& s = self->state;
  if (r.with == 0)
    return std::nullopt;
  const bool waited_for = s.coming && r.with == s.announced;
  if (!waited_for && !r.operations.empty())
    return std::nullopt;
  auto asker = self->make_response_promise<result<store_reply>>();
  if (r.operations.empty())
    asker.deliver(result<store_reply>(store_reply{}));
  else
    s.coming->together.push_back({std::move(r), asker});
  if (waited_for && --s.coming->missing == 0)
    let_go(self);
  return asker;
}

/// Whether it asks for what is held back: a part that is started anew looks for what its
/// predecessor has claimed (running rows) or enqueued (decisions).
bool looks_for_held(const store_request& r) {
  return std::ranges::any_of(r.operations, [](const store::operation& op) {
    if (const auto* list = std::get_if<store::list_dispatches>(&op))
      return list->status == dispatch_status::running;
    return std::holds_alternative<store::take_back>(op) ||
           std::holds_alternative<store::list_decisions>(op);
  });
}

store_keeper::promise accept(self_pointer self, store_request& r) {
  if (self->state.coming && looks_for_held(r))
    let_go(self);
  self->state.small.note(r);
  // Between others it would be asked within their transaction, again for each result.
  if (self->state.keep->is_idle())
    self->state.small.ask_behind(r);
  if (auto asker = take_answer(self, r))
    return *asker;
  if (auto asker = hold_back(self, r))
    return *asker;
  const bool essential = is_essential(r);
  return self->state.keep->accept(std::move(r), essential);
}

/// Tells the store, from any thread and also when it is gone, that another node has work.
wake_function wake_of(self_pointer self) {
  return [me = caf::actor_cast<caf::actor_addr>(store_actor(self))](std::vector<queued_work> work) {
    if (auto strong = caf::actor_cast<caf::actor>(caf::actor_cast<caf::strong_actor_ptr>(me)))
      caf::anon_send(strong, external_wakeup{{}, std::move(work)});
  };
}

store_impl::behavior_type store_behavior(self_pointer self, node_context_ptr context) {
  install_handlers(self, "store");
  keeper_parts<store_request, store_reply> parts;
  parts.name = "store";
  parts.long_work = std::make_shared<long_work>();
  parts.make_performer = [context, work = parts.long_work, wake = wake_of(self)] {
    return std::make_unique<store_performer>(context, work, wake);
  };
  parts.clock = context->ports.clock;
  parts.random = context->ports.random;
  parts.restarts = context->restarts;
  parts.roll = context->workers;
  parts.worker_intensity = vital_intensity;
  parts.detached = context->detached_workers;
  parts.probe_interval = context->housekeeping.probe;
  parts.idle_probe_interval = context->housekeeping.idle_probe;
  parts.is_proof = changes_something;
  parts.limits = {limits::store_queue, limits::store_group, limits::store_queue};
  auto& state = self->state;
  state.keep = std::make_unique<store_keeper>(self, std::move(parts));
  state.keep->start([self](const caf::down_msg& m) {
    std::erase_if(self->state.listeners, [&](const auto& l) { return l.address() == m.source; });
    if (!self->state.taker || self->state.taker.address() != m.source)
      return;
    self->state.taker = nullptr;
    if (self->state.coming)
      let_go(self);
  });
  return {
      [self](store_request& r) { return accept(self, r); },
      [self](subscribe_queue& m) {
        faults::may_crash("parts.subscribe");
        if (m.listener) {
          self->monitor(m.listener);
          self->state.listeners.push_back(m.listener);
        }
        if (m.taker)
          self->state.taker = m.taker;
      },
      [self](coming_overdue& m) {
        if (self->state.coming && m.number == self->state.announced)
          let_go(self);
      },
      [self](external_wakeup& m) {
        if (!faults::lost("store.wakeup"))
          tell(self, m.queued, true);
      },
      [self](health_query&) { return self->state.keep->health(); },
      [self](batch_done& m) {
        queue_news news;
        self->state.keep->on_done(m, [&](const auto& j) {
          self->state.pass_next |= j.request.with != 0 && !j.reply;
          news.collect(j);
        });
        tell(self, news);
      },
      [self](ping&) { return self->state.keep->pulse(); },
      [self](keeper_tick& m) { self->state.keep->on_tick(m); },
      [self](restart_worker& m) { self->state.keep->on_restart(m); },
  };
}

} // namespace

store_actor spawn_store(caf::actor_system& system, node_context_ptr context) {
  return system.spawn(store_behavior, std::move(context));
}

} // namespace boyd
