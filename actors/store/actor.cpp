#include "actors/store/actor.hpp"

#include "actors/keeper/actor.hpp"
#include "actors/store/performer.hpp"
#include "actors/support/fault_context.hpp"

#include <caf/actor_system.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

namespace boyd {

namespace {

using store_impl = with_keeper<store_actor>;
using store_keeper = keeper<store_impl::base, store_request, store_reply>;

class store_performer : public performer<store_request, store_reply> {
 public:
  store_performer(const node_context_ptr& context, std::shared_ptr<long_work> work)
      : context_(with_fault_points(context, faults::spool_files)),
        session_(context->ports.make_store(),
                 queue::settlement_spool(context_->ports.files, context->home + "/run/spool.jsonl"),
                 *context->ports.clock, std::move(work)) {}

  void perform(std::vector<job<store_request, store_reply>>& batch) override {
    session_.perform(batch);
  }
  void tidy() override { session_.tidy(); }
  void probe() override { session_.probe(); }
  part_health health() override { return session_.health(); }

 private:
  node_context_ptr context_;
  store_session session_;
};

struct store_state {
  std::unique_ptr<store_keeper> keep;
  std::vector<queue_listener_actor> listeners;
  std::unique_ptr<wakeup_source> wakeups;
  static inline const char* name = "store";
};

/// What listeners want to know of a finished request.
struct queue_news {
  bool work = false;               ///< more than `queued` tells
  std::vector<queued_work> queued; ///< each agent once
  std::vector<std::string> settled;
};

/// So much is told of; for more a question to the store is cheaper.
constexpr std::size_t most_told = 16;

void tell_one_more(const dispatch_spec& spec, queue_news& news) {
  const auto same = std::ranges::find_if(news.queued, [&](const queued_work& w) {
    return w.agent_id == spec.agent_id && w.kernel_id == spec.kernel_id;
  });
  if (same == news.queued.end()) {
    news.queued.push_back({spec.kernel_id, spec.agent_id, spec.priority, 1});
    return;
  }
  ++same->count;
  same->priority = std::max(same->priority, spec.priority);
}

void collect(const store::enqueue_cycle& op, const store::any_reply& any, queue_news& news) {
  const auto* reply = std::get_if<store::enqueue_cycle::reply>(&any);
  if (reply == nullptr || news.work)
    return;
  std::uint64_t told = op.specs.size();
  for (const auto& w : news.queued)
    told += w.count;
  if (told > most_told || reply->inserted < op.specs.size() ||
      std::ranges::any_of(op.specs, [](const auto& spec) { return spec.delay.count() > 0; }))
    news.work = true;
  else
    for (const auto& spec : op.specs)
      tell_one_more(spec, news);
}

void collect(const store::settle& op, const store::any_reply& any, queue_news& news) {
  const auto* results = std::get_if<std::vector<settle_result>>(&any);
  for (std::size_t i = 0; results != nullptr && i < results->size(); ++i) {
    if ((*results)[i] != settle_result::accepted)
      continue;
    news.settled.push_back(op.items[i].dispatch_id);
    news.work =
        news.work || op.items[i].to == settle_to::release || op.items[i].to == settle_to::retry;
  }
}

/// Only what was cancelled: a kernel that waits for a row which runs on would be told without end.
void collect(const store::cancel_dispatch& op, const store::any_reply& any, queue_news& news) {
  const auto* cancelled = std::get_if<store::cancel_dispatch::reply>(&any);
  if (cancelled != nullptr && cancelled->result == settle_result::accepted)
    news.settled.push_back(op.dispatch_id);
}

void collect(const job<store_request, store_reply>& j, queue_news& news) {
  if (!j.reply)
    return;
  for (std::size_t i = 0; i < j.request.operations.size() && i < j.reply->values.size(); ++i) {
    const auto& op = j.request.operations[i];
    if (const auto* s = std::get_if<store::settle>(&op))
      collect(*s, j.reply->values[i], news);
    else if (const auto* c = std::get_if<store::cancel_dispatch>(&op))
      collect(*c, j.reply->values[i], news);
    else if (const auto* e = std::get_if<store::enqueue_cycle>(&op))
      collect(*e, j.reply->values[i], news);
    else if (std::holds_alternative<store::retry_dispatch>(op) ||
             std::holds_alternative<store::take_back>(op) ||
             std::holds_alternative<store::rescue_expired>(op))
      news.work = true;
  }
}

/// Results of finished work are never refused for lack of room.
bool is_essential(const store_request& request) {
  return std::ranges::any_of(request.operations, [](const store::operation& op) {
    return std::holds_alternative<store::settle>(op) ||
           std::holds_alternative<store::renew_leases>(op);
  });
}

/// A store that can be read and ends its worker with each write does not work.
bool changes_something(const store_request& request) {
  return !std::ranges::all_of(request.operations, is_question);
}

void tell(store_impl::stateful_pointer<store_state> self, const queue_news& news) {
  for (const auto& l : self->state.listeners) {
    if (!news.settled.empty() && !faults::lost("queue.settled"))
      self->send(l, dispatches_settled{{}, news.settled});
    if ((news.work || !news.queued.empty()) && !faults::lost("queue.changed"))
      self->send(l, queue_changed{{}, news.work ? std::vector<queued_work>{} : news.queued});
  }
}

void listen(store_impl::stateful_pointer<store_state> self, const node_context_ptr& context) {
  if (!context->ports.listen)
    return;
  auto me = caf::actor_cast<caf::actor_addr>(store_actor(self));
  self->state.wakeups = context->ports.listen([me] {
    if (auto strong = caf::actor_cast<caf::actor>(caf::actor_cast<caf::strong_actor_ptr>(me)))
      caf::anon_send(strong, external_wakeup{});
  });
}

store_impl::behavior_type store_behavior(store_impl::stateful_pointer<store_state> self,
                                         node_context_ptr context) {
  install_handlers(self, "store");
  keeper_parts<store_request, store_reply> parts;
  parts.name = "store";
  parts.long_work = std::make_shared<long_work>();
  parts.make_performer = [context, work = parts.long_work] {
    return std::make_unique<store_performer>(context, work);
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
  listen(self, context);
  return {
      [self](store_request& r) {
        const bool essential = is_essential(r);
        return self->state.keep->accept(std::move(r), essential);
      },
      [self](subscribe_queue& m) {
        self->monitor(m.listener);
        self->state.listeners.push_back(m.listener);
      },
      [self](external_wakeup&) {
        if (!faults::lost("store.wakeup"))
          tell(self, {.work = true, .queued = {}, .settled = {}});
      },
      [self](health_query&) { return self->state.keep->health(); },
      [self](batch_done& m) {
        queue_news news;
        self->state.keep->on_done(m, [&](const auto& j) { collect(j, news); });
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
