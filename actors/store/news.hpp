#pragma once

#include "actors/keeper/core.hpp"
#include "messages/store.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace boyd {

/// What listeners want to know of the requests of one transaction.
class queue_news {
 public:
  /// The next request of the transaction, with its answer.
  void collect(const job<store_request, store_reply>& j);

  bool has_work() const { return work_ || !queued_.empty(); }
  /// Each agent once; empty when the store has to be asked.
  const std::vector<queued_work>& queued() const { return queued_; }
  const std::vector<std::string>& settled() const { return settled_; }
  const std::vector<dispatches_settled::refused_claim>& refused() const { return refused_; }

 private:
  void collect(const store::enqueue_cycle& op, const store::any_reply& any);
  void collect(const store::settle& op, const store::any_reply& any);
  void collect(const store::cancel_dispatch& op, const store::any_reply& any);

  /// Something the listeners have to ask the store about.
  void has_more_work();

  std::size_t rows_ = 0; ///< enqueued
  bool work_ = false;    ///< beside what `queued_` tells, which is then empty
  std::vector<queued_work> queued_;
  std::vector<std::string> settled_;
  std::vector<dispatches_settled::refused_claim> refused_;
};

} // namespace boyd
