#pragma once

#include "boyd/ports/dispatch_store.hpp"
#include "boyd/queue/dispatch_columns.hpp"
#include "boyd/queue/spend.hpp"
#include "boyd/queue/transitions.hpp"
#include "boyd/queue/usage_json.hpp"
#include "directory.hpp"
#include "session.hpp"
#include "wakeup.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace boyd::adapters::postgres {

/// A row of dispatch_running that this transaction has locked: nobody else moves its members.
struct locked_claim {
  std::int64_t no = 0;
  std::int64_t agent_no = 0;
  std::string owner;
  utc_time lease_expires_at{};
  utc_time started_at{};
  std::int64_t fence = 0;
  int attempt = 0;
  bool attempted = false; ///< its one member has a row in dispatch_results
  std::vector<std::string> members;
  std::vector<bool> left; ///< members that this transaction has moved
};

/// Locked claims and where each member is among them. Only moved: a move leaves the members, which
/// `places` refers to, where they are.
struct locked_claims {
  locked_claims() = default;
  locked_claims(locked_claims&&) = default;
  locked_claims& operator=(locked_claims&&) = default;
  locked_claims(const locked_claims&) = delete;
  locked_claims& operator=(const locked_claims&) = delete;
  ~locked_claims() = default;

  struct place {
    std::size_t claim = 0;
    std::size_t member = 0;
  };
  std::vector<locked_claim> all;
  std::unordered_map<std::string_view, place> places; ///< by the members themselves

  void leave(std::string_view dispatch_id) {
    const auto& at = places.at(dispatch_id);
    all[at.claim].left[at.member] = true;
  }
};

/// How many dispatches one row of dispatch_waiting stands for at most.
inline constexpr std::size_t most_members = 48;
/// Prompts up to this long stand in the waiting row, too, so that a claim need not look for them.
inline constexpr std::size_t short_prompt = 1024;
/// Between the cycle_id and the prompt of a body in dispatch_waiting.
inline constexpr char body_separator = '\n';
/// So many bytes of members and bodies fit into one page with what else is in the row.
inline constexpr std::size_t most_waiting_bytes = 7'000;

/// A dispatch and what its next state has to replace.
struct stored {
  queue::queue_row row;
  const agent_entry* agent = nullptr;
  bool attempted = false; ///< there is a row in dispatch_results
};

/// The rows by their ids, which are added to `ids`, too. Valid while the rows stay where they are.
std::unordered_map<std::string_view, stored*> index_by_id(const std::vector<stored*>& rows,
                                                          array& ids); // rows.cpp

/// What a total of the day is kept under.
using day_scope = std::pair<std::string, std::string>;

/// A row of spend_totals that this transaction has locked.
struct held_total {
  queue::spend_total value;
  bool changed = false;
};

/// An operation that is one statement, and how the answer to that is read.
struct question {
  statement ask;
  std::function<store::any_reply(const answer&)> read; ///< while the operation lives
};

/// Operations that only ask, and in one statement: read committed, they see no more of each other
/// inside a transaction than one after the other.
#define BOYD_OR_IS(name) || std::is_same_v<T, store::name>
template <class T>
constexpr bool is_one_question = false BOYD_STORE_QUESTIONS(BOYD_OR_IS);

/// Operations of which a batch's share their statements.
template <class T>
constexpr bool is_merged = false BOYD_STORE_BULK(BOYD_OR_IS);
#undef BOYD_OR_IS

template <class T>
constexpr bool is_one_statement = is_one_question<T> || std::is_same_v<T, store::open_occurrence>;

/// Carries out operations inside the transaction that its caller opened. Throws `failure`.
class operations {
 public:
  /// `careful`: rows are inserted one by one where an earlier attempt at the same transaction found
  /// that some stand already.
  operations(session& db, directory& names, bool careful)
      : db_(db), names_(names), careful_(careful) {}

#define BOYD_RUN(name) store::any_reply run(const store::name& op);
  BOYD_STORE_STORIES(BOYD_RUN)
  BOYD_STORE_CHANGES(BOYD_RUN)
#undef BOYD_RUN
  question ask(const store::open_occurrence& op);
#define BOYD_ASK(name) question ask(const store::name& op);
  BOYD_STORE_QUESTIONS(BOYD_ASK)
#undef BOYD_ASK
  template <class Op>
  requires is_one_question<Op> store::any_reply run(const Op& op) {
    return answer_to(ask(op));
  }

