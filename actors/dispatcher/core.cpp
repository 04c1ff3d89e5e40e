#include "actors/dispatcher/core.hpp"

#include "boyd/core/invariant.hpp"
#include "boyd/queue/due_work.hpp"
#include "boyd/queue/transitions.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace boyd {

namespace {

/// A full claim of more than this means that there may be as many more and again as many, whatever
/// the last count said; the first short one ends the series. Of fewer the count is believed, if it
/// was one and not the most that is counted, for whatever comes is told of: a claim for nothing
/// would stand in the way of what the one before it brought.
constexpr std::size_t counted_claim = 16;
/// Cancels of unknown ids kept during one claim; the pool tells every dispatcher of every cancel.
constexpr std::size_t most_early_cancels = 256;
/// A store that is away answers at once; asking it again in the same moment would never end.
constexpr milliseconds renew_retry = 1s;

queue::stop_cause stop_cause_of(const std::optional<cancel_cause>& cause) {
  if (!cause)
    return queue::stop_cause::none;
  switch (*cause) {
  case cancel_cause::operator_request:
  case cancel_cause::overlap:
    return queue::stop_cause::by_operator;
  case cancel_cause::shutdown:
  case cancel_cause::lease_lost:
  case cancel_cause::hurry:
    break;
  }
  return queue::stop_cause::shutting_down;
}

} // namespace

void dispatcher_core::set_limits(dispatcher_limits l) {
  limits_ = std::move(l);
}

void dispatcher_core::due(std::uint64_t count, int priority) {
  priority_ = priority;
  due_ = count;
  counted_ = count < queue::due_count_cap;
}

void dispatcher_core::more_due(std::uint64_t count, int priority, bool elsewhere) {
  priority_ = waiting() == 0 ? priority : std::max(priority_, priority);
  due_ += count;
  if (elsewhere && claiming_)
    unseen_ += count;
}

void dispatcher_core::granted(int permits) {
  permits_ += permits;
  wished_ = std::max(0, wished_ - permits);
}

void dispatcher_core::claimed(std::vector<claimed_dispatch> rows, steady_time call_started) {
  claiming_ = false;
  const auto early = std::exchange(early_cancels_, {});
  // New lease times hold from the next lease on, once those of the old kind are gone.
  if (leases_.size() == 0)
    leases_ = queue::held_leases(limits_.renewal, limits_.lease / 10);
  const auto left = due_ - std::min<std::uint64_t>(due_, rows.size());
  if (rows.size() < claim_size_) {
    due_ = 0;
    counted_ = true;
  } else {
    const bool is_believed = counted_ && claim_size_ <= counted_claim;
    due_ = is_believed ? left : std::max<std::uint64_t>(left, 2 * rows.size());
  }
  due_ = std::max(due_, std::exchange(unseen_, 0));
  for (auto& r : rows) {
    if (draining_) {
      give_back(r);
      continue;
    }
    if (auto it = early.find(r.row.dispatch_id); it != early.end()) {
      settle_unstarted(r, it->second);
      continue;
    }
    if (const auto refusal = queue::refusal_of(r.row)) {
      to_settle_.push_back(
          queue::decide_settlement(r, *refusal, limits_.retry, 0, queue::stop_cause::none));
      continue;
    }
    if (const auto older = running_.find(r.row.dispatch_id); older != running_.end()) {
      stand_behind(std::move(r), older->second, call_started);
      continue;
    }
    leases_.granted(r.row.dispatch_id, r.row.fence, call_started, r.lease);
    auto work = std::make_shared<const claimed_dispatch>(std::move(r));
    running_[work->row.dispatch_id] = {work, std::nullopt};
    --permits_;
    to_start_.push_back(std::move(work));
  }
  invariant(permits_ >= 0, "dispatcher: every claimed row has a permit");
}

