#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

/// How people name a dispatch: by the beginning of its id, at least min_id_prefix characters, or by
/// the beginning of the id's random part. Of dispatches of one cycle the first is the same for
/// dozens of characters, for it is the time; the second differs at once.
namespace boyd::queue {

/// A UUID's last group.
inline constexpr std::size_t random_part_characters = 12;
/// Shortest beginning of it that find_dispatch takes, and the usual one to be shown.
inline constexpr std::size_t min_random_part = 8;

/// Whether `text` may be the beginning of a random part; it may still be that of an id.
constexpr bool may_be_random_part(std::string_view text) {
  return text.size() >= min_random_part && text.size() <= random_part_characters &&
         std::ranges::all_of(
             text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// The random part of an id; of one that is no UUID its last characters.
constexpr std::string_view random_part_of(std::string_view id) {
  return id.substr(id.size() - std::min(id.size(), random_part_characters));
}

} // namespace boyd::queue
