#include "program.hpp"
#include "support/loopback_server.hpp"
#include "support/pch.hpp"

#include <csignal>
#include <string>

namespace boyd::record_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

std::string yaml_of(const std::string& more) {
  return "version: 1\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n" +
         more +
         "    agents:\n"
         "      - {agent_id: worker, prompt: work, executor: {type: command, argv: [\"true\"]}}\n";
}

} // namespace

TEST_CASE("a restart is on record when the node that had it is gone") {
  const home_of_boyd home(yaml_of("") +
                          "faults: [{point: planner.plan, action: crash, count: 1}]\n");
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto ran = home.run({"cycle"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  node.signal(SIGTERM);
  REQUIRE(node.finish().code == 0);
  const auto body = home.run({"actors", "ls", "--json"}).json();
  INFO(body.dump(1));
  REQUIRE(body.at("restarts").size() == 2);
  const auto& with = body.at("restarts").at(0);
  CHECK(with.at("name") == "planner");
  CHECK(with.at("cause") == "restarted together with it: gateway, kernel:default");
  const auto& row = body.at("restarts").at(1);
  CHECK(row.at("name") == "planner");
  CHECK_THAT(row.at("cause").get<std::string>(), Contains("fault point planner.plan"));
  CHECK(home.run({"status", "--json"}).json().at("restarts") == body.at("restarts"));
  CHECK_THAT(home.run({"actors", "ls"}).out, Contains("restarts, newest first"));
}

TEST_CASE("the heartbeat's address is called after each cycle of a node and of a command") {
  const loopback_server monitor("HTTP/1.1 200 OK\r\n\r\n");
  const home_of_boyd home(yaml_of("    heartbeat_url: " + monitor.address() + "/beat/1\n"));
  CHECK(home.run({"cycle"}).code == 0);
  REQUIRE(monitor.requests().size() == 1);
  CHECK_THAT(monitor.requests().front(), Contains("GET /beat/1 HTTP/1.1"));
}

TEST_CASE("a monitor that is away is a warning without the address's path") {
  std::string gone;
  {
    const loopback_server monitor("x");
    gone = monitor.address();
  }
  const home_of_boyd home(yaml_of("    heartbeat_url: " + gone + "/secret\n"));
  const auto ran = home.run({"cycle", "--verbose"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK_THAT(ran.err, Contains("its heartbeat failed"));
  CHECK_THAT(ran.err, !Contains("secret"));
}

} // namespace boyd::record_test
