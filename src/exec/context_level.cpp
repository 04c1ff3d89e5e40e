#include "boyd/exec/context_level.hpp"

#include "boyd/queue/usage_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace boyd::exec {

using nlohmann::json;

namespace {

using namespace std::string_view_literals;

constexpr std::array beside_the_core{"MEMORY"sv, "SKILLS"sv, "SENSES"sv};
constexpr auto context_place = "CONTEXT"sv;
constexpr auto skills_place = "SKILLS"sv;

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

namespace {

/// A place in a prompt, by its name.
struct place {
  std::string name;
  std::size_t at = 0;
  std::size_t size = 0;
};

/// The places that the metadata names, in order; none when they are not of this prompt.
std::vector<place> places_in(const std::string& prompt, std::string_view metadata_json) {
  const auto metadata = json::parse(metadata_json, nullptr, false);
  if (!metadata.is_object() || !metadata.contains("boyd_sections"))
    return {};
  std::vector<place> all;
  std::size_t from = 0;
  for (const auto& s : metadata["boyd_sections"]) {
    if (!s.is_array() || s.size() != 3 || !s[0].is_string() || !s[1].is_number_unsigned() ||
        !s[2].is_number_unsigned())
      return {};
    place p{s[0].get<std::string>(), s[1].get<std::size_t>(), s[2].get<std::size_t>()};
    if (p.at < from || p.at > prompt.size() || p.size > prompt.size() - p.at)
      return {};
    from = p.at + p.size;
    all.push_back(std::move(p));
  }
  return all;
}

} // namespace

std::string make_attempt_prompt(const std::string& prompt, std::string_view metadata_json,
                                context_level level, std::string_view context,
                                std::string_view skills) {
  if (level == context_level::full && context.empty() && skills.empty())
    return prompt;
  // What goes to a place of its own, or behind the prompt.
  std::array<std::pair<std::string_view, std::string_view>, 2> parts{
      {{context_place, context},
       {skills_place, level == context_level::full ? skills : std::string_view{}}}};
  std::string out;
  std::size_t from = 0;
  for (const auto& p : places_in(prompt, metadata_json)) {
    const auto part = std::ranges::find(parts, p.name, [](const auto& one) { return one.first; });
    const bool is_filled = part != parts.end() && !part->second.empty();
    const bool is_hidden = is_left_out(p.name, level) && (p.size > 0 || !skills.empty());
    if (!is_filled && !is_hidden)
      continue;
    out.append(prompt, from, p.at - from);
    if (is_filled)
      out += std::exchange(part->second, {});
    else
      out += "[" + p.name + " is left out: an earlier attempt was too long or took too long]";
    from = p.at + p.size;
  }
  out.append(prompt, from, std::string::npos);
  for (const auto& [name, text] : parts)
    if (!text.empty())
      out.append(out.empty() ? "" : out.ends_with('\n') ? "\n" : "\n\n").append(text);
  return out;
}

} // namespace boyd::exec
