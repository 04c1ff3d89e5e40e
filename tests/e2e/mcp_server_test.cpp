#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <sstream>

namespace boyd::mcp_server_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

json call_of(int id, const std::string& tool, json arguments = json::object()) {
  return {{"jsonrpc", "2.0"},
          {"id", id},
          {"method", "tools/call"},
          {"params", {{"name", tool}, {"arguments", std::move(arguments)}}}};
}

/// What `boyd mcp` answers to these after a handshake, by their ids.
std::map<int, json> answers_of(const home_of_boyd& home, const std::vector<json>& messages,
                               const std::string& option = {}) {
  std::string input =
      R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
      R"("capabilities":{},"clientInfo":{"name":"t","version":"1"}}})"
      "\n"
      R"({"jsonrpc":"2.0","method":"notifications/initialized"})"
      "\n";
  for (const auto& m : messages)
    input += m.dump() + "\n";
  write_file(home.file("messages"), input);
  program served({"/bin/sh", "-c", "exec \"$0\" --home \"$1\" mcp $2 < \"$3\"", boyd_binary(),
                  home.path(), option, home.file("messages")});
  const auto done = served.finish();
  INFO(done.err);
  REQUIRE(done.code == 0);
  std::map<int, json> out;
  std::istringstream lines(done.out);
  for (std::string line; std::getline(lines, line);) {
    auto answer = json::parse(line, nullptr, false);
    REQUIRE(answer.is_object());
    const auto id = answer.value("id", -1);
    out[id] = std::move(answer);
  }
  return out;
}

std::vector<std::string> names_of(const json& answer) {
  std::vector<std::string> all;
  for (const auto& t : answer["result"]["tools"])
    all.push_back(t["name"]);
  return all;
}

} // namespace

