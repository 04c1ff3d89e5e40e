#pragma once

#include "actors/keeper/core.hpp"
#include "messages/store.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace boyd {

/// What is queued by these requests, for each agent once; empty when the store has to be asked,
/// because it is much or due only later.
std::vector<queued_work> work_of(const store_request& request);

/// The newest cycles of few dispatches. Their kernels are told with a settlement how they stand,
/// which costs less there than a question of their own. Not of large ones: each settlement would
/// read all their rows.
class small_cycles {
 public:
  /// Remembers what a kernel has decided in this request.
  void note(const store_request& request);
  /// Adds a question for the rows of its cycle to the result of one dispatch.
  void ask_behind(store_request& request) const;

 private:
  struct cycle {
    std::string cycle_id;
    std::string kernel_id;
  };
  std::deque<cycle> newest_;
};

/// What listeners want to know of the requests of one transaction.
class queue_news {
 public:
  /// The next request of the transaction, with its answer.
  void collect(const job<store_request, store_reply>& j);

  bool has_work() const { return work_ || !queued_.empty(); }
  /// Each agent once; empty when the store has to be asked. What its dispatcher has claimed in the
  /// same transaction is not among it.
  std::vector<queued_work> queued() const;
  const std::vector<std::string>& settled() const { return settled_; }
  /// See dispatches_settled.
  const std::map<std::string, std::vector<dispatch>>& rows() const { return rows_; }
  const std::vector<dispatches_settled::refused_claim>& refused() const { return refused_; }

 private:
  void collect(const store::enqueue_cycle& op, const store::any_reply& any, std::uint64_t with);
  void collect(const store::claim& op, const store::any_reply& any, std::uint64_t with);
  void collect(const store::settle& op, const store::any_reply& any);
  void collect(const store::cancel_dispatch& op, const store::any_reply& any);
  void collect(const store::list_dispatches& op, const store::any_reply& any);

  /// Work of one agent, and the number under which it was told of before it was enqueued.
  struct told_work {
    queued_work what;
    std::uint64_t coming = 0;
  };

  bool work_ = false; ///< more than `queued_` tells
  std::vector<told_work> queued_;
  std::vector<std::string> settled_;
  std::map<std::string, std::vector<dispatch>> rows_;
  std::vector<dispatches_settled::refused_claim> refused_;
};

} // namespace boyd
