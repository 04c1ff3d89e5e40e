#pragma once

#include "boyd/core/invariant.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// One request on its way through a keeper and its worker.
template <class Request, class Reply>
struct job {
  Request request;
  result<Reply> reply = fail(errc::bug, "the worker left this request unanswered");
  int crashes = 0; ///< how often a worker died with it

  explicit job(Request r) : request(std::move(r)) {}
};

/// How many requests a keeper holds and joins.
struct keeper_limits {
  std::size_t queue = 1024; ///< beyond it ordinary requests are answered `overloaded`
  std::size_t group = 64;   ///< joined into one batch for the worker
  /// Requests that must not be refused (results of finished work) may use this much more.
  std::size_t reserve = 1024;
};

/// A worker that died this often with the same request alone in its batch: the request is answered
/// with an error instead of ending the next worker too.
inline constexpr int keeper_poison_crashes = 2;

/// The decisions of a keeper: a bounded queue with sequence numbers, one batch in flight, re-queued
/// when its worker dies. CAF-free. `Ticket` is whatever the shell needs to answer (a promise).
template <class Request, class Reply, class Ticket>
class keeper_core {
 public:
  using job_type = job<Request, Reply>;
  using batch_type = std::vector<job_type>;

  struct answer {
    Ticket ticket;
    result<Reply> reply;
  };

  explicit keeper_core(keeper_limits l = {}) : limits_(l) {}

  /// Takes a request in; false: refused, the queue is full.
  bool accept(Request request, Ticket ticket, bool essential = false) {
    if (waiting_.size() >= limits_.queue + (essential ? limits_.reserve : 0))
      return false;
    waiting_.push_back({job_type(std::move(request)), std::move(ticket)});
    return true;
  }

  /// The next batch for a free worker, with its sequence number; null when there is none or one is
  /// in flight. A request that already killed a worker travels alone.
  std::shared_ptr<batch_type> next_batch() {
    if (in_flight_ || waiting_.empty())
      return nullptr;
    auto batch = std::make_shared<batch_type>();
    const bool alone = waiting_.front().item.crashes > 0;
    const std::size_t n = alone ? 1 : std::min(limits_.group, waiting_.size());
    for (std::size_t i = 0; i < n && (i == 0 || waiting_.front().item.crashes == 0); ++i) {
      batch->push_back(std::move(waiting_.front().item));
      tickets_.push_back(std::move(waiting_.front().ticket));
      waiting_.pop_front();
    }
    in_flight_ = batch;
    ++sequence_;
    return batch;
  }

  std::uint64_t sequence() const { return sequence_; }

  /// The worker is through with batch `sequence`: its answers in order. A late word of a dead
  /// worker (another sequence) is ignored.
  std::vector<answer> complete(std::uint64_t sequence) {
    std::vector<answer> answers;
    if (!in_flight_ || sequence != sequence_)
      return answers;
    invariant(in_flight_->size() == tickets_.size(), "keeper: a batch keeps its requests");
    answers.reserve(tickets_.size());
    for (std::size_t i = 0; i < tickets_.size(); ++i)
      answers.push_back({std::move(tickets_[i]), std::move((*in_flight_)[i].reply)});
    clear_flight();
    return answers;
  }

  /// The worker died: what was in flight goes back to the front, in order; requests that have
  /// killed too many workers are answered instead. A performer must therefore not move
  /// from a job's request.
  std::vector<answer> worker_died(const std::string& why) {
    std::vector<answer> answers;
    if (!in_flight_)
      return answers;
    for (std::size_t i = tickets_.size(); i-- > 0;) {
      auto& j = (*in_flight_)[i];
      ++j.crashes;
      if (j.crashes >= keeper_poison_crashes && tickets_.size() == 1)
        answers.push_back(
            {std::move(tickets_[i]), fail(errc::bug, "the request ends its worker: " + why)});
      else
        waiting_.push_front({std::move(j), std::move(tickets_[i])});
    }
    clear_flight();
    ++sequence_;
    return answers;
  }

  bool busy() const { return in_flight_ != nullptr; }
  std::size_t waiting() const { return waiting_.size(); }

  /// Every ticket that has no answer yet, for an orderly end.
  std::vector<Ticket> drain() {
    std::vector<Ticket> all = std::move(tickets_);
    for (auto& w : waiting_)
      all.push_back(std::move(w.ticket));
    waiting_.clear();
    clear_flight();
    return all;
  }

 private:
  struct entry {
    job_type item;
    Ticket ticket;
  };

  void clear_flight() {
    in_flight_.reset();
    tickets_.clear();
  }

  keeper_limits limits_;
  std::deque<entry> waiting_;
  std::shared_ptr<batch_type> in_flight_;
  std::vector<Ticket> tickets_;
  std::uint64_t sequence_ = 0;
};

} // namespace boyd
