#include "loading.hpp"
#include "support/pch.hpp"

namespace boyd::sandbox_test {

using namespace boyd::config;
using namespace boyd::config::testing;

namespace {

using settings = sandbox_settings;

configuration good(const std::string& text) {
  auto result = load_text(text);
  INFO(texts(result));
  REQUIRE(result.value.has_value());
  return std::move(*result.value);
}

std::string with(const std::string& node, const std::string& agent) {
  return "version: 1\n" + node + "kernels:\n  - agents:\n      - agent_id: a\n" + agent +
         "        executor: {type: command, argv: [date]}\n";
}

} // namespace

TEST_CASE("sandbox: by default for what models drive, and for nothing else", "[config]") {
  const auto c = good(with("", ""));
  const auto& a = c.kernels[0].agents[0].sandbox;
  CHECK(a.mode == settings::mode_t::automatic);
  CHECK_FALSE(a.commands);
  CHECK(a == c.node_settings.sandbox);
}

TEST_CASE("sandbox: an agent's own keys stand over the node's, lists are added", "[config]") {
  const auto c = good(with("node: {sandbox: {mode: bwrap, writable: [cache], memory: 1GiB, "
                           "network: none, processes: 100}}\n",
                           "        sandbox: {writable: [/data/], network: hosts, hosts: "
                           "[\"example.org:443\"], cpu: 90s, open_files: 64}\n"));
  const auto& node = c.node_settings.sandbox;
  CHECK(node.mode == settings::mode_t::bubblewrap);
  CHECK_FALSE(node.commands);
  CHECK(node.writable == std::vector<std::string>{"/etc/boyd/cache"});
  const auto& a = c.kernels[0].agents[0].sandbox;
  CHECK(a.commands); // who asks for one gets one
  CHECK(a.mode == settings::mode_t::bubblewrap);
  CHECK(a.writable == std::vector<std::string>{"/etc/boyd/cache", "/data/"});
  CHECK(a.network == settings::network_t::hosts);
  CHECK(a.hosts == std::vector<std::string>{"example.org:443"});
  CHECK(a.memory == 1u << 30);
  CHECK(a.processes == 100);
  CHECK(a.open_files == 64);
  CHECK(a.cpu == std::chrono::seconds{90});
  CHECK(good(with("node: {sandbox: {scope: all}}\n", "")).kernels[0].agents[0].sandbox.commands);
}

TEST_CASE("sandbox: what cannot be meant is refused", "[config]") {
  for (const std::string wrong : {"mode: maybe", "hosts: [example.org]", "processes: 0",
                                  "writable: [\"~/x\"]", "netwrok: none", "scope: all"}) {
    INFO(wrong);
    CHECK_FALSE(load_text(with("", "        sandbox: {" + wrong + "}\n")).value.has_value());
  }
}

TEST_CASE("sandbox: a program that brings its own is in none of Boyd's", "[config]") {
  const auto mode = [](const std::string& node, const std::string& agent) {
    const auto c = good("version: 1\n" + node + "kernels:\n  - agents:\n      - agent_id: a\n" +
                        agent + "        executor: {type: agent_cli, adapter: mine}\n" +
                        "adapters: [{name: mine, argv: [mine], sandbox: own, events: "
                        "[{when: {/end: true}, final: true}]}]\n");
    return c.kernels[0].agents[0].sandbox.mode;
  };
  CHECK(mode("", "") == settings::mode_t::off);
  CHECK(mode("node: {sandbox: {mode: required}}\n", "") == settings::mode_t::required);
  CHECK(mode("", "        sandbox: {network: none}\n") == settings::mode_t::automatic);
}

TEST_CASE("sandbox: a program that is told to leave its own is in Boyd's", "[config]") {
  const auto mode = [](const std::string& more) {
    return good("version: 1\nkernels:\n  - agents:\n      - agent_id: a\n"
                "        executor: {type: agent_cli, adapter: codex" +
                more + "}\n")
        .kernels[0]
        .agents[0]
        .sandbox.mode;
  };
  CHECK(mode("") == settings::mode_t::off);
  CHECK(mode(", permission: workspace-write") == settings::mode_t::off);
  for (const auto* more :
       {", permission: danger-full-access", ", args: [--yolo]",
        ", args: [--dangerously-bypass-approvals-and-sandbox]",
        ", permission: read-only, args: [-c, 'sandbox_mode=\"danger-full-access\"']"}) {
    INFO(more);
    CHECK(mode(more) == settings::mode_t::automatic);
  }
}

} // namespace boyd::sandbox_test
