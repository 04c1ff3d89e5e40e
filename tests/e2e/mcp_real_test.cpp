#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace boyd::mcp_real_test {

/// Servers of the Model Context Protocol as npm has them, where BOYD_MCP_SERVERS names the
/// directory that scripts/mcp-servers made.

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// The main file of a server; empty when it is not there.
std::string installed(const std::string& package) {
  const char* top = std::getenv("BOYD_MCP_SERVERS");
  if (top == nullptr)
    return {};
  const auto path =
      std::string(top) + "/node_modules/@modelcontextprotocol/" + package + "/dist/index.js";
  return fs::exists(path) ? path : std::string();
}

std::string yaml_of(const model_endpoint& endpoint, const std::string& server) {
  return "version: 1\nproviders:\n  - {provider_id: local, base_url: \"" + endpoint.base_url() +
         "\", model: test-model}\nmcpServers:\n" + server +
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    agents:\n"
         "      - agent_id: worker\n"
         "        prompt: Use your tools.\n"
         "        executor: {type: chat, provider: local}\n"
         "        retry: {max_attempts: 1}\n"
         "        tools: [\"mcp__*__*\"]\n"
         "        policy: {rules: [{tool: \"mcp__*__*\", decision: allow}]}\n";
}

std::vector<std::string> results(const model_request& r) {
  std::vector<std::string> all;
  for (const auto& m : r.json["messages"])
    if (m["role"] == "tool")
      all.push_back(m["content"]);
  return all;
}

} // namespace

TEST_CASE("mcp: the file server of npm reads and writes for a chat, and keeps to its directory",
          "[e2e][mcp][real]") {
  const auto server = installed("server-filesystem");
  if (server.empty()) {
    tell_skipped("the server-filesystem of npm", "BOYD_MCP_SERVERS names no directory with it");
    return;
  }
  temp_dir files;
  write_file(files.file("notes.txt"), "plant in May\n");
  const auto path = [&](const std::string& name) { return json{{"path", name}}.dump(); };
  model_endpoint endpoint;
  endpoint
      .then(chat_stream()
                .role()
                .tool_call(0, "a", "mcp__files__read_text_file", path(files.file("notes.txt")))
                .tool_call(1, "b", "mcp__files__write_file",
                           json{{"path", files.file("new.txt")}, {"content", "tomatoes"}}.dump())
                .tool_call(2, "c", "mcp__files__read_text_file", path("/etc/passwd"))
                .tool_call(3, "d", "mcp__files__list_directory", path(files.path()))
                .finish("tool_calls")
                .done())
      .then(stream_answer("done"));
  const home_of_boyd home(yaml_of(endpoint, "  files:\n    command: node\n    args: [\"" + server +
                                                "\", \"" + files.path() + "\"]\n"));
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  REQUIRE(cycle.code == 0);
  const auto said = results(endpoint.requests().at(1));
  REQUIRE(said.size() == 4);
  CHECK_THAT(said[0], Contains("plant in May"));
  CHECK(read_file(files.file("new.txt")) == "tomatoes");
  CHECK_THAT(said[2], Contains("denied"));
  CHECK_THAT(said[3], Contains("new.txt"));
}

TEST_CASE("mcp: the server of npm with everything", "[e2e][mcp][real]") {
  const auto server = installed("server-everything");
  if (server.empty()) {
    tell_skipped("the server-everything of npm", "BOYD_MCP_SERVERS names no directory with it");
    return;
  }
  model_endpoint endpoint;
  const home_of_boyd home(
      yaml_of(endpoint, "  everything: {command: node, args: [\"" + server + "\", stdio]}\n"));
  const auto shown = home.run({"tools", "show", "everything"});
  INFO(shown.err);
  REQUIRE(shown.code == 0);
  CHECK_THAT(shown.out, Contains("handshake") && Contains("mcp__everything__list_resources"));
  const auto call = [&](const std::string& tool, const std::string& arguments = "{}") {
    return home.run({"tools", "call", "mcp__everything__" + tool, arguments}).out;
  };
  CHECK_THAT(call("echo", R"({"message":"hello"})"), Contains("hello"));
  CHECK_THAT(call("get-sum", R"({"a":20,"b":22})"), Contains("42"));
  CHECK_THAT(call("get-tiny-image"), Contains("image/png") && Contains("not shown"));
  CHECK_THAT(call("get-structured-content", R"({"location":"New York"})"), Contains("temperature"));
  CHECK_THAT(call("get-resource-links", R"({"count":2})"), Contains("resource "));
  CHECK_THAT(call("list_resources"), Contains("://"));
}

} // namespace boyd::mcp_real_test
