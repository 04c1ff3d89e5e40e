#include "actors/dispatcher/pool_parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/final_refusal.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/queue/settlement.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::dispatcher_pool {

namespace {

void log_recovered(const char* whose, const store::take_back::reply& r) {
  if (!r.returned.empty())
    spdlog::info("dispatchers: {} interrupted {} dispatches returned to the queue",
                 r.returned.size(), whose);
  for (const auto& id : r.poisoned)
    spdlog::error("dispatchers: {} was interrupted too often and has failed; fix the cause, then "
                  "run: boyd dispatches retry {}",
                  id, id);
}

/// They may claim now.
void begin(self_pointer self) {
  auto& s = self->state;
  s.claiming = true;
  for (const auto& k : s.configuration->kernels)
    cancel_unknown(self, k.kernel_id, {});
  ask_due(self);
}

void try_again(self_pointer self, const error& why) {
  self->state.store_problem = to_string(why);
  self->delayed_send(self, self->state.context->housekeeping.retry, start_claiming{});
}

/// This node's rows with a lease that has run out, as after a suspend: their dispatchers know which
/// of them run. Where there is none, and none is to come, nobody else would give them back.
void look_after_own(self_pointer self, std::vector<store::rescue_expired::own_row> rows) {
  auto& s = self->state;
  std::map<std::string, expired_rows> by_member;
  for (auto& row : rows)
    by_member[child_id(row.kernel_id, row.agent_id)].rows.push_back(std::move(row));
  std::vector<settlement> left;
  const auto children = by_member.empty() ? std::vector<child_view>{} : s.shell->view();
  for (auto& [id, told] : by_member) {
    const auto child = std::ranges::find(children, id, &child_view::id);
    if (auto d = handle_of(self, id))
      self->send(d, std::move(told));
    else if (child == children.end() || child->state == "parked")
      for (const auto& row : told.rows)
        left.push_back(queue::released(row.dispatch_id, row.fence, "not started"));
  }
  if (!left.empty())
    ask_store(self, s.services.store, store::settle{s.context->node_id, std::move(left)},
              [](result<store::settle::reply>) {
                // The next sweep repairs a lost one.
              });
}

/// How often it looks: so that a lease which is shorter than the usual sweep is seen before it
/// ends, too.
milliseconds sweep_interval(self_pointer self) {
  const auto& s = self->state;
  const auto usual = s.context->housekeeping.sweep;
  const milliseconds lease = s.configuration->node_settings.lease;
  return lease < limits::rescue_sweep ? std::min(usual, lease) : usual;
}

/// What a dead node had runs elsewhere when its lease ends, and not a sweep later. A node that
/// lives renews its leases long before: nothing of it ends within a sweep. Ends that are close
/// together are waited for together; at one that somebody else is at, he may fail.
void watch_lease(self_pointer self, const store::rescue_expired::reply& r) {
  constexpr milliseconds closest = 100ms;
  auto& s = self->state;
  auto wait = std::max(r.next_in.value_or(milliseconds::max()), closest);
  if (r.some_left)
    wait = std::min(wait, s.context->housekeeping.retry);
  if (wait >= sweep_interval(self))
    return;
  const auto end = s.context->ports.clock->steady() + wait;
  if (s.lease_end && *s.lease_end <= end)
    return;
  s.lease_end = end;
  self->delayed_send(self, wait, lease_over{{}, ++s.lease_generation});
}

} // namespace

/// In bounded batches.
void recover(self_pointer self) {
  auto& s = self->state;
  if (auto passed = faults::pass("dispatchers.recover"); !passed)
    return try_again(self, passed.error());
  if (s.context->own_rows_recovered->load())
    return begin(self);
  store::take_back op;
  op.node_id = s.context->node_id;
  op.max_rescues = limits::max_rescues;
  ask_store(
      self, s.services.store, op, [self, limit = op.limit](result<store::take_back::reply> r) {
        if (!r && is_final_refusal(r.error())) {
          // The sweep tries these rows again; new work does not wait for them.
          spdlog::error("dispatchers: cannot recover interrupted work yet: {}",
                        to_string(r.error()));
          return begin(self);
        }
        if (!r)
          return try_again(self, r.error());
        const auto& st = self->state;
        log_recovered("own", *r);
        if (st.context->after_crash && !r->returned.empty())
          self->send(st.services.permits, permit_pacing{{}, static_cast<int>(r->returned.size())});
        if (r->returned.size() + r->poisoned.size() >= limit)
          return recover(self);
        st.context->own_rows_recovered->store(true);
        begin(self);
      });
}

/// Page by page, at once: a node that died may have left many, and each waits for the one before.
/// When the store is away it is tried again soon: a dead node's work has waited for a whole lease
/// by now, and a sweep is long. What somebody is in the way of waits for the next sweep.
void rescue(self_pointer self) {
  if (std::exchange(self->state.rescuing, true))
    return;
  store::rescue_expired op{self->state.context->node_id, limits::max_rescues};
  ask_store(self, self->state.services.store, op,
            [self, limit = op.limit](result<store::rescue_expired::reply> r) {
              auto& s = self->state;
              s.rescuing = !r && (r.error().code == errc::store_unavailable ||
                                  r.error().code == errc::commit_in_doubt ||
                                  r.error().code == errc::actor_down);
              if (s.rescuing)
                self->delayed_send(self, s.context->housekeeping.retry, rescue_again{});
              s.rescue_doubted = s.rescue_doubted || !r;
              if (!r)
                return;
              log_recovered("expired", *r);
              look_after_own(self, std::move(r->own));
              watch_lease(self, *r);
              // Of what an unanswered one has returned nobody was told.
              if (std::exchange(s.rescue_doubted, false))
                ask_due(self);
              if (r->returned.size() + r->poisoned.size() >= limit)
                rescue(self);
            });
}

void sweep(self_pointer self) {
  auto& s = self->state;
  const auto& every = s.context->housekeeping;
  self->delayed_send(self, s.context->shared_store ? sweep_interval(self) : every.sweep_alone,
                     sweep_tick{});
  // Before the first work is queued: what nobody else has is left to a node that is known. Who only
  // reads a home is not its node.
  if (!s.context->passive)
    ask_store(self, s.services.store,
              store::beat{s.context->node_id, s.context->host, s.context->pid},
              [](result<store::ok>) {
                // Membership only; the next beat repairs a lost one.
              });
  if (s.claiming)
    rescue(self);
}

} // namespace boyd::dispatcher_pool
