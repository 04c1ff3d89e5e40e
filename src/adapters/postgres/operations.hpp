#pragma once

#include "boyd/ports/dispatch_store.hpp"
#include "boyd/queue/transitions.hpp"
#include "session.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace boyd::adapters::postgres {

/// Carries out operations inside the transaction that its caller opened. Throws `failure`.
class operations {
 public:
  explicit operations(session& db) : db_(db) {}

  store::any_reply run(const store::open_occurrence& op);
  store::any_reply run(const store::close_occurrence& op);
  store::any_reply run(const store::list_occurrences& op);
  store::any_reply run(const store::begin_cycle& op);
  store::any_reply run(const store::finish_cycle& op);
  store::any_reply run(const store::list_cycles& op);
  store::any_reply run(const store::list_decisions& op);
  store::any_reply run(const store::claim& op);
  store::any_reply run(const store::take_back& op);
  store::any_reply run(const store::rescue_expired& op);
  store::any_reply run(const store::retry_dispatch& op);
  store::any_reply run(const store::cancel_dispatch& op);
  store::any_reply run(const store::find_dispatch& op);
  store::any_reply run(const store::list_dispatches& op);
  store::any_reply run(const store::latest_per_agent& op);
  store::any_reply run(const store::count_by_status& op);
  store::any_reply run(const store::due_agents& op);
  store::any_reply run(const store::remove_finished& op);
  store::any_reply run(const store::set_pause& op);
  store::any_reply run(const store::clear_pause& op);
  store::any_reply run(const store::list_pauses& op);
  store::any_reply run(const store::put_fact& op);
  store::any_reply run(const store::get_facts& op);
  store::any_reply run(const store::beat& op);
  store::any_reply run(const store::list_nodes& op);

  /// Consecutive operations of one kind share their statements; one reply each.
  std::vector<store::any_reply> run(const std::vector<const store::enqueue_cycle*>& ops);
  std::vector<store::any_reply> run(const std::vector<const store::settle*>& ops);
  std::vector<store::any_reply> run(const std::vector<const store::renew_leases*>& ops);

  /// Kernels that got pending work: whom to notify after the commit.
  const std::set<std::string>& woken() const noexcept { return woken_; }

 private:
  struct locked {
    std::vector<queue::queue_row> rows; ///< in the order of dispatch_id
    utc_time now{};
  };

  locked lock(const array& ids);
  locked lock_where(std::string_view condition, const parameters& p);
  queue::queue_row* find(locked& all, const std::string& id);
  /// Writes every column that a transition may change; one statement.
  void save(const std::vector<const queue::queue_row*>& rows);
  void save_outputs(const std::vector<const queue::queue_row*>& rows);
  store::take_back::reply give_back(locked all, int max_rescues);
  template <class Reply>
  store::any_reply change_one(const std::string& id, Reply (*rule)(queue::queue_row&, utc_time));
  void write_cycle(const cycle_record& cycle, bool replace);

  session& db_;
  std::set<std::string> woken_;
};

/// The columns of dispatches in the order that read_row takes them, each as d.<name>.
std::string_view row_columns() noexcept;
/// How many they are: further columns of a query start here.
inline constexpr int row_column_count = 30;
/// The row from the first columns of a result.
queue::queue_row read_row(const answer& a, int row);

} // namespace boyd::adapters::postgres
