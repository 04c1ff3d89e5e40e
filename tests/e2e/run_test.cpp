#include "program.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <csignal>

// `boyd run AGENT [MESSAGE]`, with and without a node.

namespace boyd::run_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

const char* agents = R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: echo
        prompt: "Say:"
        schedule: "0 0 1 1 *"
        wake: {inputs: [boyd.yaml]}
        executor: {type: command, argv: [sh, -c, "cat; echo; echo to-stderr >&2; echo last"]}
      - agent_id: bad
        prompt: fail
        executor: {type: command, argv: [sh, -c, "echo broken; exit 7"]}
        retry: {max_attempts: 1}
      - agent_id: slow
        prompt: wait
        executor: {type: command, argv: [sh, -c, "echo begun; until [ -e go ]; do sleep 0.05; done; echo ended"]}
      - agent_id: off
        prompt: none
        enabled: false
        executor: {type: command, argv: ["true"]}
)";

void check_runs(const home_of_boyd& home) {
  const auto r = home.run({"run", "echo", "only", "the last hour"});
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(r.out == "Say:\n\nonly the last hour\nlast\n");
  CHECK_THAT(r.err, Contains("to-stderr"));
  const auto failed = home.run({"run", "bad"});
  CHECK(failed.code == 7);
  CHECK(failed.out == "broken\n");
  const auto told = home.run({"--json", "run", "bad"});
  CHECK(told.code == 7);
  CHECK(told.json().at("schema") == "boyd.run/1");
  CHECK(told.json().at("dispatch").at("agent_id") == "bad");
  const auto off = home.run({"run", "off"});
  CHECK(off.code == 1);
  CHECK_THAT(off.err, Contains("did not run: disabled"));
  const auto nobody = home.run({"run", "nobody"});
  CHECK(nobody.code == 1);
  CHECK_THAT(nobody.err, Contains("no such agent: nobody"));
  CHECK(home.run({"run"}).code == 2);
  CHECK(home.run({"pause", "--agent", "echo", "--reason", "try"}).code == 0);
  const auto paused = home.run({"run", "echo"});
  CHECK(paused.code == 5);
  CHECK(paused.out.empty());
  CHECK_THAT(paused.err, StartsWith("boyd: echo did not run: it is paused (try)\n  next: ") &&
                             Contains("resume echo"));
  CHECK(home.run({"resume", "--agent", "echo"}).code == 0);
}

} // namespace

TEST_CASE("boyd run: without a node", "[e2e][run]") {
  const home_of_boyd home(agents);
  check_runs(home);
  // Each was a cycle of one.
  const auto cycles = home.run({"state", "log", "--json"}).json();
  CHECK_FALSE(cycles.at("items").empty());
  const auto again = home.run({"dispatches", "retry", "bad"});
  CHECK_THAT(again.out, Contains("queued again (was failed)"));
  CHECK_THAT(again.err, Contains("no node is running"));
  CHECK_THAT(home.run({"why", "bad"}).out, Contains("It is waiting to run."));
  // Whoever runs another agent is told of it.
  const auto both = home.run({"run", "echo"});
  CHECK(both.code == 0);
  CHECK_THAT(both.err, Contains("also ran 1 waiting run: ") && Contains(" of default/bad: failed"));
  CHECK(home.run({"dispatches", "retry", "bad"}).code == 0);
  const auto told = home.run({"--json", "run", "echo"}).json();
  REQUIRE(told.at("also_ran").size() == 1);
  CHECK(told.at("also_ran").at(0).at("agent_id") == "bad");
  CHECK_FALSE(home.run({"--json", "run", "echo"}).json().contains("also_ran"));
}

TEST_CASE("boyd run: with a node, and what it writes is shown as it is written", "[e2e][run]") {
  const home_of_boyd home(agents);
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  check_runs(home);
  program slow({boyd_binary(), "--home", home.path(), "run", "slow"});
  REQUIRE(slow.wait_for_stdout("begun"));
  // Another one does not wait for it.
  CHECK(home.run({"run", "bad"}).code == 7);
  // It is not run twice.
  const auto twice = home.run({"run", "slow"});
  CHECK(twice.code == 5);
  CHECK_THAT(twice.err, StartsWith("boyd: slow did not run: it is already running (run ") &&
                            Contains("logs slow -f, or boyd ") &&
                            Contains("dispatches cancel slow") && !Contains("begin"));
  write_file(home.file("kernel/default/go"), "");
  const auto end = slow.finish();
  CHECK(end.code == 0);
  CHECK(end.out == "begun\nended\n");
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("boyd run: a run that was cancelled makes no failed cycle on the screen", "[e2e][run]") {
  const home_of_boyd home(agents);
  program slow({boyd_binary(), "--home", home.path(), "run", "slow"});
  REQUIRE(slow.wait_for_stdout("begun"));
  CHECK_THAT(home.run({"dispatches", "cancel", "slow"}).out,
             Contains(": stopping (was running)\n"));
  const auto end = slow.finish();
  CHECK_THAT(end.err, Contains(" of default/slow: cancelled"));
  CHECK_THAT(home.run({"status"}).out, Contains("cancelled  0 of 1"));
}

TEST_CASE("boyd run: its node ends first, and the home has the result", "[e2e][run]") {
  const home_of_boyd home(agents);
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  program slow({boyd_binary(), "--home", home.path(), "run", "slow"});
  REQUIRE(slow.wait_for_stdout("begun"));
  // It sees nothing of the end until the node has gone.
  slow.signal(SIGSTOP);
  node.signal(SIGTERM);
  REQUIRE(node.wait_for_stderr("stopping"));
  write_file(home.file("kernel/default/go"), "");
  CHECK(node.finish().code == 0);
  slow.signal(SIGCONT);
  const auto end = slow.finish();
  INFO(end.err);
  CHECK(end.code == 0);
  CHECK_THAT(end.err, Contains(" of default/slow: done (the node has stopped)"));
}

} // namespace boyd::run_test
