#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace boyd::app {

/// "1 entry", "2 entries": a count with its noun.
template <std::integral Count>
std::string counted(Count n, std::string_view one, std::string_view more) {
  return std::to_string(n) + " " + std::string(n == 1 ? one : more);
}

/// The same for a noun whose plural ends in s.
template <std::integral Count>
std::string counted(Count n, std::string_view one) {
  return counted(n, one, std::string(one) + "s");
}

} // namespace boyd::app
