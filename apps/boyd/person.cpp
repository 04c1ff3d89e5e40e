#include "person.hpp"

#include "boyd/config/cron.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/text.hpp"

#include <iostream>
#include <unistd.h>

namespace boyd::app {

bool can_ask(const arguments& args) {
  return !args.no_input && !args.json && ::isatty(STDIN_FILENO) == 1 &&
         ::isatty(STDERR_FILENO) == 1;
}

std::string ask_person(const std::string& question, const std::string& standard,
                       const answer_check& check) {
  for (;;) {
    std::cerr << question << (standard.empty() ? "" : " [" + standard + "]") << ": " << std::flush;
    std::string line;
    if (!std::getline(std::cin, line))
      return standard;
    const auto trimmed = trim(line);
    const auto answer = trimmed.empty() ? standard : std::string(trimmed);
    const auto problem = check ? check(answer) : std::string();
    if (problem.empty())
      return answer;
    std::cerr << "  " << problem << "\n";
  }
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
