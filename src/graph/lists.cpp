#include "boyd/graph/lists.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace boyd::graph {

namespace {

constexpr std::size_t digits = 16;
constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max();

std::string key_of(std::int64_t number, std::string_view name) {
  constexpr std::string_view figures = "0123456789abcdef";
  constexpr unsigned bits = 4;
  std::string key(digits, '0');
  auto rest = static_cast<std::uint64_t>(number);
  for (auto at = key.rbegin(); at != key.rend(); ++at, rest >>= bits)
    *at = figures[rest % figures.size()];
  key += name;
  return key;
}

std::int64_t number_of(utc_time t) {
  return std::max<std::int64_t>(0, to_unix_ms(t));
}

} // namespace

std::string key_by_use(const std::optional<utc_time>& last_used, std::string_view id) {
  return key_of(last_used ? latest - 1 - std::min(number_of(*last_used), latest - 1) : latest, id);
}

std::string key_by_age(utc_time last_used, std::string_view skill) {
  return key_of(number_of(last_used), skill);
}

std::string name_in_key(std::string_view key) {
  return std::string(key.substr(std::min(digits, key.size())));
}

bool is_noisy(const context::item_statistics& counts) noexcept {
  constexpr std::int64_t least_injected = 10;
  constexpr double least_share = 0.1;
  return counts.injected >= least_injected &&
         static_cast<double>(counts.use_count) < least_share * static_cast<double>(counts.injected);
}

} // namespace boyd::graph
