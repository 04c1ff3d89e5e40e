#include "integration/control/raw_client.hpp"
#include "program.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <filesystem>
#include <map>

namespace boyd::chaos_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

std::string yaml_with(const std::string& node, const std::string& more = {}) {
  return "version: 1\nnode: {" + node +
         "}\nkernels:\n  - kernel_id: default\n    schedule: \"0 0 1 1 *\"\n    agents:\n"
         "      - {agent_id: one, prompt: p, executor: {type: script, answers: [{output: ok}]}}\n" +
         more;
}

} // namespace

TEST_CASE("chaos: the points are listed without a node or a home", "[e2e]") {
  const auto text = boyd_run({"chaos", "ls"});
  CHECK(text.code == 0);
  CHECK_THAT(text.out, Contains("git_committer.commit") && Contains("state_writer.rename") &&
                           Contains("store.claim") && Contains("executor.run"));
  const auto items = boyd_run({"chaos", "ls", "--json"}).json().at("items");
  REQUIRE(items.size() > 40);
  for (const auto& p : items) {
    CHECK_FALSE(p.at("says").get<std::string>().empty());
    CHECK_FALSE(p.at("can").empty());
  }
}

TEST_CASE("chaos: a node refuses it unless its configuration allows it", "[e2e]") {
  home_of_boyd home(yaml_with("max_concurrent: 2"));
  const std::vector<std::string> inject{"chaos", "inject", "planner.plan", "--error"};
  const auto alone = home.run(inject);
  CHECK(alone.code == 1);
  CHECK_THAT(alone.err, Contains("no node is running"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto refused = home.run(inject);
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err,
             Contains("fault injection is not enabled in this node") && Contains("chaos: true"));
  CHECK(home.run({"chaos", "status", "--json"}).json().at("allowed") == false);
  // A reload does not switch it on.
  home.write_configuration(yaml_with("max_concurrent: 2, chaos: true"));
  node.signal(SIGHUP);
  REQUIRE(node.wait_for_stderr("node.chaos has changed"));
  CHECK(home.run(inject).code == 1);
  CHECK(home.run({"cycle"}).code == 0);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("chaos: inject, see, strike, clear", "[e2e]") {
  home_of_boyd home(yaml_with("chaos: true"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  CHECK_THAT(home.run({"chaos"}).out, Contains("No active faults"));
  const auto armed = home.run({"chaos", "inject", "planner.plan", "--error", "--count", "2",
                               "--after", "1", "--seed", "5", "--json"});
  REQUIRE(armed.code == 0);
  const auto row = armed.json().at("faults").at(0);
  CHECK(row.at("point") == "planner.plan");
  CHECK(row.at("seed") == 5);
  CHECK(row.at("armed") == true);
  CHECK(row.at("strikes") == 0);
  CHECK(node.wait_for_stderr("fault point planner.plan: armed by boyd chaos"));
  CHECK_THAT(home.run({"status"}).out, Contains("active fault at planner.plan: error"));
  CHECK(home.run({"cycle"}).code == 0);
  CHECK(home.run({"cycle"}).code == 1);
  CHECK(node.wait_for_stderr("fault point planner.plan: strikes: error"));
  const auto seen = home.run({"chaos", "status", "--json"}).json().at("faults").at(0);
  CHECK(seen.at("strikes") == 1);
  CHECK(seen.at("passes") == 2);
  CHECK_THAT(home.run({"chaos", "clear"}).out, Contains("faults removed: 1"));
  CHECK(home.run({"cycle"}).code == 0);
  CHECK_THAT(home.run({"status"}).out, !Contains("active fault"));

  // What cannot be is refused with what can.
  const auto slip = home.run({"chaos", "inject", "planer.plan", "--error"});
  CHECK_THAT(slip.err, Contains("did you mean planner.plan?"));
  const auto cannot = home.run({"chaos", "inject", "planner.plan", "--corrupt"});
  CHECK_THAT(cannot.err, Contains("supported: crash or error"));
  CHECK(home.run({"chaos", "inject", "planner.plan"}).code == 2);
  for (const auto& [option, value] : std::map<std::string, std::string>{
           {"--count", "-1"}, {"--after", "-3"}, {"--every", "0"}, {"--seed", "x"}}) {
    const auto wrong = home.run({"chaos", "inject", "planner.plan", "--error", option, value});
    CHECK(wrong.code == 2);
    INFO(wrong.err);
    CHECK(wrong.err.find(option + ": '" + value + "' is not a whole number (") !=
          std::string::npos);
  }
  CHECK(home.run({"chaos", "inject", "planner.plan", "--error", "--crash"}).code == 2);

  // A body with a changed bit is refused, and the node goes on.
  REQUIRE(home.run({"chaos", "inject", "gateway.request", "--corrupt", "--count", "0"}).code == 0);
  const auto broken = home.run({"pause", "--reason", "holiday"});
  CHECK(broken.code != 0);
  CHECK_THAT(broken.err, Contains("must be a JSON object"));
  CHECK(home.run({"chaos", "clear"}).code == 0);
  CHECK(home.run({"cycle"}).code == 0);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("chaos: a number that a fault cannot hold is refused, not cut", "[e2e]") {
  home_of_boyd home(yaml_with("chaos: true"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto inject = [&](const std::string& member) {
    const auto body = R"({"point":"planner.plan","action":"error",)" + member + "}";
    raw_client client(home.file("run/control.sock"));
    client.send(
        "POST /api/v1/chaos HTTP/1.1\r\nHost: boyd\r\nConnection: close\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.read_all();
  };
  for (const char* member : {R"("count":4294967297)", R"("after":9223372036854775808)",
                             R"("seed":-1)", R"("every":1.5)"}) {
    INFO(member);
    const auto answer = inject(member);
    CHECK_THAT(answer, Contains("HTTP/1.1 400") && Contains("a whole number in its range"));
  }
  CHECK_THAT(inject(R"("seed":18446744073709551615)"), Contains("HTTP/1.1 200"));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("chaos: BOYD_FAULTS arms at the start, or stops it with the nearest name", "[e2e]") {
  home_of_boyd home(yaml_with("max_concurrent: 2"));
  const auto bad = boyd_run({"--home", home.path(), "node"}, {{"BOYD_FAULTS", "store.aply=error"}});
  CHECK(bad.code == 4);
  CHECK_THAT(bad.err,
             Contains("no such fault point: store.aply") && Contains("did you mean store.apply?"));
  const auto locked =
      boyd_run({"--home", home.path(), "node"}, {{"BOYD_FAULTS", "home.lock=error"}});
  CHECK(locked.code == 1);
  CHECK_THAT(locked.err, Contains("fault point home.lock: error"));
  const auto cycle =
      boyd_run({"--home", home.path(), "cycle"}, {{"BOYD_FAULTS", "planner.plan=error"}});
  CHECK(cycle.code == 1);
  // Questions are answered whatever the environment says.
  CHECK(boyd_run({"--home", home.path(), "status"}, {{"BOYD_FAULTS", "planner.plan=crash"}}).code ==
        0);
  CHECK(home.run({"cycle"}).code == 0);
}

} // namespace boyd::chaos_test
