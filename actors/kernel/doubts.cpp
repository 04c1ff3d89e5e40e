#include "actors/kernel/state.hpp"
#include "actors/support/ask.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::kernel_impl {

namespace {

/// The same place in the ledger, not to be run.
store::open_occurrence kept_free(const store::open_occurrence& asked) {
  store::open_occurrence op{asked.slot, {}};
  op.slot.state = occurrence_state::skipped;
  op.slot.reason = "the database did not answer when the slot was opened";
  return op;
}

bool stands(const std::vector<occurrence>& rows, const occurrence& slot) {
  if (rows.empty())
    return false;
  const auto& row = rows.front();
  return row.scheduled_at == slot.scheduled_at && row.state == occurrence_state::open &&
         row.node_id == slot.node_id && row.trigger == slot.trigger &&
         row.created_at == slot.created_at && row.cycle_id == slot.cycle_id;
}

std::deque<doubtful_slot>::iterator doubt_of(self_pointer self, const occurrence& slot) {
  return std::ranges::find(self->state.doubtful, slot.scheduled_at,
                           [](const doubtful_slot& d) { return d.asked.slot.scheduled_at; });
}

/// It is asked again soon; what the store never takes is not to keep the gate shut for ever.
void undecided(self_pointer self, const occurrence& slot, const error& why) {
  auto& s = self->state;
  s.problem = to_string(why);
  if (const auto it = doubt_of(self, slot); it != s.doubtful.end())
    it->only_look = it->only_look || why.code == errc::bug;
  self->delayed_send(self, s.parts.context->housekeeping.retry, doubt_tick{});
}

/// It is known now whether it stands.
void decided(self_pointer self, const occurrence& slot, bool it_stands) {
  auto& s = self->state;
  const auto it = doubt_of(self, slot);
  if (it == s.doubtful.end())
    return settle_doubts(self);
  const auto doubt = std::move(*it);
  s.doubtful.erase(it);
  if (doubt.of_trigger)
    s.opening = false;
  if (it_stands) {
    spdlog::info("kernel {}: the slot {} was opened, although the database did not confirm it",
                 s.settings->kernel_id, format_rfc3339(doubt.asked.slot.scheduled_at));
    s.admitted.push_back(admitted(doubt.asked, doubt.asked.slot.cycle_id, doubt.only));
    cancel_replaced(self, doubt.replaced);
    start_next(self);
  }
  settle_doubts(self);
}

} // namespace

/// `store_unavailable` is said of what was not tried, and a disk without room has written nothing.
/// A `bug`: the store's worker has ended with it time and again, perhaps behind its commit.
bool is_doubt(const error& e) {
  return e.code == errc::commit_in_doubt || e.code == errc::timed_out ||
         e.code == errc::actor_down || e.code == errc::io_error || e.code == errc::conflict ||
         e.code == errc::bug;
}

void settle_doubts(self_pointer self) {
  auto& s = self->state;
  // An answer that is still to come may take a slot out of doubt.
  if (s.doubtful.empty() || s.deciding_doubt || s.asking_slots > 0 || s.stopping)
    return;
  s.deciding_doubt = true;
  const auto& doubt = s.doubtful.front();
  const auto& slot = doubt.asked.slot;
  store_request request;
  if (!doubt.only_look)
    request.add(kept_free(doubt.asked));
  const auto newest = request.add(store::list_occurrences{slot.kernel_id, slot.scheduled_at, 1});
  ask<store_reply>(self, s.parts.store, std::move(request),
                   [self, slot = slot, newest](result<store_reply> r) {
                     const auto rows = newest.of(r);
                     if (!rows)
                       return undecided(self, slot, rows.error());
                     self->state.deciding_doubt = false;
                     self->state.problem.clear();
                     decided(self, slot, stands(*rows, slot));
                   });
}

} // namespace boyd::kernel_impl