  /// Locks the totals of all reservations and settlements of a batch; the first thing in it.
  void hold_spend(const std::vector<store::operation>& batch);
  /// Writes the totals that they changed; before the commit.
  void write_totals();

  /// Consecutive operations of one kind share their statements; one reply each.
#define BOYD_RUN(name)                                                                             \
  std::vector<store::any_reply> run(const std::vector<const store::name*>& ops);
  BOYD_STORE_BULK(BOYD_RUN)
#undef BOYD_RUN

  /// Writes the changes of dispatch_counts so far, and removes the claims that have `ended`; the
  /// last thing before the commit.
  void write_counts(const array& ended = {});

  /// Claims are all that is left to do: the commit goes with the first.
  void commit_with_claim();

  /// Kernels that got pending work: whom to notify after the commit. What was claimed with its
  /// enqueue is nothing to others.
  wakeup woken() const;

 private:
  /// Of (kernel_no, status).
  using counts = std::map<std::pair<std::int64_t, std::string>, std::int64_t>;

  /// The time of this transaction by the database's clock.
  utc_time now();
  store::any_reply answer_to(const question& q) {
    return q.read(db_.run(q.ask.sql, q.ask.values));
  }

  // enqueue_operations.cpp
  /// New pending rows, in the order of their ids: many to a row of dispatch_waiting. `from_now`:
  /// their times count from the server's own, and they are few.
  void insert_waiting(const std::vector<stored>& rows, bool from_now);

  // claim_operations.cpp
  /// A claim that is being answered.
  struct asked_claim {
    std::int64_t agent_no = 0; ///< 0: any agent
    std::size_t limit = 0;
    std::size_t rows = 0; ///< of dispatch_waiting to ask for
    std::size_t taken = 0;
    std::size_t before = 0; ///< size of `out` before this round
    std::vector<claimed_dispatch> out;
  };
  /// The claim that `s` answers.
  static asked_claim& asked_for(const std::vector<asked_claim*>& asked, const stored& s);
  /// Fills in what dispatch_requests says about rows that were claimed without it.
  void load_requests(std::vector<stored*> rows);
  /// The same for what this transaction has put there; the others.
  std::vector<stored*> load_inserted(std::vector<stored*> rows);
  /// One round; leaves in `asked` those that need another.
  void take(const std::string& sql, const store::claim& like, const array& agents,
            std::vector<asked_claim*>& asked);
  /// Claims of different agents for the same node and lease.
  void claim_each(const store::claim& like, std::vector<asked_claim*> asked);
  void claim_any(const store::claim& op, asked_claim& asked);

  // rows.cpp
  /// Fills in what dispatch_results says about the rows.
  void load_results(const std::vector<stored*>& rows);
  locked_claims lock_claims(const std::vector<const std::string*>& ids);
  locked_claims read_claims(std::string_view condition, const parameters& p);
  /// The member of a locked claim as it runs.
  stored running(const locked_claim& claim, const std::string& dispatch_id);
  /// Writes what is left of the locked claims, and the changes of dispatch_counts so far.
  void close_claims(const locked_claims& claims);
  /// Writes rows that have left the place where they stood.
  void write_back(const std::vector<const stored*>& rows);
  void update_results(const std::vector<const stored*>& rows);
  void put_in(const std::vector<const stored*>& rows);
  void count(const stored& s, dispatch_status status, std::int64_t by);

  // settle_operations.cpp
  /// Dispatches and where each is among them, by the ids that were asked for.
  struct found_rows {
    std::vector<stored> all;
    std::unordered_map<std::string_view, std::size_t> places;
  };
  found_rows settled_rows(const std::vector<const std::string*>& ids, const locked_claims& claims);
  /// New leases by the place of their claim and member.
  void renew(locked_claims& claims,
             const std::vector<std::map<std::size_t, milliseconds>>& renewed);
  store::take_back::reply give_back(const std::string& chosen, const std::string& condition,
                                    bool by_lease, const parameters& p, std::size_t limit,
                                    int max_rescues);
  /// A dispatch that does not run.
  std::optional<stored> read_one(const std::string& dispatch_id);
  /// A dispatch with the lock of the row that it is in; nothing when there is no such dispatch.
  std::optional<stored> hold(const std::string& dispatch_id);
  /// Out of dispatch_waiting.
  void take_out(const stored& s);
  /// Gives each dispatch a row of its own where `s` belongs between them: rows of dispatch_waiting
  /// must not overlap, or the order of claims would not be that of their members.
  void loosen(const stored& s);

