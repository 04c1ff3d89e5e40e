#include "boyd/exec/redact_outcome.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/exec/output_keeper.hpp"

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

} // namespace

run_outcome without_secrets(run_outcome outcome, const std::vector<std::string>& secrets) {
  outcome.summary = config::redact_cut_end(std::move(outcome.summary), secrets);
  outcome.error = config::redact_cut_end(std::move(outcome.error), secrets);
  each_text(outcome.usage,
            [&](std::string& text) { text = config::redact_text(std::move(text), secrets); });
  outcome.output = outcome.output_cut == 0 ? config::redact_text(std::move(outcome.output), secrets)
                                           : redact_parts(std::move(outcome.output), secrets);
  return outcome;
}

} // namespace boyd::exec
