#include "boyd/tools/definitions.hpp"

#include "boyd/tools/call.hpp"
#include "boyd/tools/policy.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace boyd::tools {

namespace {

using nlohmann::ordered_json;

ordered_json text(const char* description) {
  return {{"type", "string"}, {"description", description}};
}

ordered_json number(const std::string& description, std::uint64_t most) {
  return {{"type", "integer"}, {"minimum", 1}, {"maximum", most}, {"description", description}};
}

ordered_json flag(const char* description) {
  return {{"type", "boolean"}, {"description", description}};
}

using members = std::initializer_list<std::pair<const char*, ordered_json>>;

/// With the members in the order of their mention.
std::string object(std::vector<std::string> required, members properties) {
  ordered_json all = ordered_json::object();
  for (const auto& [name, schema] : properties)
    all[name] = schema;
  ordered_json schema = {{"type", "object"}, {"properties", std::move(all)}};
  if (!required.empty())
    schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema.dump();
}

constexpr const char* path_text = "Path relative to the workspace";

definition read_file() {
  return {
      std::string(read_file_name),
      "Reads a text file of the workspace. Returns at most about 60 KB; its end says what is "
      "missing and how to continue. Also reads tool results that were too long "
      "(@results/NAME).",
      object({"path"},
             {{"path", text(path_text)},
              {"offset", number("First line to return, from 1. Default: 1", most_number)},
              {"limit",
               number("Maximum number of lines. Default: " + std::to_string(read_file_call{}.limit),
                      most_lines)},
              {"byte_offset",
               number("Instead of offset: first byte to return; for very long lines", most_number)},
              {"line_numbers", flag("Put the line number before each line. Default: false")}})};
}

definition write_file() {
  return {std::string(write_file_name),
          "Writes a whole text file of the workspace: replaces the file, or creates it and its "
          "directories. To change a part, read the file first and write all of it.",
          object({"path", "content"},
                 {{"path", text(path_text)}, {"content", text("The complete new content")}})};
}

definition list_dir() {
  return {std::string(list_dir_name),
          "Lists one directory of the workspace: names, kinds and sizes. Directories end with /.",
          object({}, {{"path", text("Directory relative to the workspace. Default: .")}})};
}

definition search_text() {
  return {std::string(search_text_name),
          "Finds a fixed text (no regular expression) in the files of the workspace and returns "
          "path:line: text of each matching line, " +
              std::to_string(search_text_call::most_matches) +
              " at most. Skips binary files, files above 8 MB, links and .git.",
          object({"query"},
                 {{"query", text("The exact text to find")},
                  {"path", text("Directory or file to search. Default: . (everything)")},
                  {"files", text("Only files whose path matches, e.g. *.md or src/**/*.cpp; "
                                 "without / only the name is compared")},
                  {"ignore_case", flag("Ignore the case of ASCII letters. Default: false")}})};
}

definition run_command() {
  return {
      std::string(run_command_name),
      "Runs a program in the workspace and returns its exit code and output. Give either argv "
      "(no shell) or command (a line for /bin/sh). It gets no input.",
      object({}, {{"argv", ordered_json{{"type", "array"},
                                        {"items", {{"type", "string"}}},
                                        {"description", "Program and arguments"}}},
                  {"command", text("A line for the shell, instead of argv")},
                  {"cwd", text("Directory relative to the workspace. Default: .")},
                  {"timeout_seconds", number("Timeout in seconds. Default: " +
                                                 std::to_string(run_command_call{}.timeout_seconds),
                                             most_command_seconds)}})};
}

definition remember() {
  return {std::string(remember_name),
          "Adds one entry to your memory, which lasts from run to run. Keep it short: an entry too "
          "long for its section is shortened, with a pointer to its whole text. The oldest entries "
          "of a "
          "full section go to the archive, where recall finds them.",
          object({"section", "text"},
                 {{"section", text("Its section, e.g. Important Facts, Important Decisions, My "
                                   "Thoughts, or Learned Patterns — SUBJECT")},
                  {"text", text("What to remember, in your own words")}})};
}

definition recall() {
  return {std::string(recall_name),
          "Searches your memory for a question: entries of memory, archive, research and notes, "
          "best first. Author names and dates (in May, 12 April 2026) in the question count.",
          object({"query"},
                 {{"query", text("The question, in words that the answer may contain")},
                  {"budget_tokens", number("Maximum tokens of all entries together. Default: " +
                                               std::to_string(recall_call{}.budget_tokens),
                                           most_recall_tokens)}})};
}

definition read_skill() {
  return {std::string(read_skill_name),
          "Returns the whole text of a skill: an approved way of doing something. The prompt names "
          "the skills. When you follow one, say so in your answer on a line of its own: [Skill] "
          "NAME.",
          object({"name"}, {{"name", text("The name, as in the prompt")}})};
}

} // namespace

const std::vector<definition>& built_in() {
  static const std::vector<definition> all{read_file(),   write_file(), list_dir(), search_text(),
                                           run_command(), remember(),   recall(),   read_skill()};
  return all;
}

const definition* find_built_in(std::string_view name) {
  const auto found = std::ranges::find(built_in(), name, &definition::name);
  return found == built_in().end() ? nullptr : &*found;
}

std::vector<definition> offered(const std::vector<std::string>& patterns) {
  std::vector<definition> some;
  std::ranges::copy_if(built_in(), std::back_inserter(some),
                       [&](const auto& d) { return is_listed(d.name, patterns); });
  return some;
}

std::string to_tools_json(const std::vector<definition>& definitions) {
  if (definitions.empty())
    return {};
  std::string json = "[";
  for (const auto& d : definitions) {
    if (json.size() > 1)
      json += ',';
    const auto as_text = [](const std::string& s) {
      return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    json += R"({"type":"function","function":{"name":)" + as_text(d.name) + R"(,"description":)" +
            as_text(d.description) + R"(,"parameters":)" + d.parameters_json + "}}";
  }
  return json + "]";
}

} // namespace boyd::tools
