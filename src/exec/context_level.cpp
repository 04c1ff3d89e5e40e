#include "boyd/exec/context_level.hpp"

#include "boyd/queue/usage_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace boyd::exec {

using nlohmann::json;

namespace {

using namespace std::string_view_literals;

constexpr std::array beside_the_core{"MEMORY"sv, "SKILLS"sv, "SENSES"sv};

bool is_left_out(std::string_view section, context_level level) {
  if (level == context_level::full)
    return false;
  return std::ranges::find(beside_the_core, section) != beside_the_core.end() ||
         (level == context_level::minimal && section == "STATE");
}

/// A failure of time or size: less context may help. An attempt that shutdown ended took no time of
/// its own.
bool was_too_much(const queue::earlier_attempt& attempt) {
  return attempt.execution == execution_verdict::timed_out || attempt.usage.too_long;
}

} // namespace

std::string name_of(context_level level) {
  switch (level) {
  case context_level::focused:
    return "focused";
  case context_level::minimal:
    return "minimal";
  case context_level::full:
    break;
  }
  return "full";
}

context_level level_for(std::string_view attempts_json) {
  const auto too_much = std::ranges::count_if(queue::earlier_attempts(attempts_json), was_too_much);
  return too_much == 0   ? context_level::full
         : too_much == 1 ? context_level::focused
                         : context_level::minimal;
}

std::string shrink_prompt(const std::string& prompt, std::string_view metadata_json,
                          context_level level) {
  if (level == context_level::full)
    return prompt;
  const auto metadata = json::parse(metadata_json, nullptr, false);
  if (!metadata.is_object() || !metadata.contains("boyd_sections"))
    return prompt;
  std::string out;
  std::size_t from = 0;
  for (const auto& s : metadata["boyd_sections"]) {
    if (!s.is_array() || s.size() != 3 || !s[0].is_string() || !s[1].is_number_unsigned() ||
        !s[2].is_number_unsigned())
      return prompt;
    const auto name = s[0].get<std::string>();
    const auto at = s[1].get<std::size_t>();
    const auto size = s[2].get<std::size_t>();
    if (at < from || at > prompt.size() || size > prompt.size() - at)
      return prompt; // not of this prompt
    if (!is_left_out(name, level))
      continue;
    out.append(prompt, from, at - from);
    out += "[" + name + " is left out: an earlier attempt was too long or took too long]";
    from = at + size;
  }
  out.append(prompt, from, std::string::npos);
  return out;
}

} // namespace boyd::exec
