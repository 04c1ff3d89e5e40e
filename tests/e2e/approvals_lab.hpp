#pragma once

#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

/// What tests of actions that a person decides about share.
namespace boyd::test::approvals_lab {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* effect = R"({"command":"echo done >> effects"})";

/// A node whose agent has to ask before it runs a command; `terms` of the approval.
inline std::string yaml_of(const model_endpoint& endpoint, const std::string& terms = "{}",
                           const std::string& top = {}, const std::string& agents = {}) {
  return "version: 1\n" + top +
         "providers:\n"
         "  - provider_id: local\n"
         "    base_url: " +
         endpoint.base_url() +
         "\n"
         "    model: test-model\n"
         "    max_retries: 0\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    agents:\n"
         "      - agent_id: writer\n"
         "        prompt: Do it.\n"
         "        timeout: 60s\n"
         "        executor: {type: chat, provider: local}\n"
         "        tools: [run_command, write_file]\n"
         "        policy:\n"
         "          rules:\n"
         "            - {tool: run_command, decision: ask, reason: programs change things}\n"
         "            - {tool: write_file, decision: ask}\n"
         "          approval: " +
         terms + "\n" + agents;
}

inline model_answer wants(const std::string& tool, const std::string& arguments) {
  return chat_stream()
      .role()
      .tool_call(0, "call", tool, arguments)
      .finish("tool_calls")
      .usage()
      .done();
}

/// A running node, and a cycle under way in it.
struct busy_node {
  const home_of_boyd& home;
  program node;
  std::unique_ptr<program> cycle;

  explicit busy_node(const home_of_boyd& h) : home(h), node(h.node()) {
    REQUIRE(node.wait_for_stderr("ready: node "));
    begin();
  }
  void begin() {
    cycle = std::make_unique<program>(
        std::vector<std::string>{boyd_binary(), "--home", home.path(), "cycle"});
  }
  /// The one request that waits.
  json pending() {
    json found;
    REQUIRE(wait_until([&] {
      const auto items = home.run({"approvals", "ls", "--json"}).json()["items"];
      if (!items.is_array() || items.size() != 1 || items[0]["state"] != "pending")
        return false;
      found = items[0];
      return true;
    }));
    return found;
  }
  std::string pending_id() { return pending()["approval_id"]; }
  finished end_of_cycle() {
    auto ended = cycle->finish();
    INFO(ended.err);
    return ended;
  }
};

inline json approval(const home_of_boyd& home, const std::string& id) {
  return home.run({"approvals", "show", id, "--json"}).json()["approval"];
}

inline std::vector<std::string> trail(const json& approval) {
  std::vector<std::string> out;
  for (const auto& l : approval["trail"])
    out.push_back(l["what"].get<std::string>() + ":" + l["outcome"].get<std::string>());
  return out;
}

inline std::string effects(const home_of_boyd& home) {
  const auto path = home.file("kernel/default/effects");
  return fs::exists(path) ? read_file(path) : std::string();
}

inline json dispatch_row(const home_of_boyd& home, const std::string& id) {
  return home.run({"dispatches", "show", id, "--json"}).json()["dispatch"];
}

inline std::vector<json> turns(const home_of_boyd& home, const std::string& dispatch,
                               const std::string& event) {
  std::vector<json> lines;
  for (const auto& entry : fs::directory_iterator(home.file("executions/" + dispatch))) {
    if (entry.path().extension() != ".jsonl")
      continue;
    std::istringstream in(read_file(entry.path()));
    for (std::string line; std::getline(in, line);)
      if (auto j = json::parse(line); j["event"] == event)
        lines.push_back(std::move(j));
  }
  return lines;
}

using lines = std::vector<std::string>;

} // namespace boyd::test::approvals_lab
