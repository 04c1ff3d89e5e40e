#include "boyd/state/restarts.hpp"

#include "../core/json_values.hpp"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace boyd::state {

using nlohmann::json;

namespace {

constexpr std::size_t cause_bytes = 1000;

} // namespace

std::string restarts_scope(std::string_view node_id) {
  return "restarts:" + std::string(node_id);
}

std::string restart_key(const restart_event& event, std::uint64_t number) {
  return fmt::format("{:016}-{:06}", to_unix_ms(event.at), number);
}

std::string render_restart(const restart_event& event) {
  return json{{"part", event.part},
              {"cause", event.cause.substr(0, cause_bytes)},
              {"at", to_unix_ms(event.at)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<restart_event> parse_restarts(const std::map<std::string, std::string>& facts) {
  std::vector<restart_event> all;
  for (auto it = facts.rbegin(); it != facts.rend(); ++it) {
    const auto kept = json::parse(it->second, nullptr, false);
    if (!kept.is_object() || text_in(kept, "part").empty())
      continue;
    const auto at = kept.find("at");
    if (at == kept.end() || !at->is_number_integer())
      continue;
    all.push_back(
        {text_in(kept, "part"), text_in(kept, "cause"), from_unix_ms(at->get<std::int64_t>())});
  }
  return all;
}

} // namespace boyd::state
