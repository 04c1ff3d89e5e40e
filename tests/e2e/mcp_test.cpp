#include "mcp_lab.hpp"
#include "support/wait.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>

namespace boyd::mcp_test {

using namespace boyd::test;
using namespace boyd::test::mcp_lab;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE("mcp: a chat uses tools of a server on stdio, in both eras", "[e2e][mcp]") {
  const std::string era = GENERATE("modern", "legacy");
  const std::string spoken = GENERATE("", "--ignore-unknown");
  if (era == "modern" && !spoken.empty())
    return;
  model_endpoint endpoint;
  endpoint
      .then(calls({{"mcp__local__echo", R"({"text":"hello"})"},
                   {"mcp__local__add", R"({"a":2,"b":40})"},
                   {"mcp__local__read_resource", R"({"uri":"test://one"})"}}))
      .then(stream_answer("done"));
  std::vector<std::string> args{"--era", era};
  if (!spoken.empty())
    args.push_back(spoken);
  const home_of_boyd home(yaml_of(endpoint, local_server("local", args)));
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  REQUIRE(cycle.code == 0);
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 2);
  const auto names = offered(asked[0]);
  CHECK(has(names, "mcp__local__echo"));
  CHECK(has(names, "mcp__local__list_resources"));
  // Pages were joined, and an odd name is one that providers take.
  CHECK(std::ranges::any_of(
      names, [](const auto& n) { return n.starts_with("mcp__local__a_name_with_spaces"); }));
  const auto said = results(asked[1]);
  REQUIRE(said.size() == 3);
  CHECK(said[0] == "hello");
  CHECK(said[1] == "42");
  CHECK_THAT(said[2], Contains("the first resource"));
  const auto row = last_dispatch(home);
  CHECK(row["status"] == "done");
  const auto actions = record(home, "action");
  REQUIRE(actions.size() == 3);
  CHECK(actions[0]["decision"] == "allow");
  CHECK_THAT(actions[0]["reason"].get<std::string>(), Contains("rule 1"));
}

TEST_CASE("mcp: without a rule nothing of a server may be used, and the server hears nothing",
          "[e2e][mcp]") {
  model_endpoint endpoint;
  endpoint.then(calls({{"mcp__local__echo", R"({"text":"hello"})"}})).then(stream_answer("done"));
  const home_of_boyd home(yaml_of(endpoint, local_server("local", {"--log", "calls.log"}),
                                  "mcp__local__*",
                                  "          - {tool: read_file, decision: allow}\n"));
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 2);
  CHECK_THAT(results(asked[1]).front(), Contains("denied") || Contains("no rule"));
  const auto actions = record(home, "action");
  REQUIRE(actions.size() == 1);
  CHECK(actions[0]["decision"] == "deny");
  for (const auto& m : lines_of(home.file("calls.log")))
    CHECK(m["method"] != "tools/call");
}

TEST_CASE("mcp: errors of the tool, of the protocol and of the server are told to the model",
          "[e2e][mcp]") {
  model_endpoint endpoint;
  endpoint
      .then(calls({{"mcp__local__fail", "{}"},
                   {"mcp__local__refuse", "{}"},
                   {"mcp__local__echo", "[1]"},
                   {"mcp__local__parts", "{}"},
                   {"mcp__local__structured", "{}"},
                   {"mcp__local__nothing", "{}"},
                   {"mcp__local__die", "{}"}}))
      .then(stream_answer("done"));
  const home_of_boyd home(yaml_of(endpoint, local_server("local", {"--garbage"})));
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  REQUIRE(cycle.code == 0);
  const auto said = results(endpoint.requests().at(1));
  REQUIRE(said.size() == 7);
  CHECK(said[0] == "it did not work");
  CHECK_THAT(said[1], Contains("-32000") && Contains("not today"));
  CHECK_THAT(said[2], Contains("not a JSON object"));
  CHECK_THAT(said[3], Contains("first") && Contains("image image/png, 6 bytes, not shown") &&
                          Contains("test://one") && Contains("inside"));
  CHECK_THAT(said[4], Contains("42"));
  CHECK_THAT(said[5], Contains("no tool"));
  CHECK_THAT(said[6], Contains("exit code 3") && Contains("about to die"));
}

TEST_CASE("mcp: a long result goes to a file, and secrets of the configuration to nobody",
          "[e2e][mcp]") {
  model_endpoint endpoint;
  endpoint
      .then(calls({{"mcp__local__big", R"({"bytes":200000})"},
                   {"mcp__local__echo", R"({"text":"the key is swordfish-7781-x"})"},
                   {"mcp__local__environment", "{}"}}))
      .then(stream_answer("done"));
  const home_of_boyd home(yaml_of(
      endpoint, local_server("local", {}, "    env: {API_TOKEN: swordfish-7781-x, PLAIN: yes}\n")));
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto said = results(endpoint.requests().at(1));
  REQUIRE(said.size() == 3);
  CHECK(said[0].size() < 70'000);
  CHECK_THAT(said[0], Contains("@results/") && Contains("end"));
  CHECK_THAT(said[1], Contains("the key is [redacted]"));
  CHECK_THAT(said[2], Contains("API_TOKEN") && Contains("PLAIN") && !Contains("BOYD_DISPATCH_ID"));
}

TEST_CASE("mcp: the call of a server that does not answer ends with its time, the run goes on",
          "[e2e][mcp]") {
  model_endpoint endpoint;
  endpoint
      .then(calls({{"mcp__local__hang", "{}"}, {"mcp__local__echo", R"({"text":"still here"})"}}))
      .then(stream_answer("done"));
  const home_of_boyd home(yaml_of(
      endpoint, local_server("local", {"--log", "calls.log"}, "    call_timeout: 300ms\n")));
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto said = results(endpoint.requests().at(1));
  REQUIRE(said.size() == 2);
  CHECK_THAT(said[0], Contains("did not answer within 300ms"));
  CHECK(said[1] == "still here");
  const auto heard = lines_of(home.file("calls.log"));
  CHECK(std::ranges::any_of(
      heard, [](const auto& m) { return m["method"] == "notifications/cancelled"; }));
}

TEST_CASE("mcp: a server that changes its tools is asked again", "[e2e][mcp]") {
  const std::string era = GENERATE("modern", "legacy");
  model_endpoint endpoint;
  endpoint.then(calls({{"mcp__local__change", "{}"}}))
      .then(calls({{"mcp__local__new_one", "{}"}}))
      .then(stream_answer("done"));
  const home_of_boyd home(yaml_of(endpoint, local_server("local", {"--era", era})));
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 3);
  CHECK(results(asked[1]).back() == "changed");
  CHECK(results(asked[2]).back() == "called new_one");
}

TEST_CASE("mcp: a run without a server that it needs has failed; an optional one is noted",
          "[e2e][mcp]") {
  const bool optional = GENERATE(false, true);
  model_endpoint endpoint;
  endpoint.then(calls({{"mcp__local__echo", R"({"text":"x"})"}})).then(stream_answer("done"));
  const home_of_boyd home(yaml_of(endpoint,
                                  local_server("local") +
                                      "  broken:\n    command: /no/such/program\n" +
                                      (optional ? "    optional: true\n" : ""),
                                  "mcp__*__*"));
  const auto cycle = home.run({"cycle"});
  const auto row = last_dispatch(home);
  if (optional) {
    CHECK(row["status"] == "done");
    CHECK(results(endpoint.requests().at(1)).front() == "x");
  } else {
    CHECK(row["status"] == "failed");
    CHECK_THAT(row["error"].get<std::string>(), Contains("/no/such/program"));
    CHECK(endpoint.requests_count() == 0);
  }
}

TEST_CASE("mcp: {workspace} gives each workspace a process of its own", "[e2e][mcp]") {
  model_endpoint endpoint;
  endpoint.then(calls({{"mcp__local__where", "{}"}})).then(stream_answer("done"));
  const home_of_boyd home(
      yaml_of(endpoint, local_server("local", {}, "    cwd: \"{workspace}\"\n")));
  REQUIRE(home.run({"cycle"}).code == 0);
  CHECK_THAT(results(endpoint.requests().at(1)).front(), Contains("/kernel/default "));
}

namespace {

/// A server over HTTP, started for this scope.
class http_server {
 public:
  explicit http_server(const std::vector<std::string>& args) : program_(argv(directory_, args)) {
    REQUIRE(wait_until([&] { return fs::exists(directory_.file("port")); }));
  }
  std::string url() const {
    return "http://127.0.0.1:" + read_file(directory_.file("port")) + "/mcp";
  }
  std::vector<json> heard() const { return lines_of(directory_.file("calls.log")); }

 private:
  static std::vector<std::string> argv(const temp_dir& d, const std::vector<std::string>& args) {
    std::vector<std::string> all{"/usr/bin/env", "python3", server_script(),    "--http",
                                 d.file("port"), "--log",   d.file("calls.log")};
    all.insert(all.end(), args.begin(), args.end());
    return all;
  }
  temp_dir directory_;
  program program_;
};

} // namespace

TEST_CASE("mcp: streamable HTTP in both eras, as JSON and as events", "[e2e][mcp]") {
  const std::string era = GENERATE("modern", "legacy");
  const bool sse = GENERATE(false, true);
  std::vector<std::string> args{"--era", era, "--key", "Bearer swordfish-9923"};
  if (sse)
    args.push_back("--sse");
  if (era == "legacy" && sse)
    args.push_back("--forget");
  http_server server(args);
  model_endpoint endpoint;
  endpoint.then(calls({{"mcp__local__add", R"({"a":1,"b":2})"}, {"mcp__local__refuse", "{}"}}))
      .then(stream_answer("done"));
  const home_of_boyd home(yaml_of(endpoint,
                                  "  local:\n    type: http\n    url: " + server.url() +
                                      "\n    headers: {Authorization: Bearer swordfish-9923}\n",
                                  "mcp__local__*",
                                  "          - {tool: \"mcp__*__*\", host: 127.0.0.1, decision: "
                                  "allow}\n"));
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  REQUIRE(cycle.code == 0);
  const auto said = results(endpoint.requests().at(1));
  REQUIRE(said.size() == 2);
  CHECK(said[0] == "3");
  CHECK_THAT(said[1], Contains("not today"));
  const auto heard = server.heard();
  for (const auto& m : heard) {
    if (!m.contains("headers") || !m.contains("method"))
      continue;
    if (era == "modern") {
      CHECK(m["headers"]["MCP-Protocol-Version"] == "2026-07-28");
      CHECK(m["headers"]["Mcp-Method"] == m["method"]);
    } else if (m["method"] == "tools/call") {
      CHECK(m["headers"]["MCP-Protocol-Version"] == "2025-11-25");
      CHECK(m["headers"].contains("Mcp-Session-Id"));
    }
  }
  if (era == "legacy" && !sse)
    CHECK(
        std::ranges::any_of(heard, [](const auto& m) { return m.value("http", "") == "DELETE"; }));
}

TEST_CASE("mcp: a person looks at servers and tries their tools", "[e2e][mcp]") {
  model_endpoint endpoint;
  const home_of_boyd home(yaml_of(endpoint, local_server("local", {"--era", "legacy"}) +
                                                "  gone:\n    url: http://127.0.0.1:1/mcp\n"));
  const auto ls = home.run({"tools", "ls"});
  REQUIRE(ls.code == 0);
  CHECK_THAT(ls.out, Contains("local") && Contains("idle") && Contains("gone"));
  const auto show = home.run({"tools", "show", "local"});
  INFO(show.err);
  CHECK(show.code == 0);
  CHECK_THAT(show.out, Contains("handshake 2025-11-25") && Contains("mcp__local__echo"));
  CHECK(home.run({"tools", "show", "gone"}).code != 0);
  const auto called = home.run({"tools", "call", "mcp__local__add", R"({"a":20,"b":22})"});
  INFO(called.err);
  CHECK(called.code == 0);
  CHECK_THAT(called.out, Contains("42"));
  CHECK(home.run({"tools", "call", "mcp__local__fail"}).code != 0);
  CHECK_THAT(home.run({"tools", "call", "mcp__local__none"}).err, Contains("no tool"));
}

TEST_CASE("mcp: a fault between a run and its server is told, or tried again", "[e2e][mcp]") {
  const std::string point = GENERATE("mcp.start", "mcp.call");
  const std::string action = GENERATE("error", "crash");
  model_endpoint endpoint;
  endpoint.then(calls({{"mcp__local__echo", R"({"text":"one"})"}}))
      .then(calls({{"mcp__local__echo", R"({"text":"two"})"}}))
      .then(stream_answer("done"));
  auto yaml = yaml_of(endpoint, local_server("local"));
  yaml.replace(yaml.find("retry: {max_attempts: 1}"),
               std::string("retry: {max_attempts: 1}").size(),
               "retry: {max_attempts: 3, base: 500ms}");
  const home_of_boyd home(yaml + "faults:\n  - {point: " + point + ", action: " + action +
                          ", count: 1}\n");
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  CHECK(cycle.code == 0);
  CHECK(last_dispatch(home)["status"] == "done");
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 3);
  const auto first = results(asked[1]).back();
  if (point == "mcp.start")
    CHECK(first == "one");
  else
    CHECK_THAT(first, Contains("error"));
  CHECK(results(asked[2]).back() == "two");
}

TEST_CASE("case 14 spawner-ends: no server outlives a killed node", "[e2e][mcp]") {
  model_endpoint endpoint;
  endpoint.then(calls({{"mcp__local__hang", "{}"}})).then(stream_answer("done"));
  const home_of_boyd home(yaml_of(endpoint, local_server("local", {"--pid", "server.pid", "--log",
                                                                   "calls.log", "--stubborn"})));
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  REQUIRE(wait_until([&] {
    return fs::exists(home.file("calls.log")) &&
           read_file(home.file("calls.log")).find("tools/call") != std::string::npos;
  }));
  const auto pid = std::stoi(read_file(home.file("server.pid")));
  REQUIRE(::kill(pid, 0) == 0);
  cycle.signal(SIGKILL);
  CHECK(wait_until([&] { return ::kill(pid, 0) != 0; }));
}

} // namespace boyd::mcp_test
