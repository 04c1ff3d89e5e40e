#include "boyd/config/redact.hpp"
#include "boyd/core/text.hpp"
#include "scanning_internal.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace boyd::improve {

namespace {

/// Words of programs for what passes by itself.
bool sounds_passing(const command_end& end) {
  constexpr std::array<std::string_view, 6> words{"rate limit", "Too Many Requests",
                                                  "overloaded", "Connection refused",
                                                  "timed out",  "Temporary failure"};
  return std::ranges::any_of(words, [&](auto w) {
    return end.err.find(w) != std::string::npos || end.out.find(w) != std::string::npos;
  });
}

} // namespace

answer_end answer_of(const command_end& end) {
  if (auto why = why_not_run(end); !why.empty())
    return {{}, failure_kind::environment, std::move(why)};
  if (end.timed_out)
    return {{}, failure_kind::transient, "it took too long"};
  if (end.cut > 0)
    return {{}, failure_kind::deterministic, "its answer is too long"};
  if (end.exit_code == 0)
    return {end.out, failure_kind::none, {}};
  const auto told = first_line(end.err.empty() ? end.out : end.err);
  return {{},
          sounds_passing(end) ? failure_kind::transient : failure_kind::deterministic,
          config::redact_text("code " + std::to_string(end.exit_code) + ": " + sanitize_utf8(told),
                              {})};
}

} // namespace boyd::improve
