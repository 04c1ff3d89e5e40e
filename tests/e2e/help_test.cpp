#include "boyd/core/text.hpp"
#include "program.hpp"
#include "support/pch.hpp"

#include <sstream>

// The help of every verb fits a terminal of 80 columns.

namespace boyd::help_test {

using namespace boyd::test;

namespace {

constexpr std::size_t columns = 80;

/// The verbs that a help names.
std::vector<std::string> verbs_in(const std::string& help) {
  std::vector<std::string> verbs;
  std::istringstream lines(help);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Subcommands:")
      inside = true;
    else if (line.empty())
      inside = false;
    else if (inside && line.size() > 2 && line[2] != ' ')
      verbs.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return verbs;
}

std::size_t check_help(const std::vector<std::string>& verb) {
  auto args = verb;
  args.emplace_back("--help");
  const auto shown = boyd_run(args);
  REQUIRE(shown.code == 0);
  std::istringstream lines(shown.out);
  for (std::string line; std::getline(lines, line);) {
    INFO((verb.empty() ? "" : verb.back()) << ": " << line);
    CHECK(count_characters(line) <= columns);
  }
  std::size_t seen = 1;
  for (const auto& child : verbs_in(shown.out)) {
    auto deeper = verb;
    deeper.push_back(child);
    seen += check_help(deeper);
  }
  return seen;
}

} // namespace

TEST_CASE("help: every verb's fits 80 columns", "[e2e][help]") {
  CHECK(check_help({}) > 60);
}

} // namespace boyd::help_test
