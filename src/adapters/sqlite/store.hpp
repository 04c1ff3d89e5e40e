#pragma once

#include "boyd/ports/clock.hpp"
#include "boyd/ports/dispatch_store.hpp"

#include <atomic>
#include <memory>
#include <string>

namespace boyd::adapters {

struct sqlite_options {
  std::string path;   ///< absolute; its directory exists
  bool create = true; ///< make the file when it is missing; only before the first successful open
  std::shared_ptr<clock_port> clock; ///< the store's clock
  int migrate_to = 0; ///< schema version to stop at, for tests of upgrades; 0: the newest
  /// Bytes that the write-ahead log may have, and is cut back to; beyond them it is one of the
  /// store's concerns: another process's long transaction keeps it from being cut.
  std::int64_t wal_concern = std::int64_t{64} << 20;
  /// With more bytes in it, batches are refused with `no_space` until it can be cut.
  std::int64_t wal_limit = std::int64_t{1} << 30;
  /// Set by the first successful open and shared by all copies of these options: a database that
  /// was there once is never silently replaced by an empty one.
  std::shared_ptr<std::atomic<bool>> opened_before = std::make_shared<std::atomic<bool>>(false);
};

/// The embedded store: one connection, WAL, synchronous=FULL (FAULTS.md facts 1 and 7). Keep one
/// object per file alive at a time. Before each batch the file's inode is compared with the open
/// one's: moved away or replaced → `store_unavailable`, and `open` works again once it is back.
std::unique_ptr<dispatch_store> make_sqlite_store(sqlite_options options);

/// The newest schema version this build knows.
int sqlite_schema_version() noexcept;

} // namespace boyd::adapters
