#pragma once

#include "boyd/core/time.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/ports/entropy.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace boyd::adapters {

struct postgres_options {
  std::string uri;                     ///< postgres://user@host/db, or key=value pairs
  std::optional<std::string> password; ///< overrides the URI's; never shown anywhere
  std::shared_ptr<entropy> random;     ///< jitter of reconnects
  std::string application_name = "boyd";
  /// Whose wake-ups a listener with the same name leaves out, for they are its own; empty:
  /// nobody's.
  std::string speaker;
  milliseconds connect_timeout{5'000}; ///< rounded up to seconds, at least 2 (libpq)
  milliseconds statement_timeout{15'000};
  milliseconds lock_timeout{5'000};
  milliseconds idle_in_transaction_timeout{10'000};
  milliseconds tcp_user_timeout{10'000};
  /// A transaction of anybody's that is open for longer is one of the store's concerns: it keeps
  /// dead rows in the queue's tables.
  milliseconds long_transaction{30'000};
  int migrate_to = 0; ///< schema version to stop at, for tests of upgrades; 0: the newest
};

/// The shared store: libpqxx, READ COMMITTED, claims with FOR UPDATE SKIP LOCKED, the database's
/// clock. Tables live in schema `boyd`, or in the search path's first schema when that may not be
/// created. A lost connection is reported, never silently renewed: `open` again. Consecutive
/// operations of one kind in a batch share one statement.
std::unique_ptr<dispatch_store> make_postgres_store(postgres_options options);

/// LISTENs on its own thread and calls `wake` (from that thread) for notifications of others and
/// after each reconnect, since some may have been lost meanwhile. Reconnects with back-off; the
/// destructor returns promptly, but while a server's name is being resolved. A process without a
/// free descriptor is woken from when it has one.
std::unique_ptr<wakeup_source> make_postgres_wakeups(postgres_options options, wake_function wake);

/// The newest schema version this build knows.
int postgres_schema_version() noexcept;

} // namespace boyd::adapters
