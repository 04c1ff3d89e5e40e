#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace boyd::agent_budget_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string transcript(const std::string& name) {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(top != nullptr);
  return std::string(top) + "/tests/data/agent_cli/" + name + ".jsonl";
}

/// A node whose one agent is a program in the place of claude.
class coder {
 public:
  coder(const std::string& body, const std::string& budget, const std::string& node = {}) {
    const auto script = directory_.file("agent");
    write_file(script, "#!/bin/sh\ncat > /dev/null\necho run >> '" + directory_.file("runs") +
                           "'\n" + body + "\n");
    fs::permissions(script, fs::perms::owner_all);
    home.write_configuration(
        "version: 1\nnode: {" + node + "sandbox: {writable: [" + directory_.path() +
        "], readable: [" + fs::path(transcript("x")).parent_path().string() +
        "]}}\nkernels:\n  - kernel_id: default\n"
        "    schedule: \"0 0 1 1 *\"\n    agents:\n"
        "      - agent_id: coder\n        prompt: write\n"
        "        retry: {max_attempts: 1}\n" +
        budget + "        executor: {type: agent_cli, adapter: claude, program: " + script + "}\n");
  }

  int runs() const {
    const auto text = fs::exists(directory_.file("runs")) ? read_file(directory_.file("runs")) : "";
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }
  json spent() const {
    const auto all = home.run({"cost", "--json"}).json()["items"];
    return all.empty() ? json::object() : all[0];
  }
  json row() const {
    const auto all = home.run({"dispatches", "ls", "--json"}).json()["items"];
    REQUIRE_FALSE(all.empty());
    const std::string id = all[0]["dispatch_id"];
    return home.run({"dispatches", "show", id, "--json"}).json()["dispatch"];
  }

 private:
  temp_dir directory_;

 public:
  home_of_boyd home{"version: 1\nkernels: [{agents: []}]\n"};
};

const std::string cents = "        budget: {run: {cost: 0.009}, day: {cost: 0.01}}\n";

} // namespace

