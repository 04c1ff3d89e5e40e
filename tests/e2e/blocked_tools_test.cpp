#include "mcp_lab.hpp"
#include "support/strict_times.hpp"
#include "support/telling.hpp"
#include "support/wait.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>

namespace boyd::blocked_tools_test {

using namespace boyd::test;
using namespace boyd::test::mcp_lab;
using namespace std::chrono_literals;

namespace {

/// Four agents that talk to a model: two call a tool of a server that never answers, two read a
/// file whose reading does not come back.
std::string four_agents(const model_endpoint& endpoint) {
  std::string text = "version: 1\n"
                     "node: {max_concurrent: 8}\n"
                     "faults: [{point: file_tools.read, action: delay, delay: 10m, count: 2}]\n"
                     "providers:\n"
                     "  - provider_id: local\n"
                     "    base_url: " +
                     endpoint.base_url() +
                     "\n"
                     "    model: test-model\n"
                     "mcpServers:\n" +
                     local_server("local") +
                     "kernels:\n"
                     "  - kernel_id: default\n"
                     "    schedule: \"0 0 1 1 *\"\n"
                     "    agents:\n";
  for (const char* name : {"hang-1", "hang-2", "read-1", "read-2"})
    text += std::string("      - agent_id: ") + name + "\n        prompt: I am " + name +
            ".\n"
            "        executor: {type: chat, provider: local}\n"
            "        tools: [\"mcp__local__*\", read_file]\n"
            "        policy: {rules: [{tool: \"mcp__*__*\", decision: allow}, {tool: read_file, "
            "decision: allow}]}\n";
  return text;
}

} // namespace

TEST_CASE(
    "case 7 blocking-tool-call: the node answers while tools block its own workers and servers",
    "[e2e][supervision]") {
  model_endpoint endpoint([](const model_request& r) {
    return r.body.find("I am hang-") != std::string::npos
               ? calls({{"mcp__local__hang", "{}"}})
               : calls({{"read_file", R"({"path":"STATE.md"})"}});
  });
  const home_of_boyd home(four_agents(endpoint));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  // Both kinds are under way (the second reader waits behind the first), and no model is asked a
  // second time.
  REQUIRE(node.wait_for_stderr("file_tools.read: strikes"));
  REQUIRE(endpoint.wait_for_requests(4));
  std::vector<std::chrono::microseconds> took;
  constexpr int pings = 100;
  for (int i = 0; i < pings; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto status = home.run({"status", "--json"}).json();
    took.push_back(std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - begin));
    REQUIRE(status.is_object());
    CHECK(status.at("kernels").at(0).at("phase") == "act");
  }
  CHECK(endpoint.requests_count() == 4);
  std::ranges::sort(took);
  const auto p99 = took[pings * 99 / 100];
  tell_figure("case 7: p99 of " + std::to_string(pings) +
              " `boyd status` beside 2 blocked readers and 2 hanging calls of a server: " +
              std::to_string(p99.count() / 1000) + " ms, the start of the program included");
  // A tool blocks for ten minutes, so that whoever waited for one would wait on.
  CHECK(p99 <= at_most<std::chrono::milliseconds>(200ms, 5s));
  node.signal(SIGKILL);
  cycle.signal(SIGKILL);
}

} // namespace boyd::blocked_tools_test
