#pragma once

#include "boyd/core/dispatch.hpp"
#include "boyd/queue/leases.hpp"
#include "boyd/queue/settlement.hpp"
#include "messages/dispatching.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// Settings of one dispatcher; replaced by a reload.
struct dispatcher_limits {
  int max_concurrent = 1;
  queue::retry_limits retry;
  milliseconds lease = limits::lease;
  milliseconds renewal = limits::lease_renewal;
  /// Attempts stop when their lease runs out by our own clock: others may take the row over.
  bool shared_store = false;
};

/// What a dispatcher must do now, in this order.
struct dispatcher_actions {
  std::vector<settlement> settle;
  std::vector<std::pair<std::string, cancel_cause>> cancel; ///< running attempts to end
  std::vector<std::shared_ptr<const claimed_dispatch>> start;
  std::size_t claim = 0; ///< claim so many; 0: none
  int permits_back = 0;
  std::optional<int> wish; ///< permits wanted now, when that has changed
  std::vector<store::renew_leases::held> renew;
  bool drained = false; ///< nothing runs and nothing will: tell the pool, once per drain order
};

/// The decisions of one agent's dispatcher: permit first, then claim, so that a claimed row always
/// has a place to run ("never fetch more than you can run"). Permits and rows in hand never exceed
/// the limits. CAF-free.
class dispatcher_core {
 public:
  explicit dispatcher_core(dispatcher_limits l)
      : limits_(std::move(l)), leases_(limits_.renewal, limits_.lease / 10) {}

  void set_limits(dispatcher_limits l);

  /// The pool's word on due work.
  void due(std::uint64_t count, int priority);
  /// There is so much beside what is known. `elsewhere`: another node says so, and a claim that is
  /// under way may have been made before.
  void more_due(std::uint64_t count, int priority, bool elsewhere = false);
  void granted(int permits);
  /// The answer to a claim that was begun at `call_started`.
  void claimed(std::vector<claimed_dispatch> rows, steady_time call_started);
  /// The claim failed (store away): the permits go back, and work is asked for again later.
  void claim_failed();
  /// An attempt is over; `unit` is uniform in [0, 1), for the back-off.
  void finished(const std::string& dispatch_id, std::int64_t fence, run_outcome outcome,
                double unit);
  /// Somebody wants this attempt to end. Also heard while the claim that brings it is under way:
  /// the store has it running before we know.
  /// A fence that is not 0 names the attempt: another one goes on.
  void cancel(const std::string& dispatch_id, cancel_cause cause, std::int64_t fence = 0);
  /// Ends of attempts that did not run here.
  void settle(std::vector<settlement> items);
  /// The store took (or refused for good) these settlements.
  void settled(const shared_list<settlement>& items);
  /// The store could not take them: they are offered again by the next tick.
  void settle_failed(const shared_list<settlement>& items);
  void renewed(const std::vector<store::renew_leases::held>& asked,
               const std::vector<std::string>& lost, steady_time call_started);
  /// The store could not renew them: it is tried again a second later, or sooner for a short lease.
  void renew_failed(steady_time now);

  /// No more claims; what runs may finish. Every call is answered by one `drained`.
  void drain();
  /// Undoes `drain()`; false when `drained` was told already: then somebody else takes over.
  bool resume();
  /// The grace is over: what runs is cancelled and given back.
  void cancel_all(cancel_cause cause);

  /// What to do now; call after every event, and while something runs after `longest_wait`, too.
  dispatcher_actions decide(steady_time now);

  /// Whether this attempt runs here, is to begin, or has an end that the store has not taken yet.
  bool has(const std::string& dispatch_id, std::int64_t fence) const;
  /// When the next lease counts as lost if nothing renews it: `decide` is to be called then.
  std::optional<steady_time> next_loss() const;
  /// Between two `decide` at most, so that a lease is renewed well before it is lost.
  milliseconds longest_wait() const;

  /// Ends that `decide` has not given out yet: for who ends without another one.
  std::vector<settlement> unsettled() { return std::exchange(to_settle_, {}); }

  int running() const { return static_cast<int>(running_.size()); }
  int limit() const { return limits_.max_concurrent; }
  std::uint64_t waiting() const { return due_; }
  int priority() const { return priority_; }

 private:
  struct run {
    std::shared_ptr<const claimed_dispatch> work;
    std::optional<cancel_cause> cancelled;
  };

  int free_places() const;
  void give_back(const claimed_dispatch& r);
  void settle_unstarted(const claimed_dispatch& r, cancel_cause cause);
  void stand_behind(claimed_dispatch r, const run& older, steady_time call_started);
  void drop_behind(const std::string& dispatch_id, cancel_cause cause);
  void take_lost(steady_time now, dispatcher_actions& todo);

  dispatcher_limits limits_;
  queue::held_leases leases_;
  std::map<std::string, run> running_;
  /// Later claims of rows whose attempt here has not ended, each with its permit and lease.
  std::map<std::string, std::shared_ptr<const claimed_dispatch>> behind_;
  std::vector<std::shared_ptr<const claimed_dispatch>> to_start_;
  std::vector<std::pair<std::string, cancel_cause>> to_cancel_;
  std::map<std::string, cancel_cause> early_cancels_; ///< of unknown ids, while claiming
  std::vector<settlement> to_settle_;
  std::multiset<std::pair<std::string, std::int64_t>> settling_; ///< with the store, not answered
  std::uint64_t due_ = 0;
  bool counted_ = true;      ///< due_ is a count, and not the most that is counted
  std::uint64_t unseen_ = 0; ///< of due_: told of by others while a claim was under way
  int priority_ = 0;
  int permits_ = 0;      ///< in hand for the claim that is under way or comes next
  int permits_back_ = 0; ///< to be returned
  std::size_t claim_size_ = 0;
  int wished_ = 0;
  bool claiming_ = false;
  bool renewing_ = false;
  steady_time renew_again_{}; ///< not before, after a failure
  bool draining_ = false;
  bool told_drained_ = false;
};

} // namespace boyd
