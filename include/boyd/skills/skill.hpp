#pragma once

#include "boyd/core/time.hpp"
#include "boyd/graph/learned.hpp"
#include "boyd/graph/learned_skills.hpp"
#include "boyd/skills/document.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Skills and candidates for them, as people and prompts see them (docs/skills.md). Pure.
namespace boyd::skills {

/// SKILL.md of a skill, below the kernel's home.
std::string file_of(std::string_view name);
/// A text that a candidate is to become, where somebody has written one; below the kernel's home.
std::string draft_file(std::string_view candidate_id);

enum class skill_state : std::uint8_t {
  enabled,
  degraded, ///< it failed too often: no prompt names it, a run may still declare it
  disabled, ///< by hand
  archived, ///< worth little, and not used for long
};

std::string_view name_of(skill_state s) noexcept;

struct reap_rules {
  double score = 0.4;                              ///< below
  milliseconds idle = std::chrono::hours{24 * 60}; ///< for longer
};

/// Of approved bytes; whether a file has these is not looked at.
skill_state state_of(const graph::learned_skill& s, utc_time now, const reap_rules& rules = {});

/// The version with these bytes, the latest one; null: nobody has approved them.
const graph::skill_version* version_with(const graph::learned_skill& s, std::string_view hash);
/// The number that the next version gets.
std::int64_t next_version(const graph::learned_skill& s);

/// The candidate of an item: one for each scope and path.
std::string candidate_id(std::string_view context_id);

/// Where a candidate stands: what was rejected waits again when its item has twice the evidence.
graph::candidate_status status_of(const graph::learned_candidate& c,
                                  const graph::learned_item& item);

/// The skill that an item makes by itself: its content, with what is known of it. The same for the
/// same arguments. `name`: that the skill shall have.
document document_of(const graph::learned_candidate& c, const graph::learned_item& item,
                     std::string_view name, std::string_view content);

/// `text` with this version in its metadata, where that names one as render_document writes it.
std::string with_version(std::string_view text, std::int64_t version);

/// A skill as a prompt shows it.
struct offered_skill {
  std::string name;
  std::string description;
  std::string body; ///< empty: name and description alone
};

/// The section `# Skills`; empty without any.
std::string skills_section(const std::vector<offered_skill>& all);

/// The names that an answer declares: lines `[Skill] NAME` and JSON `"used_skills": [...]`, each
/// once, in the order of their first places.
std::vector<std::string> declared_skills(std::string_view answer);

} // namespace boyd::skills
