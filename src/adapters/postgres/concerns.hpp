#pragma once

#include "boyd/ports/dispatch_store.hpp"
#include "session.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boyd::adapters::postgres {

/// Transactions of other sessions, prepared ones included, that keep the server from removing dead
/// rows of the queue's tables: open for longer than `longest`, or since very many transactions. One
/// line each, the oldest first, at most a few; a line stays the same while the transaction is open.
/// Outside any transaction; throws `failure`. (PostgreSQL manual, pg_stat_activity: of sessions of
/// other users their begin is only shown to members of pg_read_all_stats, their age in transactions
/// to all.)
std::vector<std::string> open_transactions(session& db, milliseconds longest);

/// A settlement that the database acknowledged: the newest one tells after a reconnect whether the
/// database still has what it said to have.
struct witness {
  std::string dispatch_id;
  std::int64_t fence = 0;
  std::string node_id; ///< whose settlement it was
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
};

/// The last settlement of a batch that was accepted.
std::optional<witness> witness_of(const std::vector<store::operation>& batch,
                                  const std::vector<store::any_reply>& replies);

/// Nothing, or one line about a settlement that is gone: a server took over that had not received
/// it. What retention removed is not missed: a dispatch that is gone altogether is one only within
/// the shortest retention there is. Outside any transaction; throws `failure`.
std::optional<std::string> loss_of(session& db, const witness& w);

} // namespace boyd::adapters::postgres
