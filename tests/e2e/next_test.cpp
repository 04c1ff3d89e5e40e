#include "program.hpp"
#include "support/pch.hpp"

#include <csignal>
#include <ctime>
#include <sstream>

// `boyd next`, `boyd agents show`, `boyd reload`, and times in the user's zone.

namespace boyd::next_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

const char* agents = R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: yearly
        prompt: none
        timeout: 90s
        executor: {type: command, argv: [echo, said]}
      - agent_id: rare
        prompt: none
        schedule: "0 0 2 1 *"
        executor: {type: command, argv: ["true"]}
      - agent_id: off
        prompt: none
        enabled: false
        executor: {type: command, argv: ["true"]}
)";

finished run_in(const home_of_boyd& home, const char* zone, std::vector<std::string> args,
                const char* columns = "") {
  args.insert(args.begin(), {"--home", home.path()});
  return boyd_run(args, {{"TZ", zone}, {"COLUMNS", columns}});
}

void check_next(const home_of_boyd& home) {
  const auto body = home.run({"next", "-n", "3", "--json"}).json();
  CHECK(body.at("schema") == "boyd.next/1");
  REQUIRE(body.at("items").size() == 3);
  CHECK_THAT(body.at("items")[0].at("at").get<std::string>(), Contains("-01-01T00:00:00.000Z"));
  CHECK(body.at("items")[0].at("agents")[0] == "yearly");
  // Its slot of the second of January is looked at by the cycle of a year later.
  CHECK(body.at("items")[1].at("agents").size() == 2);
  const auto berlin = run_in(home, "Europe/Berlin", {"next", "rare", "-n", "1"});
  INFO(berlin.err);
  CHECK_THAT(berlin.out, Contains("-01-01 01:00:00 CET") && Contains("rare") &&
                             Contains("default/rare: due ") &&
                             Contains("-01-02 01:00:00 CET, runs in the cycle of "));
  CHECK(body.at("items")[1].at("due").contains("rare"));
  const auto plan = run_in(home, "Europe/Berlin", {"plan", "rare"});
  INFO(plan.err);
  CHECK_THAT(plan.out, Contains("rare: due at ") &&
                           Contains("-01-02 01:00:00 CET, runs in the cycle of ") &&
                           Contains("below \"agent_id: rare\" in " + home.file("boyd.yaml")) &&
                           Contains("boyd context add @README.md"));
  CHECK_THAT(run_in(home, "Europe/Berlin", {"next", "--utc"}).out, Contains("-01-01 00:00:00Z"));
  CHECK_THAT(home.run({"next"}).out, Contains("default/off: disabled"));
  const auto slip = home.run({"next", "yearyl"});
  CHECK(slip.code == 1);
  CHECK_THAT(slip.err, Contains("no such agent: yearyl") && Contains("did you mean yearly?"));
  CHECK(home.run({"next", "-n", "0"}).code == 2);
}

void check_show(const home_of_boyd& home) {
  const auto shown = run_in(home, "Europe/Berlin", {"agents", "show", "yearly"});
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, Contains("default/yearly") &&
                            Contains("0 0 1 1 * (UTC) (schedule of the kernel)") &&
                            Contains("timeout 1 min 30 s") && Contains("01:00:00 CET") &&
                            Contains("latest runs") && Contains("said"));
  const auto body = home.run({"agents", "show", "yearly", "--json"}).json();
  CHECK(body.at("schema") == "boyd.agent/1");
  CHECK(body.at("runs").at(0).at("status") == "done");
  const auto slip = home.run({"agents", "show", "yearl"});
  CHECK(slip.code == 1);
  CHECK_THAT(slip.err, Contains("did you mean yearly?"));
  // On a screen of 80 columns no row is longer, and the summary has room.
  for (const auto& args : std::vector<std::vector<std::string>>{
           {"agents"}, {"agents", "show", "yearly"}, {"dispatches"}, {"next"}}) {
    const auto screen = run_in(home, "Europe/Berlin", args, "80");
    std::istringstream lines(screen.out);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(line.size() <= 80 + 4); // an ellipsis has three bytes
    }
  }
  CHECK_THAT(run_in(home, "Europe/Berlin", {"dispatches"}, "80").out,
             (Contains("s ago") || Contains("now")) && Contains("said"));
}

} // namespace

