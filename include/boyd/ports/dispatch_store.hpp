#pragma once

#include "boyd/core/cycle.hpp"
#include "boyd/core/dispatch.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/shared_list.hpp"
#include "boyd/ports/approval_operations.hpp"
#include "boyd/ports/spend_operations.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

/// The durable store behind one interface (docs/queue.md): SQLite, PostgreSQL and the simulated
/// store pass one conformance suite. An operation is a plain struct with its reply type; a batch of
/// them is one transaction. All times are the store's own clock; callers pass durations.
namespace boyd::store {

/// Nothing to report.
struct ok {
  bool operator==(const ok&) const = default;
};

// -- occurrence ledger, cycles, decisions -------------------------------------------------------

/// Writes the slot before anything else happens. `false`: somebody fired it already (any process).
/// A caller that sets slot.created_at (stored as given) may repeat its request after a commit in
/// doubt: a slot that is still open and has the same cycle_id (empty, or promised to a caller),
/// node_id, trigger and created_at is the request's own, and is opened again. Without created_at
/// the store's time is written and a repeat finds the slot taken.
struct open_occurrence {
  struct reply {
    bool opened = false; ///< false also because of `unless_paused`
  };
  occurrence slot; ///< state open, or final at once (skipped, missed, coalesced)
  /// Begun with the slot when that is opened, as begin_cycle would; the slot has its cycle_id. It
  /// spares a cycle that begins at once a transaction of its own.
  std::optional<cycle_record> cycle{};
  bool unless_paused = false; ///< nothing is written while the whole kernel is paused
};

/// Ends a slot. Idempotent; the first ending wins.
struct close_occurrence {
  using reply = ok;
  std::string kernel_id;
  utc_time scheduled_at{};
  occurrence_state state = occurrence_state::ran;
  std::string reason;
  std::string cycle_id;
};

/// Newest first. `until` bounds scheduled_at when set.
struct list_occurrences {
  using reply = std::vector<occurrence>;
  std::string kernel_id;
  std::optional<utc_time> until;
  std::size_t limit = 50;
  std::string node_id{}; ///< only this node's, however many of others are newer; empty: any
};

/// Makes the cycle's row (status running) and ties it to its slot. Idempotent per cycle_id: a row
/// that is running still takes the counts, agents, duration and error of a repeat, which is how a
/// shutdown notes how far the cycle got; a finished one stays as it is.
struct begin_cycle {
  using reply = ok;
  cycle_record cycle;
};

/// Enqueues a whole cycle: decisions and dispatches, one transaction, idempotent per (kernel_id,
/// cycle_id, agent_id): a repeat inserts nothing and reports the rows that stand.
struct enqueue_cycle {
  struct reply {
    std::vector<std::string> dispatch_ids; ///< in the order of `specs`
    std::size_t inserted = 0;
  };
  std::string kernel_id;
  std::string cycle_id;
  std::vector<dispatch_spec> specs;
  std::vector<agent_decision> decisions;
};

/// Records the cycle's end: the row is the truth of which STATE.md is the rendering. Idempotent;
/// a finished cycle's row is replaced only by the same cycle_id.
struct finish_cycle {
  using reply = ok;
  cycle_record cycle;
};

/// The latest begun first, whatever the nodes' clocks said then. Without `include_running` only
/// recorded cycles.
struct list_cycles {
  using reply = std::vector<cycle_record>;
  std::string kernel_id;
  bool include_running = false;
  std::size_t limit = 5;
  std::string cycle_id{}; ///< only this one; empty: any
  std::string node_id{};  ///< only this node's, however many of others are newer; empty: any
};

struct list_decisions {
  struct row {
    std::string cycle_id;
    utc_time decided_at{};
    agent_decision decision;
  };
  using reply = std::vector<row>; ///< newest first
  std::string kernel_id;
  std::string agent_id; ///< empty: all
  std::string cycle_id; ///< empty: any
  std::optional<utc_time> until;
  std::size_t limit = 50;
};

// -- queue ---------------------------------------------------------------------------------------

/// Claims pending dispatches that are due: highest priority first, then oldest (created_at, then
/// dispatch_id). Each gets the next fence, attempt + 1, a lease for `node_id` and started_at.
struct claim {
  using reply = std::vector<claimed_dispatch>;
  std::string node_id;
  std::string kernel_id;
  std::string agent_id; ///< empty: any agent of the kernel
  std::size_t limit = 1;
  milliseconds lease{30'000};
};

/// Ends attempts that `node_id` runs. Each needs its fence; one that another node has under the
/// same fence, as after the loss of a claim, is stale. Results in order.
struct settle {
  using reply = std::vector<settle_result>;
  std::string node_id;
  shared_list<settlement> items;
};

/// Prolongs leases that are still held by `node_id` under their fence; an expired lease that nobody
/// took is still held. Reports what is lost.
struct renew_leases {
  struct held {
    std::string dispatch_id;
    std::int64_t fence = 0;
  };
  struct reply {
    std::vector<std::string> lost; ///< dispatch_ids that belong to somebody else now, or are final
  };
  std::string node_id;
  std::vector<held> items;
  milliseconds lease{30'000};
};

/// At start: this node's own running rows go back to pending at once; the attempt does not count,
/// `rescues` grows; beyond `max_rescues` the row becomes failed (poison).
struct take_back {
  struct reply {
    std::vector<std::string> returned;
    std::vector<std::string> poisoned;
  };
  std::string node_id;
  int max_rescues = 3;
  std::size_t limit = 1000;
};

/// Other owners' rows whose lease has run out by the store's clock: as take_back. Rows of the node
/// that asks stay as they are, however long it slept: it lives. They are told, so that it can give
/// back by their fence what it does not know of. An empty node_id owns none. Which of the others'
/// leases ends next is told, too, so that nobody has to look more often than leases end.
struct rescue_expired {
  struct own_row {
    std::string dispatch_id;
    std::string kernel_id;
    std::string agent_id;
    std::int64_t fence = 0;
  };
  struct reply : take_back::reply {
    std::vector<own_row> own; ///< with a lease that has run out, at most `limit`
    /// Until the next one of another owner runs out, if it is not renewed; more than 0.
    std::optional<milliseconds> next_in;
    bool some_left = false; ///< with one that has: beyond `limit`, or somebody else is at them
  };
  std::string node_id;
  int max_rescues = 3;
  std::size_t limit = 1000;
};

/// An operator's retry: a final row becomes pending with a fresh attempt budget and no rescues.
struct retry_dispatch {
  struct reply {
    settle_result result = settle_result::not_found;
    dispatch_status was = dispatch_status::pending;
  };
  std::string dispatch_id;
};

/// An operator's cancel: a pending row becomes cancelled at once; a running one is reported as
/// running with its fence and owner, so that its owner can be asked to end it and settle it.
struct cancel_dispatch {
  struct reply {
    settle_result result = settle_result::not_found;
    dispatch_status was = dispatch_status::pending;
    std::int64_t fence = 0;
    std::string lease_owner;
  };
  std::string dispatch_id;
  std::string cause{}; ///< for people, behind "cancelled before it ran: "; may be empty
};

struct find_dispatch {
  using reply = std::optional<dispatch>;
  std::string dispatch_id; ///< whole, or a prefix that only one row has (queue/dispatch_ids.hpp)
};

/// Newest first (dispatch_id descending). Empty filters match all.
struct list_dispatches {
  using reply = std::vector<dispatch>;
  std::string kernel_id;
  std::string cycle_id;
  std::string agent_id;
  std::optional<dispatch_status> status;
  std::string before;                     ///< dispatch_id: page on from here
  std::optional<utc_time> finished_since; ///< only rows finished at or after it
  bool with_bodies = false;               ///< prompt and output, too; otherwise empty
  std::size_t limit = 50;
  std::string not_cycle_id; ///< rows of this cycle are left out; empty: none
  /// Rows of agents with these ids are left out, without being read: a long queue of known agents
  /// must not slow down the search for unknown ones.
  std::vector<std::string> not_agent_ids{};
  bool ended_only = false; ///< only done, failed and cancelled ones
};

/// The newest dispatch of each agent of the kernel (bodies left out).
struct latest_per_agent {
  using reply = std::vector<dispatch>;
  std::string kernel_id;
};

struct count_by_status {
  using reply = std::map<dispatch_status, std::uint64_t>;
  std::string kernel_id; ///< empty: all
};

/// Agents with due pending work, with the best priority of each: what a poll needs.
struct due_agents {
  struct row {
    std::string kernel_id;
    std::string agent_id;
    int priority = 0;
    std::uint64_t count = 0;
  };
  struct reply {
    std::vector<row> due;
    /// Time until the next not_before of any pending row that is not due; nothing when none.
    std::optional<milliseconds> next_in;
  };
};

/// Removes one batch of finished rows (dispatches, decisions, occurrences, cycles beyond the newest
/// `keep_cycles` of each kernel) older than `age`, and nodes that have not been seen for
/// `node_age`. With `node_id` it ends first, up to `limit` of each, what such a node has left: a
/// running cycle with an error that names the node, as of when it was seen last, an open slot as
/// `ran`, or `missed` when no cycle came of it. What they dispatched is old as well by then; a node
/// that comes back that late goes on with none of it.
struct remove_finished {
  struct reply {
    std::uint64_t removed = 0;
    std::uint64_t ended = 0; ///< cycles and slots of others
  };
  milliseconds age{0};
  std::size_t keep_cycles = 100;
  std::size_t limit = 1000;
  milliseconds node_age = std::chrono::hours{24};
  std::string node_id{}; ///< who asks, for what it has open is its own; empty: nothing is ended
};

// -- what models use up --------------------------------------------------------------------------

/// Takes from the day's budgets what a call of a model may use at most, before it is made: all
/// limits hold, or nothing is taken. The day is one of UTC, by the store's clock. Idempotent per
/// call_id: a repeat is granted what stands, and takes nothing more. The reply's totals are those
/// of the day on which it is given.
struct reserve_spend {
  /// Who may use up so much in a day; 0: only counted.
  struct limit {
    std::string scope; ///< e.g. "agent:default/writer", "node:<node_id>"
    std::int64_t tokens = 0;
    std::int64_t cost = 0;
  };
  struct total {
    std::string scope;
    std::int64_t tokens = 0; ///< with this call when it was granted
    std::int64_t cost = 0;
  };
  struct reply {
    bool granted = false;
    std::string refused_scope; ///< the first whose limit does not allow it
    std::vector<total> totals; ///< in the order of `limits`
  };
  std::string call_id; ///< <dispatch_id>/<fence>/<number of the call>
  std::string dispatch_id;
  std::string kernel_id;
  std::string agent_id;
  std::string provider_id;
  std::string model;
  usage_counts most;
  std::vector<limit> limits;
};

/// Puts what was really used in the place of the reservation. Without one (its row is gone), or
/// said again, nothing changes. A reservation that nobody settles stays counted in its day, unless
/// a person releases it (release_spend).
struct settle_spend {
  using reply = ok;
  std::string call_id;
  usage_counts used;
  std::string model{}; ///< that was used, where it is known only now; empty: as reserved
};

/// What was used up from `from_day` until `to_day` (both YYYY-MM-DD, included; empty: today by the
/// store's clock), one row per group, largest cost first, then most tokens, then key.
struct sum_spend {
  /// `scope`: what the limits of a day are compared with. Of these only all tokens are known, which
  /// stand under `input`, and the cost; `kernel_id` says nothing there.
  enum class group : std::uint8_t { agent, model, day, scope };
  struct row {
    std::string key; ///< kernel/agent, provider/model, the day, or the scope
    std::uint64_t calls = 0;
    std::uint64_t open_calls = 0; ///< reserved, not settled or released: counted as the most
    usage_counts used;
  };
  using reply = std::vector<row>;
  group by = group::agent;
  std::string from_day;
  std::string to_day;
  std::string kernel_id; ///< empty: all
  std::size_t limit = 1000;
};

// -- pauses, small facts, nodes
// --------------------------------------------------------------------

struct set_pause {
  using reply = ok;
  pause_record pause; ///< replaces an earlier one; `since` is set by the store
};

struct clear_pause {
  struct reply {
    bool cleared = false;
  };
  std::string kernel_id;
  std::string agent_id;
};

struct list_pauses {
  using reply = std::vector<pause_record>;
  std::string kernel_id; ///< empty: all
};

/// Small durable facts that actors rebuild their state from (sense hashes, no-op back-off, …).
struct put_fact {
  using reply = ok;
  std::string scope; ///< e.g. "wake:default"
  std::string key;
  std::string value; ///< empty: remove
};

struct get_facts {
  using reply = std::map<std::string, std::string>;
  std::string scope;
};

/// Membership heartbeat, stamped with the store's clock.
struct beat {
  using reply = ok;
  std::string node_id;
  std::string host;
  std::int64_t pid = 0;
};

struct list_nodes {
  struct row {
    std::string node_id;
    std::string host;
    std::int64_t pid = 0;
    utc_time first_seen{};
    utc_time last_seen{};
  };
  using reply = std::vector<row>;
};

// -- the port
// --------------------------------------------------------------------------------------

// Every operation stands in one of these lists. The variants below, the stores' declarations and
// what is known of an operation by its list come from them.

/// They change nothing: one look at rows.
#define BOYD_STORE_QUESTIONS(X)                                                                    \
  X(list_occurrences)                                                                              \
  X(list_cycles)                                                                                   \
  X(list_decisions)                                                                                \
  X(find_dispatch)                                                                                 \
  X(list_dispatches)                                                                               \
  X(latest_per_agent)                                                                              \
  X(count_by_status)                                                                               \
  X(due_agents)                                                                                    \
  X(list_pauses)                                                                                   \
  X(get_facts)                                                                                     \
  X(list_nodes)                                                                                    \
  X(sum_spend)                                                                                     \
  X(list_spend)

/// They change nothing, and look at rows of several kinds.
#define BOYD_STORE_STORIES(X)                                                                      \
  X(find_approval)                                                                                 \
  X(list_approvals)

/// Many of one kind come in a batch: a store may carry them out together.
#define BOYD_STORE_BULK(X)                                                                         \
  X(enqueue_cycle)                                                                                 \
  X(claim)                                                                                         \
  X(settle)                                                                                        \
  X(renew_leases)

/// The others.
#define BOYD_STORE_CHANGES(X)                                                                      \
  X(open_occurrence)                                                                               \
  X(close_occurrence)                                                                              \
  X(begin_cycle)                                                                                   \
  X(finish_cycle)                                                                                  \
  X(take_back)                                                                                     \
  X(rescue_expired)                                                                                \
  X(retry_dispatch)                                                                                \
  X(cancel_dispatch)                                                                               \
  X(remove_finished)                                                                               \
  X(set_pause)                                                                                     \
  X(clear_pause)                                                                                   \
  X(put_fact)                                                                                      \
  X(beat)                                                                                          \
  X(reserve_spend)                                                                                 \
  X(settle_spend)                                                                                  \
  X(release_spend)                                                                                 \
  X(ask_approval)                                                                                  \
  X(decide_approval)                                                                               \
  X(use_approval)                                                                                  \
  X(withdraw_approvals)                                                                            \
  X(sweep_approvals)

#define BOYD_STORE_OPERATIONS(X)                                                                   \
  BOYD_STORE_QUESTIONS(X)                                                                          \
  BOYD_STORE_STORIES(X)                                                                            \
  BOYD_STORE_BULK(X)                                                                               \
  BOYD_STORE_CHANGES(X)

namespace detail {
template <class First, class... Operations>
struct variant_of {
  using type = std::variant<Operations...>;
};
#define BOYD_COMMA_AND(name) , name
using operations = variant_of<void BOYD_STORE_OPERATIONS(BOYD_COMMA_AND)>::type;
#undef BOYD_COMMA_AND

/// The variant with the types that it does not have yet.
template <class Variant, class... Types>
struct extended {
  using type = Variant;
};
template <class... Known, class Next, class... More>
struct extended<std::variant<Known...>, Next, More...>
    : std::conditional_t<(std::is_same_v<Known, Next> || ...),
                         extended<std::variant<Known...>, More...>,
                         extended<std::variant<Known..., Next>, More...>> {};

template <class Variant>
struct replies_of;
template <class... Operations>
struct replies_of<std::variant<Operations...>>
    : extended<std::variant<error>, typename Operations::reply...> {};
} // namespace detail

/// Every operation, in the order of BOYD_STORE_OPERATIONS.
using operation_alternatives = detail::operations;

/// An error, and each operation's reply once.
using reply_alternatives = detail::replies_of<operation_alternatives>::type;

/// One of them. Not the variant itself: its copies are compiled once, not wherever one is sent.
struct operation : operation_alternatives {
  using operation_alternatives::operation_alternatives;
  operation();
  ~operation();
  operation(const operation&);
  operation(operation&&) noexcept;
  operation& operator=(const operation&);
  operation& operator=(operation&&) noexcept;
};

/// It changes nothing, and writes nothing to the disk.
bool is_question(const operation& op);

/// The reply of one operation: its `reply` type, or an error of that operation alone (a malformed
/// argument, an ambiguous prefix).
struct any_reply : reply_alternatives {
  using reply_alternatives::reply_alternatives;
  any_reply();
  ~any_reply();
  any_reply(const any_reply&);
  any_reply(any_reply&&) noexcept;
  any_reply& operator=(const any_reply&);
  any_reply& operator=(any_reply&&) noexcept;
};

} // namespace boyd::store

namespace boyd {

/// Called by an opening store before each migration with its name, "schema version 10 (spend)": one
/// may take many minutes. An error ends the open with it.
using migration_step = std::function<result<void>(const std::string&)>;

/// The durable store. Blocking: called by the store worker only. Not thread-safe.
class dispatch_store {
 public:
  virtual ~dispatch_store() = default;

