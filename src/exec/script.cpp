#include "boyd/exec/script.hpp"

#include "boyd/core/text.hpp"
#include "boyd/core/verdict.hpp"
#include "json_text.hpp"

namespace boyd::exec {

namespace {

using answer = config::script_executor::answer;

result<milliseconds> read_delay(const nlohmann::json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= max_script_delay_ms)
    return milliseconds{value.get<std::int64_t>()};
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return text == "0" ? milliseconds{0} : parse_duration(text);
  }
  return fail(errc::parse_error, "delay must be a duration such as \"250ms\"");
}

result<answer> read_answer(const nlohmann::json& value) {
  if (!value.is_object())
    return fail(errc::parse_error, "an answer must be an object");
  answer a;
  for (const auto& [key, item] : value.items()) {
    if (key == "delay") {
      const auto delay = read_delay(item);
      if (!delay)
        return fail(delay.error());
      a.delay = *delay;
      continue;
    }
    std::string* const field = key == "output"    ? &a.output
                               : key == "summary" ? &a.summary
                               : key == "fail"    ? &a.fail
                                                  : nullptr;
    if (field == nullptr)
      return fail(errc::parse_error, "unknown key " + key, {},
                  "use output, summary, delay and fail");
    if (!item.is_string())
      return fail(errc::parse_error, key + " must be text");
    *field = item.get<std::string>();
  }
  if (!a.fail.empty() && !failure_class_from(a.fail))
    return fail(errc::parse_error, "unknown failure class " + a.fail);
  return a;
}

tl::unexpected<error> located(error e, const std::string& where, std::size_t line) {
  e.where = line == 0 ? where : where + ':' + std::to_string(line);
  return fail(std::move(e));
}

result<std::vector<answer>> read_array(std::string_view text, const std::string& where) {
  const auto parsed = parse_json(text);
  if (!parsed)
    return located(parsed.error(), where, 0);
  std::vector<answer> answers;
  for (const auto& value : *parsed) {
    auto a = read_answer(value);
    if (!a) {
      a.error().what = "answer " + std::to_string(answers.size() + 1) + ": " + a.error().what;
      return located(a.error(), where, 0);
    }
    answers.push_back(std::move(*a));
  }
  return answers;
}

} // namespace

result<std::vector<answer>> parse_script(std::string_view text, const std::string& where) {
  if (text.size() > max_script_bytes)
    return fail(errc::limit_exceeded,
                "the script is larger than " + std::to_string(max_script_bytes) + " bytes", where);
  if (trim(text).starts_with('['))
    return read_array(text, where);
  std::vector<answer> answers;
  std::size_t number = 0;
  for (const auto part : split(text, '\n')) {
    ++number;
    const auto line = trim(part);
    if (line.empty() || line.front() == '#')
      continue;
    const auto parsed = parse_json(line);
    if (!parsed)
      return located(parsed.error(), where, number);
    auto a = read_answer(*parsed);
    if (!a)
      return located(a.error(), where, number);
    answers.push_back(std::move(*a));
  }
  return answers;
}

const answer* pick_answer(const std::vector<answer>& answers, std::uint64_t run_index) {
  return answers.empty() ? nullptr : &answers[run_index % answers.size()];
}

} // namespace boyd::exec
