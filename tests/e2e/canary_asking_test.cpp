#include "canary_lab.hpp"
#include "mcp_lab.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <filesystem>

namespace boyd::canary_asking_test {

using namespace boyd::test;
using namespace boyd::test::canary_lab;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char* yaml = R"(version: 1
node: {log_level: debug, sandbox: {readable: ["@VAULT@"]}}
providers:
  - {provider_id: local, base_url: "@BASE@", model: test-model, max_retries: 0}
approvals:
  notify:
    webhook: "@HOOK@/hook?key=${HOOK_KEY}"
    command: [sh, -c, "cat > notice.part && mv notice.part notice.json; cat '@VAULT@/notice'; cat '@VAULT@/notice' >&2"]
mcpServers:
  told:
    command: python3
    args: ["@SERVER@", --era, modern, --words, "@VAULT@/words.json"]
    env: {ITS_TOKEN: "${SERVER_TOKEN}"}
  dies:
    command: sh
    args: [-c, "cat '@VAULT@/dies' >&2; exit 1"]
    optional: true
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: asker
        prompt: Use your tools.
        executor: {type: chat, provider: local}
        retry: {max_attempts: 1}
        tools: ["mcp__told__*", "mcp__dies__*", run_command, write_file]
        policy:
          rules:
            - {tool: "mcp__*__*", decision: allow}
            - {tool: "*", decision: ask, reason: "see ${REASON_TOKEN}"}
)";

/// What waits in the inbox, when it is another request than the last.
std::string next_request(const home_of_boyd& home, const std::string& last) {
  std::string id;
  REQUIRE(wait_until([&] {
    const auto list = home.run({"approvals", "ls", "--json"}).json();
    if (!list.is_object() || list["items"].size() != 1 || list["items"][0]["approval_id"] == last)
      return false;
    id = list["items"][0]["approval_id"];
    return list["items"][0]["state"] == "pending";
  }));
  return id;
}

