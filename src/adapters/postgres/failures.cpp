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
  if (state == "42501" || state.rfind("28", 0) == 0 || state == "3D000")
    return errc::invalid_configuration;
  if (state.rfind("08", 0) == 0 || state.rfind("53", 0) == 0 || state.rfind("57", 0) == 0 ||
      state.rfind("58", 0) == 0 || state == "25P03" || state == "25006")
    return errc::store_unavailable;
  return errc::bug;
}

error error_of(const std::string& state, std::string_view said) {
  auto what = one_line(said);
  if (state == "55P03")
    return {errc::timed_out, "another session held a lock for too long: " + what, "postgres",
            "try again; pg_locks and pg_stat_activity show who holds what"};
  if (state == "57014")
    return {errc::timed_out, "a statement took too long: " + what, "postgres",
            "try again; pg_stat_activity shows what else the server does"};
  return {code_of(state), std::move(what), "postgres", {}};
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
