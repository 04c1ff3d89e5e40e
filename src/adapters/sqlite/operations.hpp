#pragma once

#include "boyd/core/time.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/queue/dispatch_columns.hpp"
#include "boyd/queue/spend.hpp"
#include "boyd/queue/transitions.hpp"
#include "boyd/queue/usage_json.hpp"
#include "connection.hpp"
#include "directory.hpp"

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// A row of dispatch_waiting that may be claimed; its parameter is the time. What asked for no
/// delay waits for no time: a clock that is set back does not keep it.
#define SQL_IS_DUE "(not_before <= ? OR not_before <= created_at)"

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

#define BOYD_RUN(name) store::any_reply run(const store::name& op);
  BOYD_STORE_QUESTIONS(BOYD_RUN)
  BOYD_STORE_STORIES(BOYD_RUN)
  BOYD_STORE_CHANGES(BOYD_RUN)
#undef BOYD_RUN
  store::any_reply run(const store::claim& op);
  store::any_reply run(const store::settle& op);
  store::any_reply run(const store::renew_leases& op);
  /// Consecutive operations of this kind share their statements; one reply each.
  std::vector<store::any_reply> run(const std::vector<const store::enqueue_cycle*>& ops);

  /// Writes the leases and results that claims and settlements gathered, each kind at once and in
  /// the order of its table. To be called before any other operation but an enqueue or due_agents,
  /// which do not look at them, and before the commit.
  void write_gathered();

 private:
  /// A dispatch as it stands, and what a transition needs to know of where it stood.
  struct stored {
    std::int64_t id = 0; ///< 0: no such row
    agent_entry* agent = nullptr;
    queue::queue_row row;
    dispatch_status was = dispatch_status::pending;
    bool was_delayed = false;
  };

  /// What an enqueue operation asks for.
  struct wanted_dispatch {
    std::size_t operation = 0; ///< its number
    const dispatch_spec* spec = nullptr;
    agent_entry* agent = nullptr;
  };
  /// A dispatch that is to be made.
  struct new_dispatch {
    const wanted_dispatch* wanted = nullptr;
    std::int64_t id = 0;
    queue::queue_row row;
  };
  /// One that was made and is to wait.
  struct made_dispatch {
    const wanted_dispatch* wanted = nullptr;
    std::int64_t id = 0;
    utc_time not_before{};
  };
  /// A row of dispatch_waiting: dispatches of one agent that wait alike. Their numbers follow each
  /// other, in the order of their dispatch_ids.
  struct waiting_range {
    agent_entry* agent = nullptr;
    int priority = 0;
    utc_time created_at{};
    utc_time not_before{};
    bool attempted = false; ///< it has a row in dispatch_results: then it waits alone
    std::int64_t first_id = 0;
    std::int64_t last_id = 0; ///< included
    std::string first_dispatch_id;

    std::int64_t size() const { return last_id - first_id + 1; }
    /// Which of the two is claimed first is for their dispatch_ids to say.
    bool is_alike(const waiting_range& other) const {
      return priority == other.priority && created_at == other.created_at;
    }
  };
  /// What became of an enqueue operation.
  struct enqueued {
    store::enqueue_cycle::reply reply;
    std::optional<error> refused;
  };
  /// A row of dispatch_running: dispatches of one agent, their numbers following each other, with
  /// the same lease.
  struct running_range {
    held_lease held;          ///< its id is the first
    std::int64_t last_id = 0; ///< included
    std::optional<utc_time> expires_at;

    /// Whether `next` goes on where this one ends.
    bool goes_on(const running_range& next) const {
      const auto& a = held;
      const auto& b = next.held;
      return b.id == last_id + 1 && a.agent_no == b.agent_no && a.owner_no == b.owner_no &&
             a.fence == b.fence && a.attempt == b.attempt && a.started_at == b.started_at &&
             a.first == b.first && expires_at == next.expires_at;
    }
  };
  /// The end of a dispatch's first attempt, not written yet.
  struct first_result {
    std::int64_t id = 0;
    std::int64_t kernel_no = 0;
    queue::queue_row row;
  };

  /// A row of dispatch_ends: dispatches that ended at one time.
  struct ended_range {
    std::int64_t kernel_no = 0;
    utc_time finished_at{};
    std::int64_t first_id = 0;
    std::int64_t last_id = 0; ///< included
  };

  /// Makes rows from `from` on, up to one that is refused; returns how many.
  std::size_t insert_requests(std::vector<new_dispatch>& rows, std::size_t from);
  /// Makes all rows in the order of claiming, so that what waits alike has numbers that follow each
  /// other. False, and nothing is made, when one is refused.
  bool insert_in_order(const std::vector<wanted_dispatch>& all, std::vector<enqueued>& outcomes);
  /// Makes the rows one after the other; those that are refused are answered one by one.
  void insert_as_asked(const std::vector<wanted_dispatch>& all, std::vector<enqueued>& outcomes);
  void insert_some(std::vector<new_dispatch>& rows, std::vector<enqueued>& outcomes,
                   std::vector<made_dispatch>& made);
  new_dispatch make(const wanted_dispatch& wanted);
  /// Rows that were made, in the order of their numbers.
  void put_in(const std::vector<made_dispatch>& made);
  std::optional<std::string> enqueued_id(const new_dispatch& d);
  void write_decisions(const store::enqueue_cycle& op);
  /// Takes the dispatch out of the range in which it waits.
  void take_out(std::int64_t id, const dispatch& d, agent_entry& agent);
  /// Takes the numbers from `first` to `last` out of a range that has them.
  void take_out(const waiting_range& from, std::int64_t first, std::int64_t last);
  void put_in(const waiting_range& range);
  /// Ranges that hold what a claim is to get; the last of them may hold more.
  std::vector<waiting_range> due_ranges(const store::claim& op);
  /// Claims at most `limit` dispatches of ranges that are of one priority and age.
  void take_due(std::span<const waiting_range> alike, std::size_t limit,
                std::vector<read_dispatch>& claimed);
  void read_attempts(read_dispatch& claimed);
  void lease(const std::vector<read_dispatch>& claimed, std::int64_t owner_no);
  /// The range that this number runs in.
  std::optional<running_range> running_at(std::int64_t id);
  void add_running(const std::vector<running_range>& ranges);
  /// Takes the numbers from `first` to `last` out of a range that has them.
  void cut(const running_range& from, std::int64_t first, std::int64_t last);
  /// Ends the leases of all numbers from `first` to `last`.
  void end_leases(std::int64_t first, std::int64_t last);
  std::int64_t number_of(const std::string& dispatch_id);
  stored load(const std::string& dispatch_id);
  /// Writes everything that a transition may have changed.
  void save(const stored& held);
  void give_result(std::int64_t id, std::int64_t kernel_no, const queue::queue_row& row,
                   bool first);
  void write_leases();
  void write_first_results();
  void give_range(const ended_range& r);
  /// Of results that are in the order of their ids.
  void write_ranges(const std::vector<const first_result*>& by_id);
  std::optional<held_lease> find_lease(const std::string& dispatch_id);
  std::optional<settle_result> settle_first_attempt(const std::string& node_id,
                                                    const settlement& item);
  settle_result settle_one(const std::string& node_id, const settlement& item);
  std::uint64_t due_count(const agent_entry& agent);
  store::take_back::reply give_back(statement ids, int max_rescues);
  void write_cycle(const cycle_record& cycle, bool finish);
  std::uint64_t remove_dispatches(std::int64_t before, std::uint64_t limit);
  /// Ranges of what ended before `before` that lead to no row any more.
  void remove_empty_ranges(std::int64_t before, std::uint64_t limit);
  std::uint64_t remove_cycles(std::int64_t before, std::size_t keep, std::uint64_t limit);
  /// Of nodes that will not return: cycles and slots.
  std::uint64_t end_left(const store::remove_finished& op);
  std::vector<queue::spend_total> spend_totals(const std::string& day,
                                               const std::vector<std::string>& scopes);
  /// Puts `used` in the place of `before` in the day's totals of the scopes.
  void change_totals(const std::string& day, const std::vector<std::string>& scopes,
                     const queue::spend_total& before, const queue::spend_total& used);
  bool is_under_way(const queue::call_holder& who);
  std::uint64_t remove_spend(milliseconds age, std::uint64_t limit);
  std::uint64_t remove_approvals(milliseconds age, std::uint64_t limit);

  connection& db_;
  directory& names_;
  utc_time now_;
  std::vector<running_range> new_leases_;  ///< of one number each
  std::deque<first_result> first_results_; ///< rows are large: they stay where they are
};

