#include "actors/probe/core.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"

namespace boyd {

std::string problem_of(const probe_outcome& outcome) {
  if (!outcome.exit.started)
    return outcome.exit.start_error.empty() ? "could not be started" : outcome.exit.start_error;
  if (outcome.timed_out)
    return "timed out after " + format_duration(outcome.timeout);
  if (outcome.exit.signal == 0 && outcome.exit.exit_code == 0)
    return {};
  std::string why = outcome.exit.signal != 0
                        ? "ended by signal " + std::to_string(outcome.exit.signal)
                        : "exit code " + std::to_string(outcome.exit.exit_code);
  const auto said = first_line(outcome.diagnostics);
  if (!said.empty())
    why += ": " + std::string(cut_characters(said, limits::summary_characters));
  return why;
}

void probe_output::append(output_stream stream, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  (stream == output_stream::out ? out_ : err_).append(bytes);
}

void probe_output::render(probe_outcome& into) const {
  const std::lock_guard lock(mutex_);
  into.output = out_.render(cap_).text;
  into.total = out_.total();
  into.diagnostics = err_.render(probe_diagnostics_bytes).text;
}

} // namespace boyd