/// What the server says, by the way it says it.
json words_of_server(canaries& put) {
  const auto described = [&](const char* what) {
    return json{{"type", "object"},
                {"properties", {{"text", {{"type", "string"}, {"description", put.next(what)}}}}}};
  };
  return {{"stderr", put.lines(5, "standard error of a server")},
          {"result", put.lines(6, "result of a server's tool")},
          {"long", std::string(60'000, '.') + "\n" +
                       put.lines(3, "long result of a server's tool") + std::string(60'000, '.')},
          {"fail", put.lines(3, "error of a server's tool")},
          {"refuse", put.next("error of the protocol") + " " + put.next("error of the protocol")},
          {"cut", std::string(480, '.') + " " + put.word("error of the protocol that is cut") +
                      std::string(100, '.')},
          {"structured", put.next("structured result")},
          {"resource", put.lines(3, "resource of a server")},
          {"log", put.lines(2, "log message of a server")},
          {"long log", std::string(480, '.') + " " + put.word("log message that is cut") +
                           std::string(100, '.')},
          {"tools",
           {{"echo",
             {{"description", put.next("description of a tool")},
              {"inputSchema", described("description of an argument")}}}}},
          {"more_tools", json::array({{{"name", put.word("name of a tool")},
                                       {"description", "Named like a key"},
                                       {"inputSchema", {{"type", "object"}}}}})},
          {"question",
           {{"message", put.lines(4, "question of a server")},
            {"requestedSchema",
             {{"type", "object"},
              {"required", {"which"}},
              {"properties",
               {{"which",
                 {{"type", "string"},
                  {"description", put.next("field of a question")},
                  {"oneOf",
                   {{{"const", "a"}, {"title", put.next("choice of a question")}},
                    {{"const", "b"}, {"title", put.word("choice of a question")}}}}}}}}}}}}};
}

/// One turn of the model after the other.
model_answer turn_of(std::size_t turn, const std::string& command, const std::string& content) {
  using mcp_lab::calls;
  switch (turn) {
  case 0:
    return calls({{"mcp__told__word", R"({"name":"result"})"},
                  {"mcp__told__word", R"({"name":"long"})"},
                  {"mcp__told__fail", "{}"},
                  {"mcp__told__refuse", "{}"},
                  {"mcp__told__refuse", R"({"words":"cut"})"},
                  {"mcp__told__structured", "{}"},
                  {"mcp__told__read_resource", R"({"uri":"test://one"})"},
                  {"mcp__told__note", R"({"name":"log"})"},
                  {"mcp__told__note", R"({"name":"long log"})"},
                  {"mcp__told__variable", R"({"name":"ITS_TOKEN"})"}});
  case 1:
    return calls({{"mcp__told__ask", "{}"}});
  case 2:
    return calls({{"run_command", json{{"command", command}}.dump()}});
  case 3:
    return calls({{"write_file", json{{"path", "notes/asked.md"}, {"content", content}}.dump()}});
  default:
    return stream_answer("done");
  }
}

} // namespace

TEST_CASE("case 56 secret-in-answer: fifty secrets through servers of tools and the inbox of "
          "approvals are nowhere but where they came from",
          "[e2e][canary][mcp][approvals]") {
  canaries put(20260730);
  const home_of_boyd home("version: 1\nkernels:\n  - kernel_id: default\n");
  const auto vault = home.file("../vault");
  fs::create_directories(vault);
  const auto words = words_of_server(put);
  write_file(vault + "/words.json", words.dump());
  write_file(vault + "/dies", put.lines(4, "last words of a server"));
  write_file(vault + "/notice", put.lines(2, "output of the command that tells people"));
  const std::map<std::string, std::string> environment{
      {"HOOK_KEY", put.known("address of the webhook")},
      {"SERVER_TOKEN", put.known("environment of a server")},
      {"REASON_TOKEN", put.known("reason of a rule")}};
  const auto command = "cat '" + vault + "/notice'; echo " + put.word("command that is asked for");
  const auto content = put.lines(4, "file that is asked for");
  const auto note = put.word("word of a person");
  REQUIRE(put.all().size() >= 50);

  model_endpoint hook([](const model_request&) { return json_answer({{"ok", true}}); });
  std::size_t turn = 0; // asked on the endpoint's thread alone
  model_endpoint endpoint([&](const model_request&) { return turn_of(turn++, command, content); });
  home.write_configuration(filled(yaml, {{"@BASE@", endpoint.base_url()},
                                         {"@HOOK@", hook.origin()},
                                         {"@SERVER@", mcp_lab::server_script()},
                                         {"@VAULT@", vault}}));
  auto argv = home.node();
  argv.emplace_back("-v");
  program node(argv, environment);
  REQUIRE(node.wait_for_stderr("ready: node "));
  sightings seen;
  const auto run = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"--home", home.path()});
    auto done = boyd_run(args, environment);
    seen.emplace_back("answer of " + args[2] + " " + args.back(), done.out + done.err);
    return done;
  };
  program cycle({boyd_binary(), "--home", home.path(), "cycle", "--json"}, environment);

  // The server asks: an answer that is none, one that holds a secret, a good one.
  const auto question = next_request(home, "");
  const auto asked = run({"approvals", "show", question}).out;
  CHECK(run({"approvals", "approve", question, "--reason", R"({"which":"c"})"}).code != 0);
  CHECK(run({"approvals", "approve", question, "--reason",
             json{{"which", "a"}, {"more", note}}.dump()})
            .code != 0);
  run({"tools", "ls", "--json"});
  run({"tools", "show", "told"});
  run({"tools", "show", "dies", "--json"});
  run({"approvals", "show", question, "--json"});
  CHECK(run({"approvals", "approve", question, "--reason", R"({"which":"a"})"}).code == 0);
  // A command, approved; a file, rejected.
  const auto action = next_request(home, question);
  const auto action_shown = run({"approvals", "show", action}).out;
  const auto told_why = run({"approvals", "reject", action, "--reason", "it has " + note});
  CHECK(told_why.code != 0);
  CHECK_THAT(told_why.err,
             Contains("seems to contain a secret") && Contains("leave the secret out"));
  CHECK(run({"approvals", "approve", action}).code == 0);
  const auto file = next_request(home, action);
  const auto file_shown = run({"approvals", "show", file, "--json"}).out;
  CHECK(run({"approvals", "reject", file, "--reason", "not here"}).code == 0);
  const auto ended_cycle = cycle.finish();
  CHECK(ended_cycle.code == 0);
  seen.emplace_back("answer of cycle", ended_cycle.out + ended_cycle.err);
  REQUIRE(hook.wait_for_requests(3));
  REQUIRE(wait_until([&] {
    return run({"status", "--json"}).json()["approvals"]["notices_sent"] == 6;
  }));
  run({"approvals", "ls", "--all", "--json"});
  const auto listed = run({"dispatches", "ls", "--json"}).json();
  REQUIRE(listed["items"].size() == 1);
  run({"dispatches", "show", listed["items"][0]["dispatch_id"].get<std::string>(), "--json"});
  run({"status"});
  run({"config", "show"});
  node.signal(SIGTERM);
  const auto ended = node.finish();
  CHECK(ended.code == 0);

  seen.emplace_back("the log", ended.out + ended.err);
  look_at_files(home, seen);
  seen.emplace_back("git", all_objects(home));
  std::string notices;
  for (const auto& r : hook.requests())
    notices += r.body;
  seen.emplace_back("what the webhook was told", notices);
  std::string told_model;
  for (const auto& r : endpoint.requests()) {
    told_model += r.json["tools"].dump();
    for (const auto& message : r.json["messages"])
      if (message["role"] != "assistant")
        told_model += message.dump();
  }
  seen.emplace_back("what models were told", told_model);
  for (const auto& c : put.all()) {
    INFO(c.way << ": " << c.secret.name << " is in: " << place_of(c, seen));
    CHECK(place_of(c, seen).empty());
  }
  // Each way was gone.
  CHECK_THAT(asked, Contains("[redacted]") && Contains("which (one of"));
  CHECK_THAT(action_shown, Contains("[redacted]") && Contains("echo"));
  CHECK_THAT(file_shown, Contains("[redacted]"));
  CHECK_THAT(told_model, Contains("it is [redacted]") && Contains("bytes omitted") &&
                             Contains("the server answered with error -32000") &&
                             Contains("mcp__told__echo") && Contains("not here"));
  CHECK_THAT(ended.err, Contains("(stderr): it is [redacted]") && Contains("says: it is ") &&
                            Contains("is ignored: its name looks like a secret") &&
                            Contains("its last output: it is "));
  for (const auto& r : hook.requests())
    CHECK_THAT(r.path, Contains(environment.at("HOOK_KEY")));
  CHECK_THAT(notices, Contains("see [redacted]") && Contains("a tool server asks: told"));
}

} // namespace boyd::canary_asking_test
