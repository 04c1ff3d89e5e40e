#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace boyd::detail {

/// The name at the position of `value`; the enumeration must count from 0 without gaps.
template <class E, std::size_t N>
constexpr std::string_view name_in(const std::array<std::string_view, N>& names, E value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : std::string_view{"unknown"};
}

/// The inverse of `name_in`; nothing for a name that is not in the table.
template <class E, std::size_t N>
constexpr std::optional<E> value_in(const std::array<std::string_view, N>& names,
                                    std::string_view name) noexcept {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == name)
      return static_cast<E>(i);
  return std::nullopt;
}

} // namespace boyd::detail
