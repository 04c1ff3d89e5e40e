#pragma once

#include "boyd/core/time.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/queue/transitions.hpp"
#include "connection.hpp"

#include <string>
#include <vector>

namespace boyd::adapters::sqlite {

/// Carries out operations inside the transaction that its caller opened. Throws `failure`.
class operations {
 public:
  operations(connection& db, utc_time now) : db_(db), now_(now) {}

  store::any_reply run(const store::open_occurrence& op);
  store::any_reply run(const store::close_occurrence& op);
  store::any_reply run(const store::list_occurrences& op);
  store::any_reply run(const store::begin_cycle& op);
  store::any_reply run(const store::enqueue_cycle& op);
  store::any_reply run(const store::finish_cycle& op);
  store::any_reply run(const store::list_cycles& op);
  store::any_reply run(const store::list_decisions& op);
  store::any_reply run(const store::claim& op);
  store::any_reply run(const store::settle& op);
  store::any_reply run(const store::renew_leases& op);
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

 private:
  struct stored {
    std::int64_t id = 0; ///< 0: no such row
    queue::queue_row row;
  };

  bool insert_dispatch(const queue::queue_row& row);
  std::optional<std::string> enqueued_id(const dispatch_spec& spec);
  stored load(const std::string& dispatch_id);
  /// Writes every column that a transition may change.
  void save(std::int64_t id, const queue::queue_row& row);
  void save_output(std::int64_t id, const queue::queue_row& row);
  store::take_back::reply give_back(statement ids, int max_rescues);
  void write_cycle(const cycle_record& cycle, bool replace);
  std::uint64_t remove_cycles(std::int64_t before, std::size_t keep, std::uint64_t limit);

  connection& db_;
  utc_time now_;
};

/// The columns of dispatches in the order that read_row takes them, each as d.<name>.
std::string_view row_columns() noexcept;
/// How many they are: further columns of a query start here.
inline constexpr int row_column_count = 30;
/// The row from the first columns of a result.
queue::queue_row read_row(const statement& s);

} // namespace boyd::adapters::sqlite
