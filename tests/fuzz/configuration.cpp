#include "boyd/config/load.hpp"
#include "fuzz/target.hpp"
#include "src/adapters/tz/zones.hpp"

#include <algorithm>

namespace boyd::fuzz {
namespace {

const time_zones& zones() {
  static const auto system = adapters::make_time_zones();
  return *system;
}

std::optional<std::string> environment(const std::string& name) {
  if (name == "HOME")
    return "/home/somebody";
  if (name == "API_KEY")
    return "canary-5f1d";
  return std::nullopt;
}

/// Any text is a configuration or a list of findings that name a place in it; the value of a secret
/// is in none of them.
void run(std::string_view input) {
  const auto loaded = config::load("/etc/boyd.yaml", input, environment, zones());
  require(loaded.value.has_value() == loaded.findings.empty(), "a value or findings, never both");
  const auto lines = 1 + std::count(input.begin(), input.end(), '\n');
  for (const auto& f : loaded.findings) {
    require(!f.problem.empty(), "a finding says what is wrong");
    // A parser may point behind the last line break.
    require(f.line >= 0 && f.line <= lines + 1, "a finding's line is in the file");
    require(input.find("canary-5f1d") != std::string_view::npos ||
                f.text().find("canary-5f1d") == std::string::npos,
            "a finding shows no secret");
  }
}

/// The same for a file of scripted answers.
void run_answers(std::string_view input) {
  const auto answers = config::load_answers("/etc/answers.yaml", input);
  require(answers.has_value() || !answers.error().what.empty(), "an error says what is wrong");
}

const registration registered{"configuration", run};
const registration registered_answers{"answers", run_answers};

} // namespace
} // namespace boyd::fuzz
