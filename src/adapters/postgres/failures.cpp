#include "failures.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <utility>

namespace boyd::adapters::postgres {

errc code_of(const std::string& state) {
  if (state == "53100")
    return errc::no_space;
  if (state == "23505")
    return errc::already_exists;
  if (state == "40001" || state == "40P01")
    return errc::conflict;
  if (state == "55P03" || state == "57014")
    return errc::timed_out;
  if (state.rfind("XX", 0) == 0)
    return errc::corrupt;
  if (state.rfind("28", 0) == 0 || state == "3D000")
    return errc::invalid_configuration;
  if (is_foreign_session(state))
    return errc::store_unavailable;
  // Data, constraints, triggers, permissions, objects that are not there, limits of a program: the
  // same request would be refused again.
  for (const std::string_view kind :
       {"0A", "21", "22", "23", "27", "2F", "38", "39", "42", "44", "54", "P0"})
    if (state.starts_with(kind))
      return errc::refused;
  if (state.rfind("08", 0) == 0 || state.rfind("53", 0) == 0 || state.rfind("57", 0) == 0 ||
      state.rfind("58", 0) == 0 || state == "25P03" || state == "25006")
    return errc::store_unavailable;
  return errc::bug;
}

error error_of(const std::string& state, std::string_view said) {
  auto what = one_line(said);
  if (state == "55P03")
    return {errc::timed_out, "another session held a lock too long: " + what, "postgres",
            "try again; pg_locks and pg_stat_activity show the holder of the lock"};
  if (state == "57014")
    return {errc::timed_out, "a statement took too long: " + what, "postgres",
            "try again; pg_stat_activity shows the load of the server"};
  if (is_foreign_session(state))
    return pooler_error(errc::store_unavailable, what);
  if (state == "42501")
    return {errc::refused, std::move(what), "postgres",
            "grant the node's role the rights on boyd's tables, or make it their owner"};
  if (code_of(state) == errc::refused)
    return {errc::refused, std::move(what), "postgres",
            "see docs/queue.md, When the database refuses; boyd doctor compares the tables"};
  return {code_of(state), std::move(what), "postgres", {}};
}

bool is_foreign_session(std::string_view state) {
  return state == "26000" || state == "42P05";
}

bool is_pooling(std::string_view said) {
  return said.find("pooling mode") != std::string_view::npos;
}

error pooler_error(errc code, const std::string& said) {
  return {code,
          "node.store is a transaction pooler (such as PgBouncer with pool_mode = transaction or "
          "statement), which spreads a session over several connections" +
              (said.empty() ? "" : ": " + said),
          "postgres",
          "connect to PostgreSQL directly, or set pool_mode = session: LISTEN and prepared "
          "statements need a session of their own"};
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : trim(text)) {
    const bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!is_space)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  for (const std::string_view hint : {" Is the server running", " This probably means"})
    line.resize(std::min(line.find(hint), line.size()));
  return line;
}

std::string lost_text(std::string_view said) {
  const auto line = one_line(said);
  const bool is_own = line.find("not connected") != std::string::npos ||
                      line.find("Could not obtain") != std::string::npos;
  return "connection lost" + (line.empty() || is_own ? "" : ": " + line);
}

} // namespace boyd::adapters::postgres