/// How many at most, as SQL takes it.
inline std::int64_t sql_limit(std::size_t limit) {
  return static_cast<std::int64_t>(limit);
}

/// Rows in one statement: its own cost is small then, and they stay in the processor's cache.
inline constexpr std::size_t rows_at_once = 64;

/// What read_row takes of dispatch_requests d, dispatch_running r and dispatch_results s.
const std::string& row_columns();
/// The first of them, which are of dispatch_requests d alone, and how many: its numbers and what
/// was asked for.
const std::string& request_columns();
inline constexpr int request_column_count = 3 + queue::request_column_count;
/// How many they are: further columns of a query start here.
inline constexpr int row_column_count = request_column_count + 5 + queue::result_column_count;
/// Joins r to d: the range that its number runs in.
#define BOYD_SQLITE_RUNNING_JOIN                                                                   \
  " LEFT JOIN dispatch_running r ON r.first_id = (SELECT max(q.first_id) FROM dispatch_running q " \
  "WHERE q.first_id <= d.id) AND r.last_id >= d.id"
inline constexpr std::string_view running_join = BOYD_SQLITE_RUNNING_JOIN;
/// Joins r and s to d.
inline constexpr std::string_view row_joins =
    BOYD_SQLITE_RUNNING_JOIN " LEFT JOIN dispatch_results s ON s.id = d.id";
#undef BOYD_SQLITE_RUNNING_JOIN
/// The row from the first columns of a result; its bodies are not among them.
read_dispatch read_row(const statement& s, directory& names);
/// The same of request_columns alone: as if it were new.
read_dispatch read_request(const statement& s, directory& names);

/// As the tables have it: nodes are numbers.
template <class Column>
std::string column_name(const Column& c) {
  return std::string(c.name) + (c.form.node ? "_no" : "");
}

/// Gives the value of a column to the next statement.
template <class Column>
void give(given_rows& to, directory& names, const Column& c, const queue::queue_row& row) {
  const auto& value = c.of(row);
  using type = typename Column::value;
  if constexpr (std::is_enum_v<type>)
    to.bind(name_of(value));
  else if constexpr (std::is_same_v<type, run_usage>)
    to.bind(queue::usage_json(value));
  else if constexpr (std::is_same_v<type, std::uint64_t>)
    to.bind(static_cast<std::int64_t>(value));
  else if constexpr (std::is_same_v<type, std::string>)
    c.form.node ? to.bind(names.node_no(value)) : to.bind(value);
  else
    to.bind(value);
}

} // namespace boyd::adapters::sqlite
