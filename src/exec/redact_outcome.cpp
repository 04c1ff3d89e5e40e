#include "boyd/exec/redact_outcome.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/exec/output_keeper.hpp"
#include "json_text.hpp"

#include <string_view>
#include <utility>

namespace boyd::exec {

namespace {

/// Output that was cut consists of parts: each cut may have left a part of a secret on both sides.
std::string redact_parts(std::string text, const std::vector<std::string>& secrets) {
  std::string out;
  std::string_view rest = text;
  bool first = true;
  for (;;) {
    const auto mark = output_keeper::find_cut(rest);
    const bool last = mark.begin == std::string_view::npos;
    std::string part(rest.substr(0, mark.begin));
    if (!last)
      part = config::redact_cut_end(std::move(part), secrets);
    if (!first)
      part = config::redact_cut_begin(std::move(part), secrets);
    out += config::redact_text(std::move(part), secrets);
    if (last)
      return out;
    out += rest.substr(mark.begin, mark.size);
    rest.remove_prefix(mark.begin + mark.size);
    first = false;
  }
}

void redact_strings(nlohmann::json& value, const std::vector<std::string>& secrets) {
  if (value.is_string())
    value = config::redact_text(value.get<std::string>(), secrets);
  if (!value.is_structured())
    return; // the library would take a scalar for a range of itself
  for (auto& child : value)
    redact_strings(child, secrets);
}

/// Whether a JSON text surely has no strings but its names: nothing to take out, and no need to
/// read it. Nearly always so where no model was called.
bool has_no_strings(std::string_view text) {
  return text.find_first_of("[ \t\r\n") == std::string_view::npos &&
         text.find(":\"") == std::string_view::npos;
}

/// Names in it may come from a program. Each string for itself: what is taken out of the whole text
/// could be part of its form.
std::string redact_json(std::string text, const std::vector<std::string>& secrets) {
  if (has_no_strings(text))
    return text;
  auto value = parse_json(text);
  if (!value)
    return text; // not from a program: those are written by us
  redact_strings(*value, secrets);
  return value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace

run_outcome without_secrets(run_outcome outcome, const std::vector<std::string>& secrets) {
  outcome.summary = config::redact_cut_end(std::move(outcome.summary), secrets);
  outcome.error = config::redact_cut_end(std::move(outcome.error), secrets);
  outcome.usage_json = redact_json(std::move(outcome.usage_json), secrets);
  outcome.output = outcome.output_cut == 0 ? config::redact_text(std::move(outcome.output), secrets)
                                           : redact_parts(std::move(outcome.output), secrets);
  return outcome;
}

} // namespace boyd::exec
