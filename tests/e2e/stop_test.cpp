#include "program.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <filesystem>
#include <string>

// `boyd stop`, and the node in the background that it is for.

namespace boyd::stop_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

std::string one_agent(const std::string& shell) {
  return "version: 1\n"
         "node: {drain_grace: 1h}\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    agents:\n"
         "      - agent_id: worker\n"
         "        prompt: work\n"
         "        executor: {type: command, shell: \"" +
         shell + "\", env_pass: [BOYD_BINARY]}\n";
}

/// Whatever a check says, no node stays behind.
struct stopped_at_end {
  const home_of_boyd& home;
  ~stopped_at_end() { static_cast<void>(home.run({"stop", "--now"})); }
};

} // namespace

TEST_CASE("boyd stop ends the node in order and waits for its end", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  const auto nobody = home.run({"stop"});
  CHECK(nobody.code == 1);
  CHECK_THAT(nobody.err, Contains("no node is running for this home"));

  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto stopped = home.run({"stop", "--json"});
  INFO(stopped.err);
  CHECK_THAT(stopped.out, !Contains("next node"));
  CHECK(stopped.code == 0);
  CHECK(stopped.json()["schema"] == "boyd.stop/1");
  CHECK(stopped.json()["pid"] == node.pid());
  // It has ended already: its home is free.
  CHECK_FALSE(std::filesystem::exists(home.file("run/control.sock")));
  CHECK(home.run({"status", "--json"}).json()["node"]["running"] == false);
  const auto ended = node.finish();
  CHECK(ended.code == 0);
  CHECK_THAT(ended.err, Contains("asks it to stop") && Contains("node: ended"));
  CHECK(home.run({"stop"}).code == 1);
}

TEST_CASE("boyd stop waits for what runs, or cancels it", "[e2e]") {
  const home_of_boyd home(one_agent("echo begun > begun; sleep 600"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  REQUIRE(wait_until([&] { return std::filesystem::exists(home.file("kernel/default/begun")); }));
  CHECK(home.run({"stop", "--timeout", "soon"}).code == 2);
  const auto late = home.run({"stop", "--timeout", "50ms"});
  CHECK(late.code == 1);
  CHECK_THAT(late.err, Contains("the node has not ended within 50ms"));
  program waiting({boyd_binary(), "--home", home.path(), "stop"});
  CHECK(waiting.wait_for_stderr("waiting up to 1h for 1 running attempt (default/worker)"));
  waiting.signal(SIGINT);
  const auto interrupted = waiting.finish();
  CHECK(interrupted.code == 1);
  CHECK_THAT(interrupted.err, Contains("interrupted; the node continues to stop"));
  const auto stopped = home.run({"stop", "--now"});
  INFO(stopped.err);
  CHECK(stopped.code == 0);
  CHECK_THAT(stopped.out, Contains("The node has stopped") &&
                              Contains("1 run waits for the next node: boyd node\n"));
  CHECK(node.finish().code == 0);
  cycle.finish();
  // It was given back.
  CHECK(home.run({"dispatches", "ls", "--json"}).json()["items"][0]["status"] == "pending");
}

TEST_CASE("what Boyd started cannot stop the node", "[e2e]") {
  const home_of_boyd home(
      one_agent("$BOYD_BINARY --home $BOYD_HOME stop > own 2>&1; echo $? >> own"));
  program node(home.node(), {{"BOYD_BINARY", boyd_binary()}});
  REQUIRE(node.wait_for_stderr("ready: node "));
  home.run({"cycle"});
  const auto own = read_file(home.file("kernel/default/own"));
  CHECK_THAT(own, Contains("only a person can stop the node"));
  CHECK(own.ends_with("1\n"));
  CHECK(home.run({"status", "--json"}).json()["node"]["running"] == true);
  node.signal(SIGTERM);
  CHECK_THAT(node.finish().err, Contains("a stop was refused for"));
}

TEST_CASE("a request to stop is a POST with a body that is understood", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto socket = home.file("run/control.sock");
  CHECK_THAT(get(socket, "/api/v1/stop"), Contains(" 405 ") && Contains("Allow: POST"));
  CHECK_THAT(ask_socket(socket, "POST /api/v1/stop?now=true"), Contains(" 400 "));
  CHECK(home.run({"status", "--json"}).json()["node"]["state"] == "running");
  CHECK_THAT(ask_socket(socket, "POST /api/v1/stop"), Contains("\"stopping\":true"));
  CHECK(node.finish().code == 0);
}

TEST_CASE("a node in the background answers when its command returns", "[e2e]") {
  const home_of_boyd home(one_agent("umask"));
  const stopped_at_end end{home};
  const auto started = home.run({"node", "--background", "--json"});
  INFO(started.err);
  REQUIRE(started.code == 0);
  const auto told = started.json();
  CHECK(told["log"] == home.file("run/node.log"));
  const auto status = home.run({"status", "--json"}).json();
  CHECK(status["node"]["running"] == true);
  CHECK(status["node"]["pid"] == told["pid"]);
  CHECK_THAT(read_file(home.file("run/node.log")), Contains("ready: node "));
  CHECK(home.run({"cycle"}).code == 0);

  // A second one says why it does not start; the first one stays.
  const auto second = home.run({"node", "-d"});
  CHECK(second.code == 5);
  CHECK_THAT(second.err, Contains("uses this home already") && Contains("boyd stop"));
  CHECK(home.run({"status", "--json"}).json()["node"]["pid"] == told["pid"]);
  CHECK(home.run({"stop"}).code == 0);
  CHECK_THAT(read_file(home.file("run/node.log")), Contains("node: ended"));
}

TEST_CASE("a node in the background is not started with a bad configuration", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  home.write_configuration("version: 1\nnonsense: true\n");
  const auto refused = home.run({"node", "--background"});
  CHECK(refused.code == 4);
  CHECK_THAT(refused.err, Contains("boyd.yaml:2:1"));
  CHECK_FALSE(std::filesystem::exists(home.file("run/node.log")));
}

} // namespace boyd::stop_test