TEST_CASE("agent CLI: a run is reserved before it begins and settled by what it told",
          "[e2e][agent_budget]") {
  const coder c("cat '" + transcript("claude_success") + "'", cents);
  REQUIRE(c.home.run({"cycle"}).code == 0);
  CHECK(c.runs() == 1);
  // What it told stands in the place of the reservation.
  CHECK(c.home.run({"cost", "--by", "model", "--json"}).out.find("claude/claude-") !=
        std::string::npos);
  CHECK(c.spent()["cost"] == "0.001374");
  CHECK(c.spent()["open_calls"] == 0);
  // Another whole run does not fit the day: it is not planned, and not begun by hand either.
  REQUIRE(c.home.run({"cycle"}).code == 0);
  CHECK(c.runs() == 1);
  CHECK_THAT(c.home.run({"why", "coder"}).out, Contains("because its budget was spent"));
  const std::string id = c.row()["dispatch_id"];
  REQUIRE(c.home.run({"dispatches", "retry", id}).code == 0);
  program node(c.home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  REQUIRE(wait_until([&] { return c.row()["status"] == "failed"; }));
  CHECK(c.runs() == 1);
  const auto row = c.row();
  CHECK(row["failure_class"] == "policy");
  CHECK_THAT(row["error"].get<std::string>(), Contains("the day's budget of agent:default/coder") &&
                                                  Contains("wait until 00:00 UTC"));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("case W3: a run that did not tell what it used counts by what it did",
          "[e2e][agent_budget]") {
  const auto spent = [](const std::string& body) {
    const coder c(body, cents);
    c.home.run({"cycle"});
    CHECK(c.runs() == 1);
    CHECK(c.spent()["open_calls"] == 0);
    return c.spent()["cost"].get<std::string>();
  };
  // Begun, and nothing else: it used nothing.
  CHECK(spent("head -1 '" + transcript("claude_success") + "'") == "0.00");
  // Three events behind the first: three fiftieths of what was reserved.
  CHECK(spent("head -4 '" + transcript("claude_success") + "'") == "0.00054");
  // So many that it may have used all.
  CHECK(spent("for i in $(seq 99); do sed -n 2p '" + transcript("claude_success") + "'; done") ==
        "0.009");
}

TEST_CASE("case W3: zero that was told is zero, and nine stalls lock nobody out",
          "[e2e][agent_budget]") {
  const std::string nothing =
      R"({"type":"result","is_error":true,"result":"API Error: 500","total_cost_usd":0,)"
      R"("usage":{"input_tokens":0,"output_tokens":0}})";
  for (const auto& body : {"echo '" + nothing + "'; exit 1",
                           "head -1 '" + transcript("claude_success") + "'; exit 1"}) {
    INFO(body);
    const coder c(body, cents);
    for (int i = 1; i <= 9; ++i) {
      c.home.run({"cycle"});
      REQUIRE(c.runs() == i);
    }
    CHECK(c.spent()["cost"] == "0.00");
    CHECK(c.spent()["open_calls"] == 0);
  }
}

TEST_CASE("case W5: a run counts as one call, of the model that its program told",
          "[e2e][agent_budget]") {
  const coder c("cat '" + transcript("claude_success") + "'", cents);
  REQUIRE(c.home.run({"cycle"}).code == 0);
  const auto models = c.home.run({"cost", "--by", "model", "--json"}).json()["items"];
  REQUIRE(models.size() == 1);
  CHECK(models[0]["calls"] == 1);
  CHECK_THAT(models[0]["key"].get<std::string>(), Catch::Matchers::StartsWith("claude/claude-"));
}

TEST_CASE("agent CLI: a program that is not there costs nothing; the node's budget holds",
          "[e2e][agent_budget]") {
  const coder none("exit 127", cents);
  none.home.run({"cycle"});
  CHECK(none.spent()["cost"] == "0.00");
  CHECK(none.spent()["open_calls"] == 0);
  const coder node("cat '" + transcript("claude_success") + "'", {}, "budget_day: {cost: 1.00}, ");
  REQUIRE(node.home.run({"cycle"}).code == 0);
  CHECK(node.runs() == 0); // without a word a run may take two dollars
  CHECK_THAT(node.home.run({"why", "coder"}).out, Contains("the node's budget"));
}

TEST_CASE("agent CLI: a run is held to its budget by what its program tells, and by the clock",
          "[e2e][agent_budget]") {
  const auto ended = [](const std::string& body, const std::string& budget) {
    const coder c(body, "        budget: {run: {" + budget + "}}\n");
    c.home.run({"cycle"});
    CHECK(c.runs() == 1);
    const auto row = c.row();
    INFO(row.dump(1));
    CHECK(row["status"] == "failed");
    CHECK(row["failure_class"] == "policy");
    return row["error"].get<std::string>();
  };
  const auto told = "cat '" + transcript("claude_success") + "'";
  CHECK_THAT(ended(told, "cost: 0.001"), Contains("reported 0.001374 (budget.run.cost)"));
  CHECK_THAT(ended(told, "turns: 1"), Contains("(budget.run.turns)"));
  CHECK_THAT(ended(told, "tokens: 100"), Contains("(budget.run.tokens)"));
  // Nobody would wait for this one.
  CHECK_THAT(ended("head -1 '" + transcript("claude_success") + "'; exec sleep 3600", "wall: 1s"),
             Contains("(budget.run.wall)"));
}

TEST_CASE("chat: actions in a minute are counted for the agent, not for each run",
          "[e2e][agent_budget]") {
  model_endpoint endpoint([](const model_request& r) {
    if (r.json["messages"].back()["role"] == "tool")
      return stream_answer("done");
    return chat_stream()
        .role()
        .tool_call(0, "a", "list_dir", R"({"path":"."})")
        .finish("tool_calls")
        .usage()
        .done();
  });
  const home_of_boyd home(
      "version: 1\nproviders:\n  - {provider_id: local, base_url: " + endpoint.base_url() +
      ", model: m}\nkernels:\n  - kernel_id: default\n"
      "    schedule: \"0 0 1 1 *\"\n    agents:\n"
      "      - agent_id: lister\n        prompt: list\n"
      "        executor: {type: chat, provider: local}\n"
      "        tools: [list_dir]\n"
      "        policy: {actions_per_minute: 1}\n");
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  REQUIRE(home.run({"cycle"}).code == 0);
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 4);
  const auto told = [&](std::size_t i) {
    return asked[i].json["messages"].back()["content"].get<std::string>();
  };
  CHECK_THAT(told(1), !Contains("denied"));
  CHECK_THAT(told(3), Contains("denied: more than 1 actions in a minute"));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("chat: trouble with a provider says what to do next", "[e2e][agent_budget]") {
  model_endpoint endpoint;
  endpoint.then(bad_key());
  const home_of_boyd home(
      "version: 1\nproviders:\n  - {provider_id: local, base_url: " + endpoint.base_url() +
      ", model: m}\nkernels:\n  - kernel_id: default\n"
      "    schedule: \"0 0 1 1 *\"\n    agents:\n"
      "      - agent_id: talker\n        prompt: talk\n"
      "        executor: {type: chat, provider: local}\n");
  const auto cycle = home.run({"cycle", "--json"});
  CHECK_THAT(cycle.out, Contains("boyd doctor --provider local"));
}

} // namespace boyd::agent_budget_test
