#include "boyd/exec/requirements.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/exit_class.hpp"
#include "json_text.hpp"
#include "schema_check.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace boyd::exec {

namespace {

check_result passed() {
  return {true, {}};
}

check_result failed(std::string text) {
  return {false, std::move(text)};
}

constexpr std::array<std::string_view, 7> asking_phrases = {
    "let me know", "would you like", "shall i",        "should i",
    "do you want", "please confirm", "please provide",
};

/// Quotes and Markdown that may follow a question mark.
constexpr std::string_view closing = "\"'`*_)]} \t";

std::string lower(std::string_view text) {
  std::string found(text);
  for (char& c : found)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return found;
}

} // namespace

check_result check_exit_zero(const process_exit& e) {
  if (e.started && e.signal == 0 && e.exit_code == 0)
    return passed();
  return failed("exit_zero: " + describe_exit(e));
}

check_result check_artifact(const std::string& path, const result<file_info>& found,
                            utc_time attempt_started) {
  const std::string name = "artifact " + path + ": ";
  if (!found)
    return failed(name + found.error().what);
  if (found->kind == file_kind::missing)
    return failed(name + "does not exist");
  if (found->kind != file_kind::regular)
    return failed(name + "is not a regular file");
  if (found->size == 0)
    return failed(name + "is empty");
  if (found->modified + artifact_clock_slack < attempt_started)
    return failed(name + "was not written by this attempt (last modified " +
                  format_rfc3339(found->modified) + ")");
  return passed();
}

check_result check_no_question(std::string_view last_line) {
  std::string_view text = trim(last_line);
  while (!text.empty() && closing.find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  constexpr std::array<std::string_view, 3> marks = {"?", "\uFF1F", "\u061F"};
  const bool asks = std::any_of(marks.begin(), marks.end(),
                                [&](std::string_view mark) { return text.ends_with(mark); });
  const std::string low = lower(text);
  const bool offers =
      std::any_of(asking_phrases.begin(), asking_phrases.end(),
                  [&](std::string_view phrase) { return low.find(phrase) != std::string::npos; });
  if (!asks && !offers)
    return passed();
  return failed("no_question: the output ends by asking: " +
                sanitize_utf8(cut_characters(trim(last_line), limits::summary_characters)));
}

check_result check_command(const std::vector<std::string>& argv, const process_exit& e,
                           std::string_view output_tail) {
  if (e.started && e.signal == 0 && e.exit_code == 0)
    return passed();
  std::string text =
      "command " + (argv.empty() ? std::string("(none)") : argv.front()) + ": " + describe_exit(e);
  std::string_view last;
  for (const auto line : split(output_tail, '\n'))
    if (!trim(line).empty())
      last = trim(line);
  if (!last.empty())
    text += ": " + std::string(cut_characters(last, limits::summary_characters));
  return failed(std::move(text));
}

check_result check_schema(const std::string& path, const result<std::string>& schema_text,
                          std::string_view output, std::string_view last_line) {
  const std::string name = "schema " + path + ": ";
  if (!schema_text)
    return failed(name + schema_text.error().what);
  const auto schema = parse_json(*schema_text);
  if (!schema)
    return failed(name + "the schema is " + schema.error().what);
  auto value = parse_json(output);
  if (!value)
    value = parse_json(last_line);
  if (!value)
    return failed(name + "the output is " + value.error().what);
  const std::string finding = schema_finding(*schema, *value);
  return finding.empty() ? passed() : failed(name + finding);
}

} // namespace boyd::exec
