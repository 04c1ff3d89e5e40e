#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

/// The fixed words of the runtime block (docs/state-and-history.md): shared by its writer, its
/// reader and the scan.
namespace boyd::state::grammar {

inline constexpr std::string_view heading = "## kernel_runtime";
inline constexpr std::string_view history_heading = "### cycle_history";
inline constexpr std::string_view history_header =
    "| cycle_id | status | dispatched | succeeded | failed | summary | updated_at |";
inline constexpr std::string_view history_rule =
    "|----------|--------|------------|-----------|--------|---------|------------|";
inline constexpr std::size_t history_columns = 7;
inline constexpr std::string_view none = "(none)";

inline constexpr std::string_view updated_at_key = "updated_at";
/// Keys carry this prefix since the history came; older blocks have them without it.
inline constexpr std::string_view latest_prefix = "latest_";
/// Without the prefix, in the order of the rendering.
inline constexpr std::array<std::string_view, 9> latest_keys = {
    "cycle_id",      "status",        "dispatched",  "succeeded", "failed",
    "failed_agents", "agent_summary", "duration_ms", "error"};

/// A line "- key: value"; the value is still escaped and may be empty.
struct bullet {
  std::string_view key;
  std::string_view value;
};

/// Reads such a line; the key is one word of [a-z0-9_].
inline std::optional<bullet> bullet_of(std::string_view line) {
  if (!line.starts_with("- ")) {
    return std::nullopt;
  }
  line.remove_prefix(2);
  const auto colon = line.find(':');
  const auto key = line.substr(0, colon);
  const auto is_key_character = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (colon == std::string_view::npos || key.empty() ||
      !std::all_of(key.begin(), key.end(), is_key_character)) {
    return std::nullopt;
  }
  auto value = line.substr(colon + 1);
  if (!value.empty() && value.front() != ' ') {
    return std::nullopt;
  }
  const auto first = value.find_first_not_of(" \t");
  const auto last = value.find_last_not_of(" \t\r");
  value = first == std::string_view::npos ? "" : value.substr(first, last - first + 1);
  return bullet{key, value};
}

/// True for a bullet with one of the rendering's keys, new or old.
inline bool is_known_bullet(std::string_view line) {
  const auto read = bullet_of(line);
  if (!read) {
    return false;
  }
  auto key = read->key;
  if (key == updated_at_key) {
    return true;
  }
  if (key.starts_with(latest_prefix)) {
    key.remove_prefix(latest_prefix.size());
  }
  return std::find(latest_keys.begin(), latest_keys.end(), key) != latest_keys.end();
}

} // namespace boyd::state::grammar