TEST_CASE("next and agents show: the same with a node and without", "[e2e][next]") {
  const home_of_boyd home(agents);
  CHECK_THAT(home.run({"agents", "show", "rare"}).out, Contains("boyd run rare"));
  REQUIRE(home.run({"run", "yearly"}).code == 0);
  check_next(home);
  check_show(home);
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  check_next(home);
  check_show(home);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("at: a kernel and an agent run once, and neither again", "[e2e][next]") {
  const auto with = [](const std::string& kernel, const std::string& agent) {
    return "version: 1\nnode: {log_level: info}\nkernels:\n"
           "  - kernel_id: default\n    schedule: {at: " +
           kernel +
           "}\n    tz: Europe/Berlin\n"
           "    agents:\n"
           "      - {agent_id: sole, executor: {type: command, argv: [echo, said]}}\n"
           "      - {agent_id: own, schedule: {at: " +
           agent +
           "}, executor: {type: command, argv: [echo, mine]}}\n"
           "      - {agent_id: later, schedule: {at: 2999-01-01T00:00}, executor: {type: command, "
           "argv: [\"true\"]}}\n";
  };
  const home_of_boyd home(with("2999-01-01T10:30", "2999-01-01T10:30"));
  const auto future = run_in(home, "Europe/Berlin", {"next", "sole"});
  CHECK_THAT(future.out, Contains("2999-01-01 10:30:00 CET") && Contains("sole"));
  // The kernel is seen before its time, which may pass before the node is there: it is late then.
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto second = std::time(nullptr) + 1;
  char soon[32];
  std::strftime(soon, sizeof soon, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&second));
  home.write_configuration(with(soon, soon));
  for (int start = 0; start < 2; ++start) {
    program node(home.node());
    REQUIRE(node.wait_for_stderr("ready"));
    if (start == 0)
      REQUIRE(node.wait_for_stderr("default/own"));
    else
      CHECK(home.run({"cycle"}).code == 0); // own is looked at once more
    node.signal(SIGTERM);
    CHECK(node.finish().code == 0);
  }
  const auto runs = home.run({"dispatches", "ls", "--agent", "own", "--json"}).json();
  REQUIRE(runs.at("items").size() == 1);
  CHECK(runs.at("items")[0].at("status") == "done");
  CHECK(home.run({"dispatches", "ls", "--agent", "later", "--json"}).json().at("items").empty());
  CHECK_THAT(home.run({"next"}).out, Contains("Nothing is scheduled") &&
                                         Contains("default/sole: no further scheduled runs"));
  const auto why = home.run({"why", "own"});
  CHECK_THAT(why.out, Contains("its own schedule was not due"));
  const auto wrong = with("yesterday", "2999-01-01");
  home.write_configuration(wrong);
  const auto refused = home.run({"config", "validate"});
  CHECK(refused.code == 4);
  CHECK_THAT(refused.err, Contains("boyd.yaml:5:20: kernels[0].schedule: at: \"yesterday\"") &&
                              Contains("kernels[0].agents[1].schedule: at: \"2999-01-01\""));
}

TEST_CASE("next: what is paused is in no row, and how to resume it is told", "[e2e][next]") {
  const home_of_boyd home(agents);
  REQUIRE(home.run({"pause", "--agent", "yearly", "--reason", "its disk is full"}).code == 0);
  const auto body = home.run({"next", "--json"}).json();
  for (const auto& item : body.at("items"))
    CHECK(item.at("agents") != nlohmann::json::array({"yearly"}));
  REQUIRE(body.at("pauses").size() == 1);
  CHECK(body.at("pauses")[0].at("agent_id") == "yearly");
  const auto shown = home.run({"next"}).out;
  CHECK_THAT(shown, Contains("default/yearly is paused since ") &&
                        Contains(" (its disk is full): boyd resume yearly"));
  CHECK_THAT(home.run({"next", "rare"}).out, !Contains("is paused"));
  CHECK_THAT(home.run({"next", "yearly"}).out, Contains("Nothing is scheduled"));
  REQUIRE(home.run({"pause"}).code == 0);
  CHECK(home.run({"next", "--json"}).json().at("items").empty());
  CHECK_THAT(home.run({"next", "rare"}).out, Contains("kernel default is paused since "));
}

