#pragma once

#include "boyd/core/money.hpp"
#include "boyd/core/time.hpp"
#include "passes.hpp"
#include "schema.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Values of a validated tree: a missing key is one that may be missing.
namespace boyd::config {

inline const tree empty_tree{};

inline const tree& get(const tree& t, std::string_view key) {
  const auto* found = t.find(key);
  return found == nullptr ? empty_tree : *found;
}

inline std::string text(const tree& t, std::string_view key) {
  return get(t, key).text;
}

template <class T>
T number(const tree& t, std::string_view key) {
  auto value = get(t, key);
  // Validated already: a number that came from ${…} is a number here, not a text.
  value.expanded = false;
  return json_of(value, {}).template get<T>();
}

inline bool flag(const tree& t, std::string_view key) {
  return number<bool>(t, key);
}

inline milliseconds duration(const tree& t, std::string_view key) {
  return parse_duration(text(t, key)).value_or(milliseconds{0});
}

inline std::size_t size(const tree& t, std::string_view key) {
  return parse_size(text(t, key)).value_or(0);
}

inline std::vector<std::string> texts(const tree& t, std::string_view key) {
  std::vector<std::string> out;
  for (const auto& item : get(t, key).items) {
    out.push_back(item.text);
  }
  return out;
}

template <class E, std::size_t N>
E choice(const tree& t, std::string_view key,
         const std::array<std::pair<std::string_view, E>, N>& names) {
  const auto name = text(t, key);
  for (const auto& [known, value] : names) {
    if (known == name) {
      return value;
    }
  }
  return names.front().second;
}

inline std::int64_t dollars(const tree& t, std::string_view key) {
  return parse_dollars(text(t, key)).value_or(0);
}

} // namespace boyd::config
