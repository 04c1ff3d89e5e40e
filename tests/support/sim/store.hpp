#pragma once

#include "boyd/ports/clock.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/queue/spend.hpp"
#include "boyd/queue/transitions.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace boyd::sim {

/// Calls that were let fail, by what let them.
struct store_strikes {
  std::uint64_t refused = 0;      ///< the database was away, or did not open
  std::uint64_t disconnected = 0; ///< before the commit
  std::uint64_t in_doubt = 0;     ///< in the commit
  std::uint64_t unwritten = 0;    ///< the database took no writes
};

/// What the next calls of a store meet. Probabilities in [0, 1], drawn from the database's entropy.
struct store_faults {
  double disconnect_before = 0;    ///< connection lost before the transaction: nothing done
  double disconnect_in_commit = 0; ///< commit_in_doubt; applied or not by a coin
  double refuse_open = 0;          ///< open() fails
  bool unavailable = false;        ///< taken away until set to false again
  /// Nothing is written, and every question is answered: `no_space`, of a full disk; `timed_out`,
  /// while somebody has locked what is written to.
  std::optional<errc> refuse_writes{};
  /// Called with the number of operations before a batch; simulation advances virtual time here.
  std::function<void(std::size_t)> slow;
  store_strikes struck;

  /// Nothing fails any more.
  void end() {
    const auto so_far = struck;
    *this = {};
    struck = so_far;
  }
};

/// When a row that is pending is due. What asked for no delay waits for no time, whatever the clock
/// says.
inline utc_time waits_until(const dispatch& d) {
  return d.not_before > d.created_at ? d.not_before : utc_time{};
}

/// What moved a row.
enum class row_move : std::uint8_t { claim, settle, take_back, rescue, retry, cancel };

/// The part of a row that the rules of the queue speak of.
struct row_brief {
  dispatch_status status = dispatch_status::pending;
  std::int64_t fence = 0;
  int attempt = 0;
  std::string owner;
  std::optional<utc_time> lease_until;
  utc_time not_before{};

  static row_brief of(const queue::queue_row& row) {
    const auto& d = row.d;
    return {d.status, d.fence, d.attempt, d.lease_owner, d.lease_expires_at, waits_until(d)};
  }
};

/// Who settles a row, and under which fence.
struct attempt_holder {
  std::string node_id;
  std::int64_t fence = 0;
};

/// Judges every change of a row by the rules of docs/queue.md, apart from the code that makes them.
class row_auditor {
 public:
  void added(const queue::queue_row& row);
  void moved(const std::string& id, const row_brief& before, const row_brief& after, row_move why,
             const attempt_holder& by, utc_time now);

  /// Told of each broken rule.
  std::function<void(const std::string&)> broken;
  /// A row is taken from an owner whose lease has run out: whether that can be.
  std::function<void(const std::string& id, const std::string& owner)> rescued;
  /// A row is settled or given back whose lease has run out: whether that can be.
  std::function<void(const std::string& id, const std::string& owner)> lapsed;

 private:
  void complain(const std::string& id, const char* what) const;

  std::set<std::tuple<std::string, std::string, std::string>> keys_; ///< kernel, cycle, agent
  std::set<std::pair<std::string, std::int64_t>> settled_;           ///< dispatch, fence
};

/// The durable contents: survives every crash of a node, shared by all nodes. Threads: any.
class sim_database {
 public:
  sim_database(std::shared_ptr<clock_port> clock, std::shared_ptr<entropy> random);

  row_auditor audit;
  std::uint64_t batches = 0; ///< that were carried out

  store_faults faults; ///< of all connections; set between steps by the simulation

  std::shared_ptr<clock_port> clock;
  std::shared_ptr<entropy> random;

  /// Runs one batch as one transaction.
  std::vector<store::any_reply> run(const std::vector<store::operation>& batch);

  /// For invariant checks, without copies: single-threaded worlds only.
  const std::map<std::string, queue::queue_row>& all_rows() const { return data_.dispatches; }
  const std::map<std::string, cycle_record>& all_cycles() const { return data_.cycles; }
  /// The place of one of them in the order in which they began.
  std::uint64_t cycle_number(const std::string& id) const { return data_.cycle_numbers.at(id); }
  const std::map<std::pair<std::string, utc_time>, occurrence>& all_slots() const {
    return data_.slots;
  }

  /// By kernel, cycle and agent.
  const std::map<std::tuple<std::string, std::string, std::string>, store::list_decisions::row>&
  all_decisions() const {
    return data_.decisions;
  }

  /// A call of a model.
  struct spent_call {
    store::reserve_spend asked;
    std::string day;
    store::usage_counts counts; ///< what was reserved, then what was used
    bool settled = false;
    std::uint64_t number = 0; ///< in the order of the reservations
    utc_time created_at{};
    std::optional<store::spend_release> release;
  };
  /// By call_id.
  const std::map<std::string, spent_call>& all_spend() const { return data_.spend; }
  /// By day and scope.
  const std::map<std::pair<std::string, std::string>, queue::spend_total>& all_totals() const {
    return data_.spend_totals;
  }

  /// The inbox, for invariant checks.
  std::vector<store::find_approval::story> approvals() const;

  /// All rows, for invariant checks: id → row.
  std::map<std::string, queue::queue_row> rows() const;
  /// All slots.
  std::vector<occurrence> occurrences() const;
  /// All cycles by id.
  std::map<std::string, cycle_record> cycles() const;
  /// How often each (dispatch_id, fence) was accepted by settle; an invariant says at most once.
  std::map<std::pair<std::string, std::int64_t>, int> settled() const;

 private:
  friend class sim_transaction;
  /// Pending rows of one agent in claim order: (-priority, created_at, dispatch_id).
  using claim_order = std::set<std::tuple<int, utc_time, std::string>>;
  /// A request for a person's word.
  struct kept_approval {
    store::approval row;
    std::string matter;
    std::vector<store::approval_line> trail;
  };
  struct tables {
    std::map<std::string, queue::queue_row> dispatches;
    std::map<std::pair<std::string, std::string>, claim_order> pending; ///< by kernel and agent
    std::set<std::string> running;
    std::map<std::tuple<std::string, std::string, std::string>, std::string> by_agent;
    std::map<std::pair<std::string, utc_time>, occurrence> slots;
    std::map<std::string, cycle_record> cycles;
    std::map<std::string, std::uint64_t> cycle_numbers; ///< in the order in which they began
    std::uint64_t last_cycle = 0;
    std::map<std::tuple<std::string, std::string, std::string>, store::list_decisions::row>
        decisions;
    std::map<std::pair<std::string, std::string>, pause_record> pauses;
    std::map<std::string, std::map<std::string, std::string>> facts;
    std::map<std::string, store::list_nodes::row> nodes;
    std::map<std::string, kept_approval> approvals; ///< by approval_id
    std::map<std::string, spent_call> spend;        ///< by call_id
    std::map<std::pair<std::string, std::string>, queue::spend_total> spend_totals; ///< day, scope
    std::uint64_t reservations = 0;                                                 ///< so far
  };

  mutable std::mutex mutex_;
  tables data_;
  std::map<std::pair<std::string, std::int64_t>, int> settled_;
};

/// One connection to the database. It meets the faults of the database and its own, which must
/// outlive it; null: it has none of its own.
std::unique_ptr<dispatch_store> make_sim_store(std::shared_ptr<sim_database> database,
                                               store_faults* own = nullptr);

} // namespace boyd::sim
