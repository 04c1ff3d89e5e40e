#include "boyd/skills/skill.hpp"

#include "boyd/context/block.hpp"
#include "boyd/core/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace boyd::skills {

namespace {

using nlohmann::json;

constexpr std::size_t day_characters = 10;
constexpr std::size_t most_declared = 50;
constexpr std::string_view context_prefix = "ctx_";

/// What a text is about, in its own words.
std::string title_of(std::string_view content) {
  auto line = first_line(content);
  while (line.starts_with('#') || line.starts_with(' '))
    line.remove_prefix(1);
  constexpr std::size_t most = 200;
  return std::string(cut_characters(line, most));
}

void declare(std::vector<std::string>& all, std::string_view name) {
  name = trim(name);
  while (!name.empty() && (name.front() == '`' || name.front() == '*'))
    name.remove_prefix(1);
  while (!name.empty() && std::string_view("`*.,;:").find(name.back()) != std::string_view::npos)
    name.remove_suffix(1);
  if (is_skill_name(name) && all.size() < most_declared &&
      std::ranges::find(all, name) == all.end())
    all.emplace_back(name);
}

/// The list behind `"used_skills":`.
void declare_list(std::vector<std::string>& all, std::string_view rest) {
  const auto open = rest.find_first_not_of(" \t\r\n:");
  if (open == rest.npos || rest[open] != '[')
    return;
  const auto close = rest.find(']', open);
  if (close == rest.npos)
    return;
  const auto list = json::parse(rest.substr(open, close + 1 - open), nullptr, false);
  if (list.is_array())
    for (const auto& one : list)
      if (one.is_string())
        declare(all, one.get<std::string>());
}

} // namespace

std::string file_of(std::string_view name) {
  return "skills/" + std::string(name) + "/SKILL.md";
}

std::string draft_file(std::string_view candidate_id) {
  return "context/drafts/" + std::string(candidate_id) + ".md";
}

std::string_view name_of(skill_state s) noexcept {
  switch (s) {
  case skill_state::degraded:
    return "degraded";
  case skill_state::disabled:
    return "disabled";
  case skill_state::archived:
    return "archived";
  case skill_state::enabled:
    break;
  }
  return "enabled";
}

skill_state state_of(const graph::learned_skill& s, utc_time now, const reap_rules& rules) {
  if (s.disabled)
    return skill_state::disabled;
  const auto last =
      std::max({s.counts.created, s.touched, s.counts.last_used.value_or(utc_time{})});
  if (now - last > rules.idle && context::importance(s.counts, now) < rules.score)
    return skill_state::archived;
  return s.degraded ? skill_state::degraded : skill_state::enabled;
}

const graph::skill_version* version_with(const graph::learned_skill& s, std::string_view hash) {
  const auto found =
      std::find_if(s.versions.rbegin(), s.versions.rend(),
                   [&](const graph::skill_version& v) { return !hash.empty() && v.hash == hash; });
  return found == s.versions.rend() ? nullptr : &*found;
}

std::int64_t next_version(const graph::learned_skill& s) {
  std::int64_t last = 0;
  for (const auto& v : s.versions)
    last = std::max(last, v.number);
  return last + 1;
}

std::string candidate_id(std::string_view context_id) {
  if (context_id.starts_with(context_prefix))
    context_id.remove_prefix(context_prefix.size());
  return "candidate_" + std::string(context_id);
}

graph::candidate_status status_of(const graph::learned_candidate& c,
                                  const graph::learned_item& item) {
  const bool has_doubled = item.counts.referenced >= 2 * std::max<std::int64_t>(c.evidence, 1);
  return c.status == graph::candidate_status::rejected && has_doubled
             ? graph::candidate_status::pending
             : c.status;
}

document document_of(const graph::learned_candidate& c, const graph::learned_item& item,
                     std::string_view name, std::string_view content) {
  document d;
  d.name = name;
  auto title = title_of(content);
  if (title.empty() || title == "---")
    title = c.path;
  d.description = title + " (from " + c.path + ")";
  d.description =
      std::string(cut_characters(sanitize_utf8(d.description), most_description_characters));
  d.metadata["version"] = "1";
  d.metadata["when_to_use"] = "When a task is about what " + c.path + " is about.";
  d.metadata["source_context"] = c.context_id;
  d.metadata["created"] = format_rfc3339(c.created).substr(0, day_characters);
  d.body = "\n" + (item.type == context::item_type::file && c.path.ends_with(".md")
                       ? std::string(content)
                       : "# " + c.path + "\n\n" + context::in_fence(content));
  return d;
}

std::string with_version(std::string_view text, std::int64_t version) {
  const auto end = text.find("\n---", 3);
  const auto begin = text.find("\nmetadata:");
  if (end == text.npos || begin == text.npos || begin > end)
    return std::string(text);
  for (auto at = begin + 1; at < end; at = text.find('\n', at) + 1) {
    const auto line_end = std::min(text.find('\n', at), text.size());
    const auto line = trim(text.substr(at, line_end - at));
    if (!line.starts_with("\"version\":") && !line.starts_with("version:"))
      continue;
    const auto indent = text.substr(at, text.find_first_not_of(" \t", at) - at);
    return std::string(text.substr(0, at)) + std::string(indent) + "\"version\": \"" +
           std::to_string(version) + "\"" + std::string(text.substr(line_end));
  }
  return std::string(text);
}

std::string skills_section(const std::vector<offered_skill>& all) {
  if (all.empty())
    return {};
  std::string out = "# Skills\n\nWays of doing things that a person has approved. When you follow "
                    "one, say so on a line of its own:\n[Skill] NAME\n\n";
  for (const auto& s : all)
    out += "- " + s.name + ": " + std::string(trim(s.description)) + "\n";
  for (const auto& s : all)
    if (!s.body.empty())
      out += "\n## " + s.name + "\n\n" + context::in_fence(trim(s.body));
  if (!out.ends_with('\n'))
    out += '\n';
  return out;
}

std::vector<std::string> declared_skills(std::string_view answer) {
  constexpr std::string_view line_mark = "[Skill]";
  constexpr std::string_view member = "\"used_skills\"";
  std::vector<std::string> all;
  for (std::size_t at = 0; at < answer.size();) {
    const auto end = std::min(answer.find('\n', at), answer.size());
    const auto line = trim(answer.substr(at, end - at));
    if (const auto mark = line.find(line_mark); mark != line.npos && mark <= 2)
      declare(all, line.substr(mark + line_mark.size()));
    if (const auto list = answer.substr(at, end - at).find(member); list != answer.npos)
      declare_list(all, answer.substr(at + list + member.size()));
    at = end + 1;
  }
  return all;
}

} // namespace boyd::skills
