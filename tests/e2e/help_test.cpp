#include "boyd/core/text.hpp"
#include "program.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <set>
#include <sstream>

// The help of every verb fits a terminal of 80 columns.

namespace boyd::help_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::size_t columns = 80;

/// The headings above verbs.
bool begins_verbs(const std::string& line) {
  const std::set<std::string> all{"Commands:",          "First steps:",
                                  "Every day:",         "What happened, and why:",
                                  "Settings and data:", "Memory, knowledge and skills:",
                                  "Advanced:"};
  return all.contains(line);
}

/// The verbs that a help names.
std::vector<std::string> verbs_in(const std::string& help) {
  std::vector<std::string> verbs;
  std::istringstream lines(help);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || begins_verbs(line))
      inside = !line.empty();
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

TEST_CASE("help: the first page has each verb once, in groups", "[e2e][help]") {
  const auto page = boyd_run({"--help"}).out;
  const auto verbs = verbs_in(page);
  for (const auto& verb : verbs) {
    INFO(verb);
    CHECK(std::ranges::count(verbs, verb) == 1);
  }
  CHECK(std::ranges::find(verbs, "stop") < std::ranges::find(verbs, "status"));
  CHECK_THAT(page,
             Contains("  cycle         Run all agents that are due now, and wait for them.\n") &&
                 Contains("  agents        List, show, add or remove agents.\n"));
  CHECK_THAT(page,
             Contains("\nFirst steps:\n") && Contains("\nAdvanced:\n") && !Contains("  complete "));
  constexpr std::size_t all = 40;
  CHECK(verbs.size() >= all);
}

TEST_CASE("help: values and limits are in words", "[e2e][help]") {
  const auto next = boyd_run({"next", "--help"}).out;
  CHECK_THAT(next, Contains("-n,--limit N ") && Contains("Number of times, 1 to 100 (default: 5)"));
  CHECK_THAT(boyd_run({"cost", "--help"}).out, Contains("--by agent|model|day|call"));
  CHECK_THAT(boyd_run({"explain", "--help"}).out, Contains("--kg,--no-kg  "));
  CHECK_THAT(boyd_run({"agents", "add", "--help"}).out,
             Contains("not with --prompt-file") && !Contains("Excludes"));
  CHECK_THAT(boyd_run({"graph", "--help"}).out,
             Contains("At most one of:\n  --mermaid") && !Contains("Option Group"));
  CHECK_THAT(boyd_run({"state", "show", "--help"}).out, Contains("monday, 2026-11-28, -2h"));
}

} // namespace boyd::help_test
