#pragma once

#include <pqxx/pqxx>

#include <memory>
#include <string>

/// Whether libpqxx has handlers of notices as functions and `exec` of a prepared statement; both
/// replace calls that it deprecates.
#define BOYD_PQXX_NEW_CALLS                                                                        \
  (PQXX_VERSION_MAJOR > 7 || (PQXX_VERSION_MAJOR == 7 && PQXX_VERSION_MINOR >= 10))

namespace boyd::adapters::postgres {

/// Passes the notices of `connection`, libpqxx's own and the server's, to log_notice() under the
/// name `place`. The returned handler ends before the connection. Notices before a session stands
/// go to standard error: libpq offers no other way.
std::shared_ptr<void> handle_notices(pqxx::connection& connection, std::string place);

} // namespace boyd::adapters::postgres
