#pragma once

#include "boyd/core/result.hpp"
#include "boyd/queue/approvals.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boyd::queue {

/// What an operation on the inbox needs of a store, inside the store's transaction. Each store has
/// its own; throws what the store throws.
class approval_rows {
 public:
  virtual ~approval_rows() = default;

  /// The time of the transaction.
  virtual utc_time now() = 0;
  /// The dispatch runs, under this fence.
  virtual bool run_lives(const std::string& dispatch_id, std::int64_t fence) = 0;

  /// Whole, and nobody else's until the transaction ends.
  virtual std::optional<store::approval> hold(const std::string& approval_id) = 0;
  /// The newest of the dispatch with this matter_hash, as `hold`.
  virtual std::optional<store::approval> hold_latest(const std::string& dispatch_id,
                                                     const std::string& matter) = 0;
  /// Open ones of a run, as the rows say, in the order of their ids and held like `hold`, without
  /// `shown`.
  virtual std::vector<store::approval> hold_open(const std::string& dispatch_id,
                                                 std::int64_t fence) = 0;
  /// The same of all runs: those that have expired, and those whose run is over and that are not
  /// held; at most `limit`.
  virtual std::vector<store::approval> hold_over(std::size_t limit) = 0;
  virtual std::uint64_t count(store::approval_state state) = 0;

  virtual void insert(const store::approval& row, const std::string& matter) = 0;
  /// Writes what can change: everything but the matter, the hash and the times of the beginning.
  virtual void update(const store::approval& row) = 0;
  virtual void add_line(const std::string& approval_id, const store::approval_line& line) = 0;

  /// Those whose ids begin so, at most two, in order.
  virtual std::vector<store::approval> beginning_with(const std::string& prefix) = 0;
  virtual std::vector<store::approval_line> trail(const std::string& approval_id) = 0;
  /// Newest first, without `shown`, as the rows say.
  virtual std::vector<store::approval> list(const store::list_approvals& op) = 0;
};

result<store::ask_approval::reply> carry_out(approval_rows& rows, const store::ask_approval& op);
store::decide_approval::reply carry_out(approval_rows& rows, const store::decide_approval& op);
store::use_approval::reply carry_out(approval_rows& rows, const store::use_approval& op);
store::withdraw_approvals::reply carry_out(approval_rows& rows,
                                           const store::withdraw_approvals& op);
store::sweep_approvals::reply carry_out(approval_rows& rows, const store::sweep_approvals& op);
result<store::find_approval::reply> carry_out(approval_rows& rows, const store::find_approval& op);
store::list_approvals::reply carry_out(approval_rows& rows, const store::list_approvals& op);

} // namespace boyd::queue
