#include "boyd/core/ids.hpp"

#include "boyd/ports/entropy.hpp"

#include <algorithm>
#include <cstddef>

namespace boyd {
namespace {

constexpr std::size_t uuid_characters = 36;
constexpr std::size_t name_characters = 64;
constexpr std::string_view hex_digits = "0123456789abcdef";

constexpr bool is_dash_position(std::size_t i) {
  return i == 8 || i == 13 || i == 18 || i == 23;
}

constexpr bool is_alphanumeric(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

} // namespace

std::string make_uuid_v7(utc_time now, entropy& rand) {
  const auto ms = static_cast<std::uint64_t>(to_unix_ms(now));
  // 48 bits of time, version 7, 12 random bits; variant 10, 62 random bits.
  const std::uint64_t high = (ms << 16) | 0x7000U | (rand.next() >> 52);
  const std::uint64_t low = (std::uint64_t{2} << 62) | (rand.next() >> 2);
  std::string text(uuid_characters, '-');
  int nibble = 0;
  for (std::size_t i = 0; i < uuid_characters; ++i) {
    if (is_dash_position(i))
      continue;
    const std::uint64_t half = nibble < 16 ? high : low;
    text[i] = hex_digits[(half >> (60 - 4 * (nibble % 16))) & 0xFU];
    ++nibble;
  }
  return text;
}

std::optional<utc_time> time_of_uuid_v7(std::string_view text) {
  constexpr std::size_t version_at = 14;
  if (!is_uuid(text) || text[version_at] != '7')
    return std::nullopt;
  std::int64_t ms = 0;
  for (const char c : text.substr(0, version_at - 1))
    if (c != '-')
      ms = ms * 16 + static_cast<std::int64_t>(hex_digits.find(c));
  return from_unix_ms(ms);
}

bool is_uuid(std::string_view text) noexcept {
  if (text.size() != uuid_characters)
    return false;
  for (std::size_t i = 0; i < uuid_characters; ++i) {
    const bool fits =
        is_dash_position(i) ? text[i] == '-' : hex_digits.find(text[i]) != std::string_view::npos;
    if (!fits)
      return false;
  }
  return true;
}

bool is_valid_name(std::string_view text) noexcept {
  if (text.empty() || text.size() > name_characters || !is_alphanumeric(text.front()))
    return false;
  return std::ranges::all_of(
      text, [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

} // namespace boyd
