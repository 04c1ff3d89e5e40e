#include "boyd/plan/agent_prompt.hpp"

#include "boyd/context/reference.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace boyd::plan {

using nlohmann::json;

namespace {

/// What an attempt may have to do without, and where its context stands (exec/context_level.hpp).
bool is_known_to_attempts(const section& s) {
  return s.name == "MEMORY" || s.name == "SKILLS" || s.name == "SENSES" || s.name == "STATE" ||
         s.name == "CONTEXT";
}

std::vector<context::wanted> references_of(const config::agent& agent, std::string_view message,
                                           const std::vector<context::wanted>& buffer) {
  auto all = context::references_in(agent.prompt, true);
  const auto asked = context::references_in(message, false);
  all.insert(all.end(), asked.begin(), asked.end());
  all.insert(all.end(), buffer.begin(), buffer.end());
  return all;
}

std::string with_places(const std::string& metadata_json, const std::vector<section>& sections,
                        const std::vector<context::wanted>& references,
                        const std::string& question) {
  json places = json::array();
  for (const auto& s : sections)
    if (is_known_to_attempts(s))
      places.push_back({s.name, s.at, s.size});
  if (places.empty() && references.empty() && question.empty())
    return metadata_json;
  auto metadata = json::parse(metadata_json, nullptr, false);
  if (!metadata.is_object())
    return metadata_json;
  if (!places.empty())
    metadata["boyd_sections"] = std::move(places);
  if (!references.empty())
    metadata["boyd_context"] = json::parse(context::to_json(references), nullptr, false);
  if (!question.empty())
    metadata["boyd_question"] = question;
  return metadata.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

result<agent_prompt> make_prompt(const config::agent& agent, const placeholder_values& values,
                                 const std::vector<context::wanted>& buffer,
                                 std::string_view message) {
  auto added = message.empty() ? std::string() : "\n\n" + context::unescape_signs(message);
  if (added.size() > limits::prompt_bytes)
    return fail(errc::limit_exceeded,
                "the message is longer than " + std::to_string(limits::prompt_bytes) + " bytes", {},
                "put the text into a file that the agent reads");
  std::vector<section> sections;
  // A script's answers do not depend on its prompt.
  const bool has_places = !std::holds_alternative<config::script_executor>(agent.run);
  auto text = expand(context::unescape_signs(agent.prompt), values,
                     limits::prompt_bytes - added.size(), has_places ? &sections : nullptr);
  if (!text)
    return fail(std::move(text.error()));
  *text += added;
  return agent_prompt{std::move(*text),
                      with_places(agent.metadata_json, sections,
                                  references_of(agent, message, buffer), question_in(message))};
}

std::string question_in(std::string_view text) {
  constexpr std::size_t most_characters = 2000;
  std::string words;
  bool in_fence = false;
  for (const auto line : split(text, '\n')) {
    if (trim(line).starts_with("```")) {
      in_fence = !in_fence;
      continue;
    }
    if (!in_fence)
      words.append(words.empty() ? "" : "\n").append(line);
  }
  // {STATE} and the like stand for what is no question.
  for (auto open = words.find('{'); open != words.npos; open = words.find('{', open)) {
    const auto close = words.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", open + 1);
    if (close != words.npos && words[close] == '}' && close > open + 1)
      words.erase(open, close + 1 - open);
    else
      ++open;
  }
  return std::string(cut_characters(trim(words), most_characters));
}

} // namespace boyd::plan
