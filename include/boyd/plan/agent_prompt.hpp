#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/context/wanted.hpp"
#include "boyd/core/result.hpp"
#include "boyd/plan/expand.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace boyd::plan {

/// What an agent is told in one run, before its context is read.
struct agent_prompt {
  std::string text; ///< expanded, but for the context
  /// The agent's metadata with what an attempt needs to know of the text: `boyd_sections` (the
  /// places of what was filled in, and of {CONTEXT}), `boyd_context` (references beyond the
  /// agent's `context:` list; context::read_wanted) and `boyd_question` (the message's words).
  std::string metadata_json;
};

/// Expands an agent's prompt and puts `message` behind it. References are looked for in the
/// template and in the message alone, never in what a placeholder stands for; `\@` and `\#` of both
/// are plain characters. Error `limit_exceeded` when the text would be longer than
/// limits::prompt_bytes. Pure.
result<agent_prompt> make_prompt(const config::agent& agent, const placeholder_values& values,
                                 const std::vector<context::wanted>& buffer,
                                 std::string_view message = {});

/// The words of a text by which memory is asked: without placeholders and fences, and cut after
/// 2,000 characters.
std::string question_in(std::string_view text);

} // namespace boyd::plan
