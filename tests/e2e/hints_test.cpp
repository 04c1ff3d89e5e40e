#include "on_terminal.hpp"
#include "program.hpp"
#include "support/pch.hpp"

#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>

// Commands that texts on screen tell the user to type.

namespace boyd::hints_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

TEST_CASE("hints repeat the home of the command line, so that they work as they are",
          "[e2e][hints]") {
  const home_of_boyd home;
  const auto named = "boyd --home " + home.path() + " ";
  const auto with_home = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"--home", home.path()});
    return boyd_run(args);
  };
  // An error of the API, and the command's own words.
  CHECK_THAT(with_home({"reload"}).err, Contains("next: start the node: " + named + "node"));
  CHECK(with_home({"dispatches"}).out == "No runs yet; run a cycle: " + named + "cycle\n");
  CHECK_THAT(with_home({"status"}).out, Contains("start it with: " + named + "node"));
  CHECK_THAT(
      with_home({"--config", home.file("boyd.yaml"), "next"}).out,
      Contains("boyd --home " + home.path() + " --config " + home.file("boyd.yaml") + " node"));
  // Programs are told the same; who set BOYD_HOME needs no option.
  CHECK(with_home({"reload", "--json"}).json()["error"]["next"] ==
        "start the node: " + named + "node");
  CHECK_THAT(home.run({"reload"}).err, Contains("next: start the node: boyd node"));
  // Of a refused cycle, too.
  REQUIRE(home.run({"pause"}).code == 0);
  CHECK_THAT(with_home({"cycle"}).err, Contains("next: " + named + "resume"));
  CHECK_THAT(with_home({"init", "--no-input"}).out, Contains("  " + named + "cycle "));
  CHECK_THAT(home.run({"init", "--no-input"}).out, Contains("\n  boyd cycle "));
}

TEST_CASE("boyd store says that the node has to be stopped, and how", "[e2e][hints]") {
  const home_of_boyd home;
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  const auto refused = home.run({"store"});
  CHECK(refused.code == 5);
  CHECK_THAT(refused.err,
             Contains("boyd: store needs the node stopped: ") && Contains("\n  next: boyd stop\n"));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
  CHECK(home.run({"store"}).code == 0);
}

TEST_CASE("what an error advises fits the terminal", "[e2e][hints][screen]") {
  const home_of_boyd home;
  std::filesystem::remove(home.file("boyd.yaml"));
  on_terminal t({"--home", home.path(), "status"});
  CHECK(t.finish() == 1);
  CHECK_THAT(t.text(), Contains("next: ") && Contains("--config"));
  std::istringstream lines(t.text());
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(width_of(line) <= columns);
  }
}

TEST_CASE("a command that an error advises has a line of its own, and is not broken",
          "[e2e][hints][screen]") {
  const temp_dir place;
  constexpr std::size_t long_name = 50;
  const auto home = place.file(std::string(long_name, 'h'));
  REQUIRE(boyd_run({"--home", home, "init", "--no-input"}).code == 0);
  write_file(home + "/boyd.yaml", "version: 1\nnonsense: true\n");
  on_terminal t({"--home", home, "status"});
  CHECK(t.finish() == 4);
  CHECK_THAT(t.text(), Contains("\r\n    boyd --home " + home + " config validate\r\n"));
}

} // namespace boyd::hints_test
