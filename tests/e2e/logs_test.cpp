#include "chat_home.hpp"
#include "program.hpp"
#include "support/pch.hpp"

#include <csignal>

// `boyd logs`, names for dispatches, and the log's line of each run.

namespace boyd::logs_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

const char* agents = R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: good
        prompt: none
        executor: {type: command, argv: [sh, -c, "echo first line; echo warned >&2; echo last"]}
      - agent_id: bad
        prompt: fail
        executor: {type: command, argv: [sh, -c, "echo broken; exit 7"]}
      - agent_id: slow
        prompt: wait
        executor: {type: command, argv: [sh, -c, "echo begun; echo aside >&2; until [ -e go ]; do sleep 0.05; done; echo ended"]}
)";

std::string id_of_newest(const home_of_boyd& home, const std::string& agent) {
  const auto all = home.run({"dispatches", "ls", "--agent", agent, "--json"}).json();
  return all.at("items").at(0).at("dispatch_id");
}

/// The same with a node and without.
void check_names(const home_of_boyd& home) {
  const auto id = id_of_newest(home, "good");
  const auto short_id = id.substr(id.size() - 12, 8);
  for (const auto& name :
       {id, id.substr(0, 30), short_id, std::string("good"), std::string("default/good")}) {
    INFO(name);
    const auto shown = home.run({"dispatches", "show", name, "--json"});
    CHECK(shown.code == 0);
    CHECK(shown.json().at("dispatch").at("dispatch_id") == id);
    const auto logs = home.run({"logs", name});
    CHECK(logs.out == "first line\nlast\n--- stderr ---\nwarned\n");
    CHECK_THAT(logs.err, Contains("run " + short_id + " of default/good: done, started "));
    CHECK_THAT(logs.err, Contains("done after "));
  }
  const auto last = home.run({"logs", "last"});
  CHECK(last.out == "broken\n");
  CHECK_THAT(last.err, Contains("failed after ") &&
                           Contains(": exit code 7 (no automatic retry)") && !Contains("attempt"));
  CHECK(home.run({"logs"}).out == last.out);
  const auto slip = home.run({"logs", "godo"});
  CHECK(slip.code == 1);
  CHECK_THAT(slip.err,
             Contains("no run or agent has this name: godo") && Contains("did you mean good?"));
  const auto never = home.run({"logs", "slow"});
  CHECK(never.code == 1);
  CHECK_THAT(never.err, Contains("agent slow has not run yet") && Contains("boyd run slow"));
  const auto as_json = home.run({"logs", "good", "--json"}).json();
  CHECK(as_json.at("schema") == "boyd.logs/1");
  CHECK(as_json.at("dispatch").at("output") == "first line\nlast\n--- stderr ---\nwarned\n");
  CHECK(as_json.at("live").is_null());
}

} // namespace

TEST_CASE("logs: output of finished runs, by id, agent and last", "[e2e][logs]") {
  const home_of_boyd home(agents);
  const auto nothing = home.run({"logs"});
  CHECK(nothing.code == 1);
  CHECK_THAT(nothing.err, Contains("no runs yet"));
  REQUIRE(home.run({"run", "good"}).code == 0);
  const auto bad = home.run({"run", "bad"});
  REQUIRE(bad.code == 7);
  CHECK_THAT(bad.err, Contains(": failed: exit code 7") && Contains(" (no automatic retry)\n"));
  // What may be tried, and why it was not.
  CHECK_THAT(home.run({"dispatches", "show", "bad"}).out,
             Contains("\nattempts  1 of at most 3; another would fail in the same way"));
  CHECK_THAT(home.run({"dispatches", "show", "good"}).out, !Contains("\nattempts "));
  CHECK_THAT(
      home.run({"agents", "show", "bad"}).out,
      Contains("at most 3 attempts (only a failure that may pass by itself is tried again)"));
  check_names(home);
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  check_names(home);
  // A name does where an id is wanted.
  CHECK_THAT(home.run({"dispatches", "retry", "bad"}).out, Contains("queued again"));
  REQUIRE(node.wait_for_stderr("failed (deterministic)"));
  node.signal(SIGTERM);
  const auto log = node.finish().err;
  const auto id = id_of_newest(home, "bad");
  CHECK_THAT(log, Contains(" info agent default/bad: dispatch " + id + " failed (deterministic)") &&
                      Contains("exit code 7"));
}