  std::uint64_t remove_dispatches(milliseconds age, std::uint64_t limit);
  /// Of nodes that will not return: cycles and slots.
  std::uint64_t end_left(const store::remove_finished& op);
  void write_cycle(const cycle_record& cycle, bool finish);

  // spend_operations.cpp
  void lock_totals(const std::set<day_scope>& keys);
  /// Puts `used` in the place of `before` in the day's totals of the scopes.
  void change_totals(const std::string& day, const std::vector<std::string>& scopes,
                     const queue::spend_total& before, const queue::spend_total& used);
  bool is_under_way(const queue::call_holder& who);
  std::uint64_t remove_spend(milliseconds age, std::uint64_t limit);

  // approval_operations.cpp
  std::uint64_t remove_approvals(milliseconds age, std::uint64_t limit);

  session& db_;
  directory& names_;
  bool careful_;
  std::optional<utc_time> now_;
  bool commits_with_claim_ = false;
  std::set<std::string> woken_;
  counts counts_;
  std::vector<stored> inserted_;           ///< by this transaction, whole but for their times
  std::map<day_scope, held_total> totals_; ///< that this transaction has locked
};

/// A field's text, and a limit as a parameter.
std::string text_of(const answer& a, int row, int column); // rows.cpp
std::int64_t sql_limit(std::size_t limit);                 // rows.cpp

/// Columns of dispatch_requests d, dispatch_results s and the claim r of a member.
const std::string& row_columns();
/// How many they are: further columns of a query start here.
inline constexpr int row_column_count =
    2 + queue::request_column_count + queue::result_column_count + 5;
/// The dispatch from the first columns of a result.
stored read_row(const answer& a, int row, directory& names);

/// The names of columns for SQL.
template <class Columns>
std::string names_of(const Columns& columns) {
  return queue::listed(columns, [](const auto& c) { return c.name; });
}

/// The type of a column in arrays.
template <class Column>
std::string type_of(const Column&) {
  using type = typename Column::value;
  if constexpr (std::is_same_v<type, int>)
    return "int";
  else if constexpr (std::is_integral_v<type> || std::is_same_v<type, utc_time> ||
                     std::is_same_v<type, std::optional<utc_time>>)
    return "bigint";
  else
    return "text";
}

/// Adds the value of a column to a row of a COPY, or to an array.
template <class To, class Column>
void add_value(To& to, const Column& c, const queue::queue_row& row) {
  const auto text = [&](std::string_view value) {
    if (c.form.nothing != nullptr)
      to.add_unless(c.form.nothing, value);
    else
      to.add(value);
  };
  const auto& value = c.of(row);
  using type = typename Column::value;
  if constexpr (std::is_enum_v<type>)
    text(name_of(value));
  else if constexpr (std::is_same_v<type, run_usage>)
    text(queue::usage_json(value));
  else if constexpr (std::is_same_v<type, std::string>)
    text(value);
  else if constexpr (std::is_integral_v<type>)
    to.add(static_cast<std::int64_t>(value));
  else
    to.add(std::optional<utc_time>(value));
}

/// Reads columns of an answer, from `at` on; NULL leaves what a new row has.
template <class Columns>
void read_columns(const answer& a, int r, int at, const Columns& columns, queue::queue_row& row) {
  queue::for_each_column(columns,
                         [&]<class Owner, class Value>(const queue::column<Owner, Value>& c) {
                           const int here = at++;
                           auto& to = c.of(row);
                           if constexpr (std::is_same_v<Value, std::optional<utc_time>>)
                             to = a.optional_time(r, here);
                           else if (a.is_null(r, here))
                             return;
                           else if constexpr (std::is_enum_v<Value>)
                             queue::read_enumerator(c, a.text(r, here), row);
                           else if constexpr (std::is_same_v<Value, run_usage>)
                             to = queue::usage_from(a.text(r, here));
                           else if constexpr (std::is_same_v<Value, std::string>)
                             to = text_of(a, r, here);
                           else if constexpr (std::is_integral_v<Value>)
                             to = static_cast<Value>(a.integer(r, here));
                           else
                             to = a.time(r, here);
                         });
}

} // namespace boyd::adapters::postgres
