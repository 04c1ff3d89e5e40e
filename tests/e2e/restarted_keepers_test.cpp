#include "program.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>

namespace boyd::restarted_keepers_test {

using namespace boyd::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

std::string yaml_of(const std::string& command, const std::string& faults = {}) {
  const std::string text = "version: 1\n"
                           "node: {chaos: true, drain_grace: 1h}\n"
                           "kernels:\n"
                           "  - kernel_id: default\n"
                           "    schedule: \"0 0 1 1 *\"\n"
                           "    agents:\n"
                           "      - agent_id: one\n"
                           "        prompt: work\n"
                           "        timeout: 2h\n"
                           "        executor: {type: command, argv: [\"sh\", \"-c\", \"" +
                           command + "\"]}\n";
  return faults.empty() ? text : text + "faults: [" + faults + "]\n";
}

std::unique_ptr<program> begin_cycle(const home_of_boyd& home) {
  return std::make_unique<program>(
      std::vector<std::string>{boyd_binary(), "--home", home.path(), "cycle"});
}

/// What `boyd doctor` says of the knowledge graph.
std::string graph_of(const home_of_boyd& home) {
  const auto report = home.run({"doctor", "--json"}).json();
  for (const auto& c : report.at("checks"))
    if (c.at("name") == "knowledge graph")
      return c.at("state").get<std::string>() + ": " + c.at("what").get<std::string>();
  return "not checked";
}

/// A first cycle, and one in which `part` is restarted while its worker takes three seconds at
/// `point`.
void restart_while_slow(const home_of_boyd& home, program& node, const std::string& part,
                        const std::string& point) {
  REQUIRE(node.wait_for_stderr("ready: node "));
  CHECK(home.run({"cycle"}).code == 0);
  REQUIRE(home.run({"chaos", "inject", point, "--delay", "3s", "--count", "1"}).code == 0);
  const auto slow = begin_cycle(home);
  REQUIRE(node.wait_for_stderr(point + ": strikes"));
  REQUIRE(home.run({"actors", "restart", part}).code == 0);
  CHECK(node.wait_for_stderr("a new one starts when it ends"));
  slow->finish();
}

} // namespace

TEST_CASE(
    "a graph recorder that is restarted while it writes: the next waits, complete and unchanged",
    "[e2e][supervision]") {
  const home_of_boyd home(yaml_of("echo done"));
  program node(home.node());
  restart_while_slow(home, node, "graph_recorder", "graph_recorder.bytes");
  CHECK(home.run({"cycle"}).code == 0);
  CHECK(home.run({"cycle"}).code == 0);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
  CHECK_THAT(graph_of(home), Contains("ok: ") && Contains("hash chain whole"));
}

TEST_CASE("a store that is restarted while it writes: the next waits, and every dispatch ends",
          "[e2e][supervision]") {
  const home_of_boyd home(yaml_of("echo x >> ran"));
  program node(home.node());
  restart_while_slow(home, node, "store", "store.apply");
  CHECK(wait_until([&] { return home.run({"cycle"}).code == 0; }));
  CHECK(wait_until([&] {
    const auto rows = home.run({"dispatches", "ls", "--json"}).json().at("items");
    return rows.size() >= 2 && std::all_of(rows.begin(), rows.end(), [](const auto& row) {
             return row.at("status") == "done";
           });
  }));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("a store that is gone while the node drains: nothing waits for what cannot be recorded",
          "[e2e][supervision]") {
  const home_of_boyd home(yaml_of("echo begun > begun; while true; do sleep 0.1; done"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto cycle = begin_cycle(home);
  REQUIRE(wait_until([&] { return fs::exists(home.file("kernel/default/begun")); }));
  node.signal(SIGTERM);
  REQUIRE(node.wait_for_stderr("node: stopping"));
  const auto refused = home.run({"actors", "restart", "graph_recorder"});
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err, Contains("the node is stopping"));
  REQUIRE(home.run({"chaos", "inject", "store.apply", "--crash", "--count", "0"}).code == 0);
  // Its grace is an hour.
  const auto ended = node.finish();
  INFO(ended.err);
  CHECK(ended.code == 6);
  CHECK_THAT(ended.err, Contains("the store ended during the shutdown") && Contains("store: "));
  cycle->finish();
  home.write_configuration(yaml_of("echo done"));
  CHECK(home.run({"cycle"}).code == 0);
}

TEST_CASE(
    "another vital part that is gone while the node drains: what runs ends in its time, exit 6",
    "[e2e][supervision]") {
  const home_of_boyd home(yaml_of("echo begun > begun; until [ -e go ]; do sleep 0.1; done"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto cycle = begin_cycle(home);
  REQUIRE(wait_until([&] { return fs::exists(home.file("kernel/default/begun")); }));
  node.signal(SIGTERM);
  REQUIRE(node.wait_for_stderr("node: stopping"));
  REQUIRE(home.run({"chaos", "inject", "gateway.request", "--crash"}).code == 0);
  CHECK(home.run({"status"}).code != 0);
  write_file(home.file("kernel/default/go"), "");
  const auto ended = node.finish();
  INFO(ended.err);
  CHECK(ended.code == 6);
  CHECK_THAT(ended.err, Contains("lost during the shutdown: gateway: "));
  cycle->finish();
  // The run's outcome was recorded, and the next start shows it.
  home.write_configuration(yaml_of("echo done"));
  CHECK(home.run({"dispatches", "ls", "--json"}).json().at("items").at(0).at("status") == "done");
  CHECK(home.run({"cycle"}).code == 0);
}

} // namespace boyd::restarted_keepers_test
