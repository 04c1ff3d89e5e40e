#include "boyd/core/limits.hpp"
#include "control_client.hpp"
#include "control_server.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace boyd::adapters {

namespace {

using json = nlohmann::json;

/// The longest error a node writes is far shorter.
constexpr std::size_t error_bytes = 1u << 20;

errc code_named(std::string_view name) {
  for (unsigned value = 1; value <= std::numeric_limits<std::uint8_t>::max(); ++value)
    if (const auto code = static_cast<errc>(value); name != "unknown" && name_of(code) == name)
      return code;
  return errc::bug;
}

/// For an answer that does not explain itself.
errc code_for_status(int status) {
  switch (status) {
  case 400:
  case 405:
  case 408:
  case 417:
  case 431:
  case 501:
    return errc::invalid_argument;
  case 403:
    return errc::refused;
  case 404:
    return errc::not_found;
  case 409:
    return errc::conflict;
  case 413:
    return errc::limit_exceeded;
  case 429:
    return errc::overloaded;
  case 503:
    return errc::actor_down;
  default:
    return errc::bug;
  }
}

bool is_shallow(std::string_view text) {
  const auto opens = std::ranges::count_if(text, [](char c) { return c == '[' || c == '{'; });
  return static_cast<std::size_t>(opens) <= limits::json_depth;
}

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

} // namespace

error error_of(const http_response& response) {
  if (response.body.size() <= error_bytes && is_shallow(response.body)) {
    const auto body = json::parse(response.body, nullptr, false);
    const auto found = body.is_object() ? body.find("error") : body.end();
    if (body.is_object() && found != body.end() && found->is_object())
      return error{code_named(text_at(*found, "code")), text_at(*found, "what"),
                   text_at(*found, "where"), text_at(*found, "next")};
  }
  return error{code_for_status(response.status),
               "the node answered with status " + std::to_string(response.status), "", ""};
}

} // namespace boyd::adapters
