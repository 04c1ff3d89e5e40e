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

using store_impl = with_keeper<store_actor>;
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

struct store_state {
  std::unique_ptr<store_keeper> keep;
  std::vector<queue_listener_actor> listeners;
  static inline const char* name = "store";
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
      self->send(l, dispatches_settled{{}, news.settled(), news.refused()});
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
  });
  return {
      [self](store_request& r) {
        const bool essential = is_essential(r);
        return self->state.keep->accept(std::move(r), essential);
      },
      [self](subscribe_queue& m) {
        faults::may_crash("parts.subscribe");
        if (m.listener) {
          self->monitor(m.listener);
          self->state.listeners.push_back(m.listener);
        }
      },
      [self](external_wakeup& m) {
        if (!faults::lost("store.wakeup"))
          tell(self, m.queued, true);
      },
      [self](health_query&) { return self->state.keep->health(); },
      [self](batch_done& m) {
        queue_news news;
        self->state.keep->on_done(m, [&](const auto& j) { news.collect(j); });
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
