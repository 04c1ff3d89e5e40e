#pragma once

#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>

/// Every rate, size and timeout that has no key in the configuration, and the defaults of those
/// that have one. No number appears elsewhere without a name.
namespace boyd::limits {

// -- queue (docs/queue.md) --
inline constexpr milliseconds lease = 30s;
inline constexpr milliseconds lease_renewal = 10s;
inline constexpr milliseconds rescue_sweep = 5s;
/// A node-wide fallback poll: wake-ups are messages, this only repairs a lost one.
inline constexpr milliseconds queue_poll = 5s;
inline constexpr int max_attempts = 3;
inline constexpr int max_rescues = 3;
inline constexpr milliseconds retry_base = 1s;
inline constexpr milliseconds retry_cap = 5min;
/// A provider or a program that names a time is waited for so long at most: a week's limit, and a
/// day for what its words leave open.
inline constexpr milliseconds longest_told_wait = std::chrono::hours{24 * 8};
inline constexpr std::size_t claim_batch = 256;
inline constexpr milliseconds retention = std::chrono::hours{24 * 30};
/// The least that `node.retention` may be: what ended is kept for so long in any case.
inline constexpr milliseconds shortest_retention = std::chrono::minutes{1};
inline constexpr std::size_t retention_batch = 1000;
/// Requests a store keeper holds before it answers `overloaded`.
inline constexpr std::size_t store_queue = 8192;
/// Operations joined into one transaction at most.
inline constexpr std::size_t store_group = 512;

// -- cycle (docs/planning.md, docs/state-and-history.md) --
/// Of a cycle that ends with the next slot of its schedule, at the latest.
inline constexpr milliseconds longest_cycle = 30 * 24h;
inline constexpr std::size_t max_cycle_history = 5;
inline constexpr std::size_t history_cell_characters = 200;
inline constexpr std::size_t recent_actions = 20;
inline constexpr std::size_t recent_results = 10;
inline constexpr std::size_t state_file_bytes = 4u << 20;

// -- schedules and planning (docs/planning.md) --
/// `misfire: all` runs at most this many slots late, and a decision writes at most this many rows
/// (and one summary row for all older slots).
inline constexpr std::size_t caught_up_slots = 100;
/// A kernel looks at the clock at least this often, so that a step of the clock is noticed.
inline constexpr milliseconds clock_check = 1min;
/// A recorded time further ahead of the clock than this came from a clock that was wrong, and is
/// not waited for.
inline constexpr milliseconds clock_step = std::chrono::hours{24};
/// One prompt, expanded.
inline constexpr std::size_t prompt_bytes = 16u << 20;
/// The wait after the first unchanged wake check; it doubles from here.
inline constexpr milliseconds wake_base = 1min;

// -- executors (docs/executors.md) --
inline constexpr milliseconds run_timeout = 10min;
inline constexpr milliseconds term_grace = 5s;
/// The same after a second signal to the node.
inline constexpr milliseconds hurried_grace = 1s;
inline constexpr std::size_t output_bytes = 1u << 20;
inline constexpr std::size_t summary_characters = 200;

// -- models (docs/executors.md) --
inline constexpr int model_turns = 25;
/// Budgets that hold where the configuration names none. Costs are millionths of a US dollar.
inline constexpr std::int64_t run_tokens = 500'000;
inline constexpr std::int64_t run_cost = 2'000'000;
inline constexpr std::int64_t day_tokens = 5'000'000;
inline constexpr std::int64_t day_cost = 20'000'000;
inline constexpr std::int64_t node_day_tokens = 200'000'000;
inline constexpr std::int64_t node_day_cost = 200'000'000;

// -- supervision (docs/architecture.md) --
inline constexpr int restart_intensity = 5;
inline constexpr milliseconds restart_period = 30s;
inline constexpr int root_restart_intensity = 3;
inline constexpr milliseconds root_restart_period = 60s;
/// A supervisor pings its children this often; one that has not answered in time is silent.
/// Together less than the 30 s within which a stuck part must be seen.
inline constexpr milliseconds heartbeat = 10s;
inline constexpr milliseconds heartbeat_patience = 15s;
/// A keeper's worker that is at one batch for longer is silent, too. More than a database that does
/// not answer may take (its connect and statement limits).
inline constexpr milliseconds worker_patience = 20s;
/// The watchdog ends the process: a part that missed so many pings in a row, a scheduler that stood
/// still for so many looks, a worker that was at one batch for so long.
inline constexpr int stuck_pings = 4;
inline constexpr int stuck_looks = 6;
inline constexpr milliseconds stuck_worker = 2min;
/// One step of what is known to take long, a migration of the database, before it counts as silent.
inline constexpr milliseconds long_work = 1h;
inline constexpr milliseconds backoff_base = 100ms;
inline constexpr milliseconds backoff_cap = 30s;
inline constexpr milliseconds drain_grace = 30s;
/// Every request between actors has a finite timeout; this is the longest ordinary one.
inline constexpr milliseconds request_timeout = 30s;

// -- files and repository (docs/state-and-history.md) --
inline constexpr milliseconds stale_lock_age = 60s;
inline constexpr double mass_deletion_share = 0.5;
/// How long a live foreign lock in the repository is waited for.
inline constexpr milliseconds repository_lock_wait = 5s;
/// Compare-and-swap attempts of one commit; edits of one file beside a person's.
inline constexpr int commit_attempts = 5;
inline constexpr int update_attempts = 5;
/// Background packing: from so many loose objects on; packs are joined beyond so many.
inline constexpr std::size_t pack_loose_objects = 500;
/// As many at once: a cycle that wants to commit waits about a second for them, not minutes.
inline constexpr std::size_t pack_loose_at_once = 10'000;
inline constexpr std::size_t pack_files = 20;
/// Only packs up to this size are joined, and only so many bytes and objects at once.
inline constexpr std::size_t pack_join_bytes = 64u << 20;
inline constexpr std::size_t pack_objects = 200'000;
/// Commits looked at to find one by cycle, path or time.
inline constexpr std::size_t history_search = 100'000;
/// The largest file read out of a commit, and the largest diff.
inline constexpr std::size_t revision_bytes = 64u << 20;

// -- budgets (docs/executors.md) --
/// Of a budget, in per cent, from which on its use is warned of.
inline constexpr int budget_warning = 80;

// -- control socket (FAULTS.md) --
inline constexpr std::size_t http_head_bytes = 16u << 10;
inline constexpr std::size_t http_headers = 64;
inline constexpr std::size_t http_body_bytes = 1u << 20;
inline constexpr std::size_t http_connections = 64;
inline constexpr milliseconds http_head_timeout = 10s;

// -- input (FAULTS.md) --
inline constexpr std::size_t config_bytes = 1u << 20;
inline constexpr std::size_t json_depth = 64;

} // namespace boyd::limits