TEST_CASE("next: every agent is named on a narrow screen", "[e2e][next]") {
  std::string text = "version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n";
  for (int i = 10; i < 22; ++i)
    text += "      - {agent_id: worker-of-kind-" + std::to_string(i) +
            ", executor: {type: command, argv: [\"true\"]}}\n";
  const home_of_boyd home(text);
  const auto shown = run_in(home, "UTC", {"next", "-n", "1"}, "80").out;
  INFO(shown);
  for (int i = 10; i < 22; ++i)
    CHECK_THAT(shown, Contains("worker-of-kind-" + std::to_string(i)));
  std::istringstream lines(shown);
  for (std::string line; std::getline(lines, line);)
    if (line.find("worker-of-kind-") != line.npos)
      CHECK(line.size() <= 80);
}

TEST_CASE("reload: what changed is told, and a file with errors changes nothing", "[e2e][reload]") {
  const home_of_boyd home(agents);
  const auto nobody = home.run({"reload"});
  CHECK(nobody.code == 1);
  CHECK_THAT(nobody.err, Contains("no node is running, so there is nothing to reload"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  CHECK(home.run({"reload"}).out == "Reloaded; nothing changed.\n");
  CHECK_THAT(home.run({"plan", "rare"}).out, !Contains("has changed"));
  std::string text = agents;
  text.replace(text.find("timeout: 90s"), 12, "timeout: 95s");
  home.write_configuration("node: {chaos: true}\n" + text +
                           "      - agent_id: fresh\n"
                           "        prompt: none\n"
                           "        executor: {type: command, argv: [\"true\"]}\n");
  const auto old = home.run({"plan", "rare"});
  INFO(old.err);
  CHECK_THAT(old.out, Contains("boyd.yaml has changed since the node read it") &&
                          Contains("  agent default/fresh added\n") && Contains("boyd reload"));
  for (const auto& args :
       std::vector<std::vector<std::string>>{{"why", "fresh"},
                                             {"run", "fresh"},
                                             {"plan", "fresh"},
                                             {"next", "fresh"},
                                             {"agents", "show", "fresh"},
                                             {"dispatches", "ls", "--agent", "fresh"},
                                             {"pause", "--agent", "fresh"}}) {
    const auto early = home.run(args);
    INFO(args.front() << early.out << early.err);
    CHECK(early.code == 1);
    CHECK_THAT(early.err, Contains("agent fresh is in the configuration file, but the running node "
                                   "has not read it yet") &&
                              Contains(" reload\n"));
  }
  for (const auto& args :
       std::vector<std::vector<std::string>>{{"why", "nobody"},
                                             {"agents", "show", "nobody"},
                                             {"dispatches", "ls", "--agent", "nobody"}})
    CHECK_THAT(home.run(args).err, Contains("no such agent: nobody"));
  CHECK_THAT(home.run({"agents", "show", "yearyl"}).err, Contains("did you mean yearly?"));
  const auto told = home.run({"reload"});
  INFO(told.err);
  CHECK(told.code == 0);
  CHECK_THAT(told.out, StartsWith("Reloaded:\n") && Contains("  agent default/fresh added\n") &&
                           Contains("  agent default/yearly changed: timeout\n") &&
                           Contains("next start of the node: node.chaos"));
  CHECK(home.run({"run", "fresh"}).code == 0);
  CHECK_THAT(home.run({"plan"}).out, !Contains("has changed"));
  text.replace(text.find("timeout: 95s"), 12, "timeuot: 95s");
  home.write_configuration(text);
  const auto refused = home.run({"reload"});
  CHECK(refused.code == 4);
  CHECK_THAT(refused.err, Contains("boyd.yaml:8:") && Contains("did you mean timeout?"));
  CHECK_THAT(home.run({"plan"}).out, Contains("boyd.yaml has changed, and has errors"));
  CHECK(home.run({"run", "fresh"}).code == 0);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

} // namespace boyd::next_test
