#pragma once

#include "boyd/core/dispatch.hpp"
#include "connection.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace boyd::adapters::sqlite {

/// An agent as dispatches name it. Agents are never removed: there are as many as a node ever had.
struct agent_entry {
  std::int64_t no = 0;
  std::int64_t kernel_no = 0;
  std::string kernel_id;
  std::string agent_id;
  /// Its dispatches in dispatch_waiting, and those among them that wait for a time later than their
  /// making.
  std::uint64_t waiting = 0;
  std::uint64_t delayed = 0;
};

/// Every status, each at its own number.
inline constexpr std::array statuses{dispatch_status::pending, dispatch_status::running,
                                     dispatch_status::done, dispatch_status::failed,
                                     dispatch_status::cancelled};

/// What dispatch_running says of one dispatch.
struct held_lease {
  std::int64_t id = 0;
  std::int64_t agent_no = 0;
  std::int64_t owner_no = 0;
  std::int64_t fence = 0;
  int attempt = 0;
  utc_time started_at{};
  bool first = false; ///< there is no row in dispatch_results
};

/// What the adapter remembers of its database between batches, so that the hot path need not ask:
/// agents and nodes by name and number, how many rows wait for each agent, and what it runs. True
/// because nobody else writes to the file; dropped with every transaction that is rolled back. It
/// also gathers the changes of dispatch_counts, which are written once per transaction instead of
/// once per row.
class directory {
 public:
  /// Compares (kernel_id, agent_id) of either kind of string.
  struct by_name {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const noexcept {
      const int order = std::string_view{a.first}.compare(std::string_view{b.first});
      return order != 0 ? order < 0 : std::string_view{a.second} < std::string_view{b.second};
    }
  };
  /// Keyed by (kernel_id, agent_id), in that order.
  using agents = std::map<std::pair<std::string, std::string>, agent_entry, by_name>;

  explicit directory(connection& db) : db_(db) {}

  /// The agent, made when it is new.
  agent_entry& ensure(const std::string& kernel_id, const std::string& agent_id);
  /// The agent, or null.
  agent_entry* find(std::string_view kernel_id, std::string_view agent_id);
  /// The agent of a row. Throws `failure` (corrupt) when there is none.
  agent_entry& of(std::int64_t agent_no);
  const agents& all();
  /// As `all`, with the counts of waiting rows.
  const agents& counted();

  /// The number of a node's id, made when it is new. 0: the empty id.
  std::int64_t node_no(const std::string& node_id);
  /// The id of a node's number; empty for 0. Throws as `of`.
  const std::string& node_id(std::int64_t no);

  /// The id of the next row of dispatch_requests, to be counted on by whoever makes one.
  std::int64_t& next_id();

  /// Leases by dispatch_id.
  void leased(const std::string& dispatch_id, const held_lease& lease) {
    leases_[dispatch_id] = lease;
  }
  void released(const std::string& dispatch_id) { leases_.erase(dispatch_id); }
  /// Null: it does not run, or another connection made the row.
  const held_lease* leased(const std::string& dispatch_id) const;

  /// `by` dispatches wait now, or, below 0, do not wait any more.
  void waiting(agent_entry& a, bool delayed, std::int64_t by);
  /// `count` dispatches have another status. Nothing: they are new, or are removed.
  void moved(const agent_entry& a, std::optional<dispatch_status> from,
             std::optional<dispatch_status> to, std::int64_t count = 1);
  /// Writes what `moved` gathered; to be called before COMMIT and before the counts are read.
  void write_counts();
  /// Forgets everything: the transaction was rolled back.
  void forget();

 private:
  void load();
  void write_count(const std::string& kernel_id, dispatch_status status, std::int64_t by);

  connection& db_;
  bool loaded_ = false;
  bool counted_ = false;
  std::int64_t next_id_ = 0; ///< 0: not asked for yet
  agents agents_;
  std::unordered_map<std::int64_t, agent_entry*> by_no_;
  std::unordered_map<std::string, std::int64_t> node_nos_;
  std::unordered_map<std::int64_t, std::string> node_ids_{{0, {}}};
  std::unordered_map<std::string, held_lease> leases_;
  /// Of each kernel, by status.
  std::map<std::string, std::array<std::int64_t, statuses.size()>> changes_;
};

} // namespace boyd::adapters::sqlite
