#pragma once

#include "failures.hpp"
#include "session.hpp"

#include <pqxx/pqxx>

#include <stdexcept>
#include <string_view>

namespace boyd::adapters::postgres {

inline constexpr const char* database_advice =
    "start the database, or fix node.store; a running node then continues by itself";

/// No connection, or none any more: without `connection` there never was one.
inline failure lost(const pqxx::connection* connection, std::string_view said) {
  if (is_pooling(said))
    return {pooler_error(errc::invalid_configuration, one_line(said)), true};
  return {{errc::store_unavailable,
           connection == nullptr ? "cannot connect: " + one_line(said) : lost_text(said),
           "postgres", database_advice},
          true};
}

/// Runs `f`, turning what libpqxx throws into `failure`.
template <class F>
auto guarded(const pqxx::connection* connection, F f) {
  const auto is_lost = [&] { return connection == nullptr || !connection->is_open(); };
  try {
    return f();
  } catch (const pqxx::in_doubt_error& e) {
    throw failure{{errc::commit_in_doubt, one_line(e.what()), "postgres", {}}, true};
  } catch (const pqxx::broken_connection& e) {
    throw lost(connection, e.what());
  } catch (const pqxx::statement_completion_unknown& e) {
    throw failure{{errc::commit_in_doubt, one_line(e.what()), "postgres", {}}, true};
  } catch (const pqxx::transaction_rollback& e) {
    // Deadlocks and the like, which libpqxx 6 does not count among the errors of SQL.
    if (is_lost())
      throw lost(connection, e.what());
    throw failure{{errc::conflict, one_line(e.what()), "postgres", {}}, false};
  } catch (const pqxx::sql_error& e) {
    // The server ends the session with some of them, which may not show yet.
    const std::string_view said = e.what();
    if (is_lost() || e.sqlstate().starts_with("57P") || is_pooling(said))
      throw lost(connection, said);
    throw failure{error_of(e.sqlstate(), said), is_foreign_session(e.sqlstate())};
  } catch (const pqxx::failure& e) {
    if (is_lost())
      throw lost(connection, e.what());
    throw failure{{errc::bug, one_line(e.what()), "postgres", {}}, false};
  } catch (const std::logic_error& e) {
    // pqxx::usage_error: e.g. a statement after the connection broke.
    if (is_lost())
      throw lost(connection, e.what());
    throw failure{{errc::bug, one_line(e.what()), "postgres", {}}, false};
  } catch (const std::runtime_error& e) {
    // pqxx::pipeline has lost count of its answers: what the session stands at is not known.
    throw lost(connection, e.what());
  }
}

} // namespace boyd::adapters::postgres
