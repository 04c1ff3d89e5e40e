#pragma once

#include "boyd/core/time.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/queue/transitions.hpp"
#include "connection.hpp"
#include "directory.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::adapters::sqlite {

/// A dispatch as it was read.
struct read_dispatch {
  std::int64_t id = 0;
  agent_entry* agent = nullptr;
  bool attempted = false; ///< it has a row in dispatch_results
  queue::queue_row row;
};

/// Carries out operations inside the transaction that its caller opened. Throws `failure`.
class operations {
 public:
  operations(connection& db, directory& names, utc_time now) : db_(db), names_(names), now_(now) {}

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
  /// A dispatch as it stands, and what a transition needs to know of where it stood.
  struct stored {
    std::int64_t id = 0; ///< 0: no such row
    agent_entry* agent = nullptr;
    queue::queue_row row;
    dispatch_status was = dispatch_status::pending;
    bool was_delayed = false;
  };

  bool insert_dispatch(const dispatch_spec& spec, agent_entry& agent);
  std::optional<std::string> enqueued_id(const dispatch_spec& spec, std::int64_t agent_no);
  void take_out(const dispatch& d, const agent_entry& agent);
  void put_in(std::int64_t id, const dispatch& d, agent_entry& agent);
  /// Takes out the `claimed` rows of one agent: all that are due, up to the last of them.
  void take_out_due(const std::vector<read_dispatch>& claimed);
  void lease(const read_dispatch& claimed, std::int64_t owner_no);
  void end_lease(const std::string& dispatch_id);
  stored load(const std::string& dispatch_id);
  /// Writes everything that a transition may have changed.
  void save(const stored& held);
  void write_result(std::int64_t id, std::int64_t kernel_no, const queue::queue_row& row,
                    bool first);
  std::optional<held_lease> find_lease(const std::string& dispatch_id);
  std::optional<settle_result> settle_first_attempt(const settlement& item);
  settle_result settle_one(const settlement& item);
  std::uint64_t due_count(const agent_entry& agent);
  store::take_back::reply give_back(statement ids, int max_rescues);
  void write_cycle(const cycle_record& cycle, bool finish);
  std::uint64_t remove_dispatches(std::int64_t before, std::uint64_t limit);
  std::uint64_t remove_cycles(std::int64_t before, std::size_t keep, std::uint64_t limit);

  connection& db_;
  directory& names_;
  utc_time now_;
};

/// What read_row takes of dispatch_requests d, dispatch_running r and dispatch_results s.
std::string_view row_columns() noexcept;
/// The same of a row that is known not to run.
std::string_view resting_row_columns() noexcept;
/// How many they are: further columns of a query start here.
inline constexpr int row_column_count = 34;
/// Joins r and s to d.
inline constexpr std::string_view row_joins =
    " LEFT JOIN dispatch_running r ON r.dispatch_id = d.dispatch_id"
    " LEFT JOIN dispatch_results s ON s.id = d.id";
/// The row from the first columns of a result; its bodies are not among them.
read_dispatch read_row(const statement& s, directory& names);

} // namespace boyd::adapters::sqlite
