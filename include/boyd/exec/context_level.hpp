#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace boyd::exec {

/// How much of its context an attempt gets (docs/executors.md): all, without what is not at the
/// core, or only the task itself.
enum class context_level : std::uint8_t { full, focused, minimal };

std::string name_of(context_level level);

/// The level of the next attempt: one step less for each earlier attempt of the row that timed out
/// or was too long; other failures take nothing away. `attempts_json`: dispatch::attempts_json.
context_level level_for(std::string_view attempts_json);

/// The prompt of an attempt. Where the planner filled in placeholders it left their places in the
/// row's metadata (`boyd_sections`): `context` (the block of items; may be empty) goes to the first
/// place of {CONTEXT}, `skills` (may be empty) to that of {SKILLS}, and without one behind the
/// prompt; focused leaves out MEMORY, SKILLS and SENSES, minimal also STATE; GOAL, TIME and
/// RECENT_RESULTS stay. In the place of what is left out stands
/// a line that says so. Without such places nothing is left out.
std::string make_attempt_prompt(const std::string& prompt, std::string_view metadata_json,
                                context_level level, std::string_view context = {},
                                std::string_view skills = {});

} // namespace boyd::exec
