#include "person.hpp"

#include "boyd/config/cron.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/text.hpp"
#include "terminal.hpp"

#include <iostream>
#include <unistd.h>

namespace boyd::app {

bool can_ask(const arguments& args) {
  return !args.no_input && !args.json && ::isatty(STDIN_FILENO) == 1 &&
         ::isatty(STDERR_FILENO) == 1;
}

bool ask_person(std::string& answer, const std::string& question, const std::string& standard,
                const answer_check& check) {
  for (;;) {
    std::cerr << folded(question + (standard.empty() ? "" : " [" + standard + "]"),
                        terminal_of_stderr({}))
              << ": " << std::flush;
    std::string line;
    if (!std::getline(std::cin, line)) {
      std::cerr << "\n";
      return false;
    }
    const auto trimmed = trim(line);
    const auto given = trimmed.empty() ? standard : std::string(trimmed);
    const auto problem = check ? check(given) : std::string();
    if (problem.empty()) {
      answer = given;
      return true;
    }
    std::cerr << folded("  " + problem, terminal_of_stderr({})) << "\n";
  }
}

error unanswered() {
  return {errc::cancelled, "stopped; nothing was written", {}, {}};
}

std::string problem_of_name(const std::string& answer) {
  return is_valid_name(answer)
             ? std::string()
             : "A name has up to 64 letters, digits, '.', '_' and '-', and begins "
               "with a letter or digit.";
}

std::string problem_of_schedule(const std::string& answer) {
  if (answer.empty())
    return {};
  const auto fields = config::parse_cron(answer);
  return fields ? std::string()
                : "Not a schedule: " + fields.error().what + "; " + fields.error().next;
}

} // namespace boyd::app
