#include "boyd/plan/wake.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <charconv>

namespace boyd::plan {
namespace {

/// Past it the delay has long reached any `max`; keeps the number small in rows.
constexpr int counted_noops = 1'000'000;

template <class N>
bool read_number(std::string_view text, N& value) {
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  return !text.empty() && code == std::errc{} && stop == end;
}

} // namespace

std::string write_wake_memory(const wake_memory& memory) {
  return std::to_string(memory.noops) + " " + std::to_string(to_unix_ms(memory.checked_at)) + " " +
         memory.hash;
}

std::optional<wake_memory> read_wake_memory(std::string_view text) {
  const auto first = text.find(' ');
  const auto second = first == std::string_view::npos ? first : text.find(' ', first + 1);
  if (second == std::string_view::npos)
    return std::nullopt;
  wake_memory memory;
  std::int64_t checked_ms = 0;
  if (!read_number(text.substr(0, first), memory.noops) || memory.noops < 0 ||
      !read_number(text.substr(first + 1, second - first - 1), checked_ms))
    return std::nullopt;
  memory.checked_at = from_unix_ms(checked_ms);
  memory.hash = text.substr(second + 1);
  return memory;
}

milliseconds wake_delay(int noops, milliseconds base, milliseconds max) {
  if (noops <= 0)
    return milliseconds{0};
  milliseconds delay = base;
  for (int i = 1; i < noops && delay < max; ++i)
    delay *= 2;
  return std::min(delay, max);
}

utc_time wake_due_at(const wake_memory& memory, const config::wake_policy& policy, utc_time now) {
  if (memory.checked_at > now)
    return now;
  return memory.checked_at + wake_delay(memory.noops, limits::wake_base, policy.max_backoff);
}

wake_step advance_wake(const std::optional<wake_memory>& memory, const std::string& hash,
                       utc_time now) {
  const bool same = memory && memory->hash == hash;
  const int noops = same ? std::min(memory->noops, counted_noops) + 1 : 0;
  return {{same ? wake_kind::unchanged : wake_kind::changed, {}}, {noops, now, hash}};
}

} // namespace boyd::plan
