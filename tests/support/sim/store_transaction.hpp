#pragma once

#include "support/sim/store.hpp"

namespace boyd::sim {

/// One transaction on the simulated database, whose lock its caller holds. The same rules as the
/// real stores, on ordered maps.
class sim_transaction {
 public:
  sim_transaction(sim_database& database, utc_time now)
      : data_(database.data_), settled_(database.settled_), audit_(database.audit), now_(now) {}

#define BOYD_RUN(name) store::any_reply run(const store::name& op);
  BOYD_STORE_OPERATIONS(BOYD_RUN)
#undef BOYD_RUN

 private:
  /// Keeps the pending and running indexes in step with a row.
  void index(const queue::queue_row& row);
  void unindex(const queue::queue_row& row);
  template <class F>
  auto change(queue::queue_row& row, row_move why, F f, const attempt_holder& by = {});
  store::take_back::reply give_back(const std::vector<std::string>& ids, int max_rescues,
                                    row_move why);
  std::uint64_t remove_dispatches(utc_time before, std::uint64_t limit);
  std::uint64_t remove_cycles(utc_time before, std::size_t keep, std::uint64_t limit);
  std::uint64_t end_left(const store::remove_finished& op);
  /// The call counts as `used`, in its day's totals, too.
  void change_spend(sim_database::spent_call& call, const store::usage_counts& used);
  std::uint64_t remove_spend(milliseconds age, std::uint64_t limit);
  class inbox;
  std::uint64_t remove_approvals(milliseconds age, std::uint64_t limit);
  std::map<std::string, store::sum_spend::row> sums_of_scopes(const std::string& from,
                                                              const std::string& to);
  std::map<std::string, store::sum_spend::row>
  sums_of_calls(const store::sum_spend& op, const std::string& from, const std::string& to);

  sim_database::tables& data_;
  std::map<std::pair<std::string, std::int64_t>, int>& settled_;
  row_auditor& audit_;
  utc_time now_;
};

} // namespace boyd::sim
