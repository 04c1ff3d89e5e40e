#include "support/sim/store.hpp"

namespace boyd::sim {

void row_auditor::complain(const std::string& id, const char* what) const {
  if (broken)
    broken(id + ": " + what);
}

void row_auditor::added(const queue::queue_row& row) {
  const auto& d = row.d;
  if (!keys_.insert({d.kernel_id, d.cycle_id, d.agent_id}).second)
    complain(d.dispatch_id, "a second dispatch of one agent in one cycle");
}

void row_auditor::moved(const std::string& id, const row_brief& before, const row_brief& after,
                        row_move why, const attempt_holder& by, utc_time now) {
  const bool ran = before.status == dispatch_status::running;
  const bool changed = before.status != after.status || before.fence != after.fence;
  const bool given_back = why == row_move::settle || why == row_move::take_back;
  if (ran && changed && given_back && lapsed && before.lease_until && *before.lease_until < now)
    lapsed(id, before.owner);
  if (after.fence < before.fence)
    complain(id, "the fence went back");
  switch (why) {
  case row_move::claim:
    if (before.status != dispatch_status::pending || before.not_before > now)
      complain(id, "claimed before it was due, or by two");
    if (after.fence != before.fence + 1)
      complain(id, "claimed without a new fence");
    if (after.attempt != before.attempt + 1)
      complain(id, "claimed without counting the attempt");
    break;
  case row_move::settle:
    if (!changed)
      break; // refused, or a repeat
    if (!ran || before.fence != by.fence || before.owner != by.node_id)
      complain(id, "a stale result was accepted");
    if (!settled_.insert({id, by.fence}).second)
      complain(id, "settled twice under one fence");
    break;
  case row_move::take_back:
    if (!ran)
      complain(id, "taken back, but it did not run");
    break;
  case row_move::rescue:
    if (!ran || !before.lease_until || *before.lease_until > now)
      complain(id, "taken from an owner whose lease holds");
    else if (rescued)
      rescued(id, before.owner);
    break;
  case row_move::retry:
    break;
  case row_move::cancel:
    if (changed && before.status != dispatch_status::pending)
      complain(id, "cancelled in the queue while it ran or was over");
    break;
  }
}

} // namespace boyd::sim