TEST_CASE("boyd mcp: another program sees the running node and asks it for a cycle") {
  const home_of_boyd home;
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  const auto got = answers_of(home, {call_of(1, "status"),
                                     call_of(2, "agents"),
                                     call_of(3, "enqueue"),
                                     call_of(4, "dispatches", {{"limit", 5}}),
                                     call_of(5, "explain"),
                                     call_of(6, "dispatch", {{"id", "no/such"}}),
                                     call_of(7, "approvals"),
                                     {{"jsonrpc", "2.0"}, {"id", 8}, {"method", "tools/list"}}});
  CHECK(got.at(0)["result"]["serverInfo"]["name"] == "boyd");
  for (const int id : {1, 2, 3, 4, 5, 7}) {
    INFO(got.at(id).dump());
    CHECK(got.at(id)["result"]["isError"] == false);
    CHECK(got.at(id)["result"]["structuredContent"].is_object());
  }
  CHECK(got.at(3)["result"]["structuredContent"].dump().find("cycle_id") != std::string::npos);
  CHECK(got.at(6)["result"]["isError"] == true);
  CHECK_THAT(names_of(got.at(8)), !Catch::Matchers::VectorContains(std::string("approve")));
  CHECK_THAT(names_of(got.at(8)), Catch::Matchers::VectorContains(std::string("enqueue")));
  for (const auto& t : got.at(8)["result"]["tools"])
    if (t["name"] == "enqueue")
      CHECK_THAT(t["description"].get<std::string>(), Contains("a single agent is not possible"));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("boyd mcp: without a node it answers from the home; who may approve has asked for it") {
  const home_of_boyd home;
  const auto got =
      answers_of(home, {call_of(1, "status"), call_of(2, "approve", {{"id", "x"}, {"hash", "y"}})});
  CHECK(got.at(1)["result"]["isError"] == false);
  CHECK(got.at(2)["error"]["message"] == "no such tool: approve");
  const auto operators = answers_of(
      home,
      {call_of(1, "approve", {{"id", "x"}, {"hash", "y"}}), call_of(2, "approve", {{"id", "x"}})},
      "--operator");
  CHECK(operators.at(1)["result"]["isError"] == true);
  CHECK(operators.at(2)["error"]["message"] == "the tool approve needs the argument hash");
}

TEST_CASE("case W2: without a node enqueue says that no node runs, and nothing is left behind") {
  const home_of_boyd home;
  const auto got = answers_of(home, {call_of(1, "enqueue")});
  CHECK(got.at(1)["result"]["isError"] == true);
  const std::string said = got.at(1)["result"]["content"][0]["text"];
  CHECK_THAT(said,
             Contains("no node is running") && Contains("boyd node") && Contains("boyd cycle"));
  CHECK(said.find("admitted") == std::string::npos);
  // The next cycle is the first one.
  REQUIRE(home.run({"cycle"}).code == 0);
  CHECK(home.run({"status", "--json"}).json()["kernels"][0]["problem"] == "");
  const auto cycles = home.run({"why", "--json"}).json();
  CHECK(cycles["slot"]["trigger"] == "manual");
}

TEST_CASE("boyd mcp: with --operator a client approves what it has seen, once") {
  model_endpoint endpoint;
  for (int i = 0; i < 2; ++i)
    endpoint.then(chat_stream()
                      .role()
                      .tool_call(0, "call", "run_command", R"({"command":"echo done >> effects"})")
                      .finish("tool_calls")
                      .usage()
                      .done());
  endpoint.then(stream_answer("ok")).then(stream_answer("ok"));
  const auto agent = [](const std::string& id) {
    return "      - agent_id: " + id +
           "\n        prompt: Do it.\n        executor: {type: chat, provider: local}\n"
           "        tools: [run_command]\n"
           "        policy: {rules: [{tool: run_command, decision: ask}]}\n";
  };
  const home_of_boyd home("version: 1\nproviders:\n  - {provider_id: local, base_url: \"" +
                          endpoint.base_url() +
                          "\", model: test-model, max_retries: 0}\n"
                          "kernels:\n  - kernel_id: default\n    schedule: \"0 0 1 1 *\"\n"
                          "    agents:\n" +
                          agent("first") + agent("second"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  json items;
  REQUIRE(wait_until([&] {
    items = home.run({"approvals", "ls", "--json"}).json()["items"];
    return items.size() == 2;
  }));
  // A list that is not all of it says so.
  CHECK_THAT(home.run({"approvals", "ls", "--limit", "1"}).out, Contains("more than these 1"));
  CHECK(home.run({"approvals", "ls", "--limit", "1", "--json"}).json()["more"] == true);
  CHECK_THAT(home.run({"approvals", "ls", "--limit", "2"}).out, !Contains("more than"));
  const auto given = [&](std::size_t i, const std::string& hash) {
    return json{{"id", items[i]["approval_id"]}, {"hash", hash}, {"note", "as agreed"}};
  };
  const std::string hash = items[0]["hash"];
  const auto got = answers_of(
      home,
      {call_of(1, "approve", given(0, std::string(64, '0'))), call_of(2, "approve", given(0, hash)),
       call_of(3, "approve", given(0, hash)), call_of(4, "reject", given(1, items[1]["hash"]))},
      "--operator");
  for (const auto& [id, refused] :
       std::map<int, bool>{{1, true}, {2, false}, {3, true}, {4, false}}) {
    INFO(got.at(id).dump());
    CHECK(got.at(id)["result"]["isError"] == refused);
  }
  CHECK(cycle.finish().code == 0);
  CHECK(read_file(home.file("kernel/default/effects")) == "done\n");
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("boyd mcp: a node's own client speaks with it in the stateless era") {
  const home_of_boyd home;
  const home_of_boyd other("version: 1\n"
                           "mcpServers:\n"
                           "  boyd:\n"
                           "    command: " +
                           boyd_binary() + "\n    args: [--home, " + home.path() +
                           ", mcp]\n"
                           "kernels:\n"
                           "  - kernel_id: default\n"
                           "    schedule: \"0 0 1 1 *\"\n"
                           "    agents:\n"
                           "      - agent_id: worker\n"
                           "        prompt: Nothing.\n"
                           "        executor: {type: script, answers: [{output: done}]}\n");
  program node(other.node());
  REQUIRE(node.wait_for_stderr("ready"));
  const auto shown = other.run({"tools", "show", "boyd", "--json"});
  INFO(shown.out + shown.err);
  REQUIRE(shown.code == 0);
  CHECK_THAT(shown.out, Contains("mcp__boyd__explain") && Contains("stateless"));
  const auto done = other.run({"tools", "call", "mcp__boyd__status", "{}"});
  INFO(done.out + done.err);
  CHECK(done.code == 0);
  CHECK_THAT(done.out, Contains("default"));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

} // namespace boyd::mcp_server_test
