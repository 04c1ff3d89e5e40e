#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Planted bugs: each takes one safety rule out of a copy of the sources that the planted_bugs test
/// alone is made of (bugs.cmake says where). The product has no trace of them.
namespace boyd::sim {

enum class planted_bug : std::uint8_t {
  none,
  stale_settlement,    ///< a result is settled without a look at its fence and owner
  no_journal_sync,     ///< edges are acknowledged before their fsync
  sync_tried_again,    ///< a journal's fsync that failed is called again and then believed
  no_directory_sync,   ///< a renamed file's directory is not synced
  no_file_sync,        ///< a new file is renamed before its bytes are on the disk
  append_not_cut,      ///< what a failed append left stands before the next one
  torn_tail_kept,      ///< a journal's torn end is not cut off
  permit_kept,         ///< the permits of a dispatcher that died are not given back
  permit_given_twice,  ///< a permit that comes back counts twice
  kernel_limit_gone,   ///< a kernel takes as many permits as its node has
  lease_ignored,       ///< rows are rescued before their lease has run out
  own_rows_taken,      ///< a node rescues rows of its own while it lives
  lease_not_renewed,   ///< leases are left to run out
  enqueue_twice,       ///< a repeated enqueue makes another row
  agents_part_lost,    ///< the runtime block is written over the agents' part
  commit_repeated,     ///< a commit whose outcome is unknown is made again unseen
  attempt_not_counted, ///< a retry does not count
  take_back_forgotten, ///< a node that starts leaves its old rows running
  call_unreserved,     ///< a model is called though the budgets have refused it
  spend_unsettled,     ///< what a call used does not take the place of what was reserved
  stop_never_ends,     ///< the node waits for parts that have stopped long ago
  attempt_doubled,     ///< a claimed row is started twice
  edges_forgotten,     ///< edges that the recorder did not take are not owed
  lost_attempt_lives,  ///< what has lost its lease is not ended
  doubt_forgotten,     ///< a slot that the store opened without an answer is nobody's
};

inline constexpr auto planted_bug_names = std::to_array<std::string_view>({"none",
                                                                           "stale_settlement",
                                                                           "no_journal_sync",
                                                                           "sync_tried_again",
                                                                           "no_directory_sync",
                                                                           "no_file_sync",
                                                                           "append_not_cut",
                                                                           "torn_tail_kept",
                                                                           "permit_kept",
                                                                           "permit_given_twice",
                                                                           "kernel_limit_gone",
                                                                           "lease_ignored",
                                                                           "own_rows_taken",
                                                                           "lease_not_renewed",
                                                                           "enqueue_twice",
                                                                           "agents_part_lost",
                                                                           "commit_repeated",
                                                                           "attempt_not_counted",
                                                                           "take_back_forgotten",
                                                                           "call_unreserved",
                                                                           "spend_unsettled",
                                                                           "stop_never_ends",
                                                                           "attempt_doubled",
                                                                           "edges_forgotten",
                                                                           "lost_attempt_lives",
                                                                           "doubt_forgotten"});

/// The bug that is planted now. Set between worlds; one thread.
inline planted_bug active_bug = planted_bug::none;

inline bool planted(planted_bug b) noexcept {
  return active_bug == b;
}

} // namespace boyd::sim
