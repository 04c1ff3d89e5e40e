#include "boyd/exec/requirements.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/exit_class.hpp"
#include "json_text.hpp"
#include "schema_check.hpp"
#include "words.hpp"

#include <algorithm>

namespace boyd::exec {

namespace {

check_result passed() {
  return {true, {}};
}

check_result failed(std::string text) {
  return {false, std::move(text)};
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
  if (!asks_reader(last_line))
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