TEST_CASE("last is the run that began last, whatever the command", "[e2e][logs]") {
  const home_of_boyd home(R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: older
        schedule: "0 0 1 1 *"
        prompt: none
        executor: {type: command, argv: [echo, of-older]}
      - agent_id: newer
        schedule: "0 0 1 1 *"
        prompt: none
        executor: {type: command, argv: [echo, of-newer]}
)");
  REQUIRE(home.run({"run", "older"}).code == 0);
  REQUIRE(home.run({"run", "newer"}).code == 0);
  const auto check_last = [&](const std::string& id) {
    CHECK(home.run({"logs", "last", "--json"}).json()["dispatch"]["dispatch_id"] == id);
    CHECK(home.run({"dispatches", "show", "last", "--json"}).json()["dispatch"]["dispatch_id"] ==
          id);
    for (const auto* verb : {"explain", "replay"})
      CHECK(home.run({verb, "last", "--json"}).json()["dispatch_id"] == id);
    for (const auto* question : {"trace", "why"})
      CHECK(home.run({"kg", question, "last", "--json"}).json()["execution"] == "exec_" + id);
  };
  check_last(id_of_newest(home, "newer"));
  // What waits has not begun; then it begins anew, after the newer one.
  const auto older = id_of_newest(home, "older");
  REQUIRE(home.run({"dispatches", "retry", "older"}).code == 0);
  check_last(id_of_newest(home, "newer"));
  REQUIRE(home.run({"cycle"}).code == 0);
  check_last(older);
  // Too little of a short id is no name; whose it may be is told.
  const auto short_id = older.substr(older.size() - 12, 8);
  for (const auto& verb : std::vector<std::vector<std::string>>{{"logs"}, {"explain"}}) {
    auto args = verb;
    args.push_back(short_id.substr(0, 4));
    const auto r = home.run(args);
    CHECK(r.code == 1);
    CHECK_THAT(r.err, Contains("a short id needs 8 characters: " + short_id.substr(0, 4)) &&
                          Contains(short_id + " of default/older"));
  }
}

TEST_CASE("logs: a run under way is shown, followed, and told of in the log", "[e2e][logs]") {
  const home_of_boyd home(agents);
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  program slow({boyd_binary(), "--home", home.path(), "run", "slow"});
  REQUIRE(slow.wait_for_stdout("begun"));
  const auto now = home.run({"logs", "slow"});
  CHECK(now.code == 0);
  CHECK(now.out == "begun\n");
  CHECK_THAT(now.err,
             Contains("aside") && Contains("still running; to follow the output: boyd logs "));
  CHECK_THAT(now.err, Contains("of default/slow: running for "));
  program followed({boyd_binary(), "--home", home.path(), "logs", "slow", "-f"});
  REQUIRE(followed.wait_for_stdout("begun\n"));
  write_file(home.file("kernel/default/go"), "");
  const auto end = followed.finish();
  CHECK(end.code == 0);
  CHECK(end.out == "begun\nended\n");
  CHECK_THAT(end.err, Contains("aside") && Contains("done after "));
  CHECK(slow.finish().code == 0);
  const auto id = id_of_newest(home, "slow");
  REQUIRE(node.wait_for_stderr("agent default/slow: dispatch " + id + " done after "));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("logs: a conversation, of a run under way and afterwards", "[e2e][logs]") {
  model_endpoint endpoint;
  const auto held = std::make_shared<gate>();
  endpoint
      .then(chat_stream()
                .role()
                .tool_call(0, "call_a", "read_file", R"({"path":"notes.txt"})", 4)
                .tool_call(1, "call_b", "run_command", R"({"command":"touch pwned"})", 1)
                .finish("tool_calls")
                .usage()
                .done())
      .then(chat_stream()
                .role()
                .text("Plant them ")
                .wait(held)
                .text("in May.")
                .finish("stop")
                .usage()
                .done());
  const home_of_boyd home(
      chat_homes::yaml_of(endpoint, "        tools: [read_file, run_command]\n"));
  write_file(home.file("kernel/default/notes.txt"), "plant in May\n");
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  program run({boyd_binary(), "--home", home.path(), "run", "writer"});
  REQUIRE(endpoint.wait_for_requests(2));
  const auto nothing = home.run({"logs", "writer"});
  CHECK(nothing.out.empty());
  CHECK_THAT(nothing.err, Contains("--turns"));
  const auto now = home.run({"logs", "writer", "--turns"});
  INFO(now.err);
  CHECK_THAT(now.out, Contains("Say something about 20") &&
                          Contains("-> read_file {\"path\":\"notes.txt\"}") &&
                          Contains("<- read_file\n    ") && Contains("plant in May") &&
                          Contains("run_command: denied: "));
  program followed({boyd_binary(), "--home", home.path(), "logs", "writer", "--turns", "-f"});
  REQUIRE(followed.wait_for_stdout("run_command: denied"));
  held->open();
  CHECK(run.finish().code == 0);
  const auto end = followed.finish();
  CHECK(end.code == 0);
  CHECK_THAT(end.out, Contains("turn 2") && Contains("    Plant them in May.\n"));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
  // Without a node, too.
  CHECK(home.run({"logs", "--turns"}).out == end.out);
  CHECK(home.run({"logs"}).out == "Plant them in May.\n");
  const auto shown = home.run({"dispatches", "show", "last"});
  CHECK_THAT(shown.out,
             Contains("took      ") && Contains("used      2 turns, 2 tool calls, 1 denied"));
}

} // namespace boyd::logs_test
