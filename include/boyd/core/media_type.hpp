#pragma once

#include <algorithm>
#include <string_view>

namespace boyd {

/// Whether the value of a Content-Type header names the media type `type` (lower case): compared
/// without case, its parameters apart.
inline bool is_media_type(std::string_view value, std::string_view type) noexcept {
  value = value.substr(0, value.find(';'));
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!value.empty() && blank(value.front()))
    value.remove_prefix(1);
  while (!value.empty() && blank(value.back()))
    value.remove_suffix(1);
  return std::ranges::equal(value, type, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

} // namespace boyd