  /// Whom `open` tells of its migrations; called at most once, before the first `open`.
  virtual void tell_migrations(migration_step before) = 0;

  /// Connects and applies the numbered migrations under a lock, each with a commit of its own, so
  /// that an end in the middle costs one of them. Called again after `store_unavailable`; every
  /// limit (connect, lock wait) is finite.
  virtual result<void> open() = 0;

  /// All in one transaction; when this returns a value, every write in it is durable. An error of
  /// the whole means that nothing was done (`timed_out`, `conflict`: somebody was in the way), but
  /// for `commit_in_doubt`: open again and repeat (every operation is idempotent or fenced).
  virtual result<std::vector<store::any_reply>>
  apply(const std::vector<store::operation>& batch) = 0;

  /// What may come after the answers of the latest batch: waking other nodes. Called when they are
  /// out, or never; finite. What fails is logged or made good by others.
  virtual void tidy() = 0;

  /// What an operator should look after although the store works (a transaction of somebody else's
  /// that stays open, a log that cannot be cut back), one line each; empty when all is well.
  /// Cheap, finite, outside any batch; an error means what it means in `apply`.
  virtual result<std::vector<std::string>> concerns() = 0;

  /// One line for status and doctor: kind, place (no password), version.
  virtual std::string describe() const = 0;
};

/// What another node has enqueued, each agent once; empty: something, and the store has to be
/// asked. What it says may be counted once more by a question, and others may have taken it.
using wake_function = std::function<void(std::vector<store::due_agents::row> work)>;

/// Wake-ups from other nodes (LISTEN/NOTIFY). A lost one is repaired by the poll.
class wakeup_source {
 public:
  virtual ~wakeup_source() = default;
};

} // namespace boyd