/// A row that was taken from us while we slept comes to us again: the older attempt has lost its
/// fence. It is ended, and the new one begins when it is: one row never runs twice at a time here.
void dispatcher_core::stand_behind(claimed_dispatch r, const run& older, steady_time call_started) {
  const auto id = r.row.dispatch_id;
  if (r.row.fence <= older.work->row.fence)
    return; // told again
  leases_.granted(id, r.row.fence, call_started, r.lease);
  auto& place = behind_[id];
  if (!place)
    --permits_;
  place = std::make_shared<const claimed_dispatch>(std::move(r));
  cancel(id, cancel_cause::lease_lost, older.work->row.fence);
}

void dispatcher_core::drop_behind(const std::string& dispatch_id, cancel_cause cause) {
  const auto it = behind_.find(dispatch_id);
  if (it == behind_.end())
    return;
  settle_unstarted(*it->second, cause);
  leases_.released(dispatch_id, it->second->row.fence);
  behind_.erase(it);
  ++permits_back_;
}

void dispatcher_core::give_back(const claimed_dispatch& r) {
  to_settle_.push_back(
      queue::released(r.row.dispatch_id, r.row.fence, "returned to the queue before it started"));
}

void dispatcher_core::settle_unstarted(const claimed_dispatch& r, cancel_cause cause) {
  run_outcome o;
  o.execution = execution_verdict::cancelled;
  o.error = "cancelled before it started";
  o.summary = o.error;
  to_settle_.push_back(queue::decide_settlement(r, o, limits_.retry, 0, stop_cause_of(cause)));
}

void dispatcher_core::claim_failed() {
  claiming_ = false;
  early_cancels_.clear();
  due_ = 0;
  unseen_ = 0;
}

void dispatcher_core::finished(const std::string& dispatch_id, std::int64_t fence,
                               run_outcome outcome, double unit) {
  auto it = running_.find(dispatch_id);
  if (it == running_.end() || it->second.work->row.fence != fence)
    return;
  to_settle_.push_back(queue::decide_settlement(*it->second.work, std::move(outcome), limits_.retry,
                                                unit, stop_cause_of(it->second.cancelled)));
  leases_.released(dispatch_id, fence);
  running_.erase(it);
  // Back to the broker, even when more is due: somebody else's work may be more urgent.
  ++permits_back_;
  if (auto next = behind_.extract(dispatch_id)) {
    running_[dispatch_id] = {next.mapped(), std::nullopt};
    to_start_.push_back(std::move(next.mapped()));
  }
}

void dispatcher_core::cancel(const std::string& dispatch_id, cancel_cause cause,
                             std::int64_t fence) {
  auto it = running_.find(dispatch_id);
  if (it == running_.end()) {
    if (claiming_ && fence == 0 && early_cancels_.size() < most_early_cancels)
      early_cancels_.emplace(dispatch_id, cause);
    return;
  }
  const auto behind = behind_.find(dispatch_id);
  if (behind != behind_.end() && (fence == 0 || fence == behind->second->row.fence))
    drop_behind(dispatch_id, cause);
  if (fence != 0 && fence != it->second.work->row.fence)
    return;
  // What has its grace already has none left when its lease is lost, and little in a hurry; the
  // first cause stays.
  const bool hurries = cause == cancel_cause::lease_lost || cause == cancel_cause::hurry;
  if (it->second.cancelled && !hurries)
    return;
  it->second.cancelled = it->second.cancelled.value_or(cause);
  to_cancel_.emplace_back(dispatch_id, cause);
}

bool dispatcher_core::has(const std::string& dispatch_id, std::int64_t fence) const {
  const auto is_it = [&](const settlement& s) {
    return s.dispatch_id == dispatch_id && s.fence == fence;
  };
  const auto it = running_.find(dispatch_id);
  const auto next = behind_.find(dispatch_id);
  return (it != running_.end() && it->second.work->row.fence == fence) ||
         (next != behind_.end() && next->second->row.fence == fence) ||
         settling_.contains({dispatch_id, fence}) || std::ranges::any_of(to_settle_, is_it);
}

