#pragma once

#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

/// What tests with servers of tools share: the tests' own server, nodes that use it, and what
/// became of a run.
namespace boyd::test::mcp_lab {

inline std::string server_script() {
  return std::string(std::getenv("BOYD_SOURCE_DIR")) + "/tests/data/mcp/server.py";
}

/// An entry of mcpServers: the tests' own server with these arguments.
inline std::string local_server(const std::string& name, const std::vector<std::string>& args = {},
                                const std::string& more = {}) {
  nlohmann::json all = nlohmann::json::array({server_script()});
  for (const auto& a : args)
    all.push_back(a);
  return "  " + name + ":\n    command: python3\n    args: " + all.dump() + "\n" + more;
}

/// A node whose one agent may use what `tools` names; `servers` are entries of mcpServers.
inline std::string
yaml_of(const model_endpoint& endpoint, const std::string& servers,
        const std::string& tools = "mcp__local__*",
        const std::string& policy = "          - {tool: \"mcp__*__*\", decision: "
                                    "allow}\n") {
  return "version: 1\n"
         "providers:\n"
         "  - provider_id: local\n"
         "    base_url: " +
         endpoint.base_url() +
         "\n"
         "    model: test-model\n"
         "mcpServers:\n" +
         servers +
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    agents:\n"
         "      - agent_id: worker\n"
         "        prompt: Use your tools.\n"
         "        executor: {type: chat, provider: local}\n"
         "        retry: {max_attempts: 1}\n"
         "        tools: [\"" +
         tools + "\"]\n        policy:\n          rules:\n" + policy;
}

inline model_answer calls(const std::vector<std::pair<std::string, std::string>>& tools) {
  chat_stream stream;
  stream.role();
  for (std::size_t i = 0; i < tools.size(); ++i)
    stream.tool_call(static_cast<int>(i), "call_" + std::to_string(i), tools[i].first,
                     tools[i].second, 2);
  return stream.finish("tool_calls").usage().done();
}

/// The names of the tools that the model was told of.
inline std::vector<std::string> offered(const model_request& r) {
  std::vector<std::string> names;
  for (const auto& tool : r.json.value("tools", nlohmann::json::array()))
    names.push_back(tool["function"]["name"]);
  return names;
}

/// What the tools answered, as the model was told in its next request.
inline std::vector<std::string> results(const model_request& r) {
  std::vector<std::string> all;
  for (const auto& m : r.json["messages"])
    if (m["role"] == "tool")
      all.push_back(m["content"]);
  return all;
}

inline nlohmann::json last_dispatch(const home_of_boyd& home) {
  const auto all = home.run({"dispatches", "ls", "--json"}).json();
  REQUIRE(all.is_object());
  REQUIRE(!all["items"].empty());
  const std::string id = all["items"][0]["dispatch_id"];
  return home.run({"dispatches", "show", id, "--json"}).json()["dispatch"];
}

inline std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> all;
  std::istringstream in(read_file(path));
  for (std::string line; std::getline(in, line);)
    all.push_back(nlohmann::json::parse(line));
  return all;
}

/// Lines of the turn record with this event.
inline std::vector<nlohmann::json> record(const home_of_boyd& home, const std::string& event) {
  const auto folder =
      home.file("executions/" + last_dispatch(home)["dispatch_id"].get<std::string>());
  std::vector<nlohmann::json> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".jsonl")
      for (auto& line : lines_of(entry.path()))
        if (line.value("event", "") == event)
          all.push_back(std::move(line));
  return all;
}

inline bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

} // namespace boyd::test::mcp_lab