void dispatcher_core::settle(std::vector<settlement> items) {
  std::ranges::move(items, std::back_inserter(to_settle_));
}

void dispatcher_core::settled(const shared_list<settlement>& items) {
  for (const auto& item : items)
    if (auto it = settling_.find({item.dispatch_id, item.fence}); it != settling_.end())
      settling_.erase(it);
}

void dispatcher_core::settle_failed(const shared_list<settlement>& items) {
  settled(items);
  to_settle_.insert(to_settle_.end(), items.begin(), items.end());
}

void dispatcher_core::renewed(const std::vector<store::renew_leases::held>& asked,
                              const std::vector<std::string>& lost, steady_time call_started) {
  renewing_ = false;
  leases_.renewed(asked, lost, call_started, limits_.lease);
}

void dispatcher_core::renew_failed(steady_time now) {
  renewing_ = false;
  renew_again_ = now + std::min(renew_retry, longest_wait());
}

void dispatcher_core::drain() {
  draining_ = true;
  told_drained_ = false;
  // What waits for an older attempt's end has not begun.
  for (const auto& [id, next] : std::map(behind_))
    drop_behind(id, cancel_cause::shutdown);
}

bool dispatcher_core::resume() {
  if (told_drained_)
    return false;
  draining_ = false;
  return true;
}

void dispatcher_core::cancel_all(cancel_cause cause) {
  for (auto& [id, r] : running_)
    cancel(id, cause);
}

int dispatcher_core::free_places() const {
  const auto taken = running_.size() + behind_.size() + to_settle_.size() + settling_.size();
  return std::max(0, limits_.max_concurrent - static_cast<int>(taken));
}

void dispatcher_core::take_lost(steady_time now, dispatcher_actions& todo) {
  for (const auto& lost : leases_.take_lost(now)) {
    // A store that only this node can open gives our rows to nobody else.
    if (!limits_.shared_store)
      leases_.granted(lost.dispatch_id, lost.fence, now, limits_.lease);
    else
      cancel(lost.dispatch_id, cancel_cause::lease_lost, lost.fence);
  }
  todo.cancel = std::exchange(to_cancel_, {});
}

std::optional<steady_time> dispatcher_core::next_loss() const {
  return limits_.shared_store ? leases_.next_loss() : std::nullopt;
}

milliseconds dispatcher_core::longest_wait() const {
  return limits_.renewal / 2;
}

dispatcher_actions dispatcher_core::decide(steady_time now) {
  dispatcher_actions todo;
  todo.start = std::exchange(to_start_, {});
  take_lost(now, todo);
  todo.settle = std::exchange(to_settle_, {});
  for (const auto& item : todo.settle)
    settling_.emplace(item.dispatch_id, item.fence);
  if (!renewing_ && now >= renew_again_) {
    todo.renew = leases_.due(now);
    renewing_ = !todo.renew.empty();
  }
  const int places = draining_ ? 0 : free_places();
  const int useful =
      static_cast<int>(std::min<std::uint64_t>(waiting(), static_cast<std::uint64_t>(places)));
  if (!claiming_) {
    const int n = std::min({useful, permits_, static_cast<int>(limits::claim_batch)});
    if (n > 0) {
      claiming_ = true;
      claim_size_ = static_cast<std::size_t>(n);
      todo.claim = claim_size_;
    }
    permits_back_ += permits_ - std::max(n, 0);
    permits_ = std::max(n, 0);
  }
  todo.permits_back = std::exchange(permits_back_, 0);
  const int wish = std::max(0, useful - permits_);
  if (wish != wished_) {
    wished_ = wish;
    todo.wish = wish;
  }
  if (draining_ && !told_drained_ && running_.empty() && settling_.empty() && !claiming_) {
    told_drained_ = true;
    todo.drained = true;
  }
  return todo;
}

} // namespace boyd
