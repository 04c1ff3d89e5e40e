#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace boyd::examples_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

/// The examples with models, as their first lines say how to try them, on an endpoint of the test.

namespace {

std::string source_directory() {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(top != nullptr);
  return top;
}

/// The home of one example.
class example_home {
 public:
  example_home(const std::string& example, std::map<std::string, std::string> environment)
      : environment_(std::move(environment)) {
    const auto made =
        run({"init", "--no-input", "--from", source_directory() + "/config/examples/" + example});
    INFO(made.err);
    REQUIRE(made.code == 0);
  }

  std::string file(const std::string& name) const { return directory_.file("home/" + name); }

  finished run(std::vector<std::string> args) const {
    args.insert(args.begin(), {"--home", directory_.file("home")});
    return boyd_run(args, environment_);
  }

  json dispatch_of(const std::string& agent) const {
    const auto all = run({"dispatches", "ls", "--agent", agent, "--json"}).json();
    REQUIRE(all["items"].size() == 1);
    const std::string id = all["items"][0]["dispatch_id"];
    return run({"dispatches", "show", id, "--json"}).json()["dispatch"];
  }

 private:
  temp_dir directory_;
  std::map<std::string, std::string> environment_;
};

} // namespace

TEST_CASE("the example that asks waits for a person before it removes something",
          "[e2e][examples][approvals]") {
  model_endpoint endpoint;
  endpoint
      .then(chat_stream()
                .role()
                .tool_call(0, "a", "run_command", R"({"command":"ls -l"})")
                .tool_call(1, "b", "run_command", R"({"argv":["rm","old.log"]})")
                .finish("tool_calls")
                .done())
      .then(stream_answer("Removed old.log."));
  const std::map<std::string, std::string> where{{"OLLAMA_URL", endpoint.base_url()}};
  const example_home home("asking.yaml", where);
  write_file(home.file("kernel/default/old.log"), "old\n");
  program cycle({boyd_binary(), "--home", home.file(""), "cycle"}, where);
  json asked;
  REQUIRE(wait_until([&] {
    asked = home.run({"approvals", "ls", "--json"}).json()["items"];
    return asked.is_array() && asked.size() == 1;
  }));
  CHECK(fs::exists(home.file("kernel/default/old.log")));
  const auto approved = home.run({"approvals", "approve", asked[0]["approval_id"]});
  CHECK(approved.code == 0);
  CHECK_THAT(approved.out, Contains(R"(program: ["rm","old.log"])"));
  CHECK(cycle.finish().code == 0);
  CHECK_FALSE(fs::exists(home.file("kernel/default/old.log")));
  CHECK(home.dispatch_of("janitor")["status"] == "done");
}

TEST_CASE("the example of reading shows, gives and records what its agents read",
          "[e2e][examples][context]") {
  const example_home home("context.yaml", {{"BOYD_DEMO_REPO", source_directory()}});
  const auto plan = home.run({"plan", "digest", "--json"}).json()["agents"][0];
  INFO(plan["context"].dump(1));
  CHECK(plan["context"]["tokens"].get<int>() <= 1500);
  const auto cycle = home.run({"cycle"});
  INFO(cycle.out << cycle.err);
  REQUIRE(cycle.code == 0);
  CHECK_THAT(read_file(home.file("kernel/default/DIGEST.md")),
             Contains("# Context Report") && Contains("config/examples/briefing (directory"));
  CHECK_THAT(home.dispatch_of("digest")["output"].get<std::string>(),
             Contains(" items, ") && Contains("the budget of 1500 tokens"));
  const auto record = json::parse(read_file(
      home.file("executions/" + home.dispatch_of("reviewer")["dispatch_id"].get<std::string>() +
                "/record.json")));
  INFO(record["citations"].dump(1));
  CHECK(record["citations"]["valid"].size() == 2);
  CHECK(record["citations"]["accuracy"] == 1.0);
  CHECK(record["citations"]["weak"] == false);
}

TEST_CASE("the example of learning walks from a document to a skill that is rolled back",
          "[e2e][examples][skills]") {
  const example_home home("learning.yaml", {{"BOYD_DEMO_REPO", source_directory()}});
  const auto cycles = [&](int n) {
    for (int i = 0; i < n; ++i) {
      const auto ran = home.run({"cycle"});
      INFO(ran.out << ran.err);
      REQUIRE((ran.code == 0 || ran.code == 1));
    }
  };
  const auto skill = [&] {
    const auto all = home.run({"skills", "--json"}).json()["skills"];
    INFO(all.dump(1));
    REQUIRE(all.size() == 1);
    return all[0];
  };
  cycles(3);
  const auto banked = home.run({"context", "bank", "--json"}).json()["items"];
  REQUIRE(banked.size() == 1);
  CHECK(banked[0]["stage"] == "bank");
  CHECK(banked[0]["reason"] == "stable repeated usage");
  cycles(2);
  CHECK_THAT(home.run({"skills", "review"}).out,
             Contains("Sound the horn twice") && Contains("5 references"));
  REQUIRE(home.run({"skills", "approve", "release"}).code == 0);
  cycles(1);
  CHECK(skill()["state"] == "enabled");
  CHECK(skill()["successes"] == 1);
  const auto path = home.file("kernel/default/skills/release/SKILL.md");
  write_file(path, read_file(path) + "4. Sail in any storm.\n");
  REQUIRE(home.run({"skills", "approve", "release"}).code == 0);
  write_file(home.file("kernel/default/storm"), "");
  cycles(3);
  CHECK(skill()["state"] == "degraded");
  CHECK(skill()["version"] == 2);
  REQUIRE(home.run({"skills", "rollback", "release", "--to", "1"}).code == 0);
  CHECK(skill()["state"] == "enabled");
  CHECK(skill()["version"] == 3);
  CHECK_THAT(read_file(path), !Contains("storm"));
}

TEST_CASE("the example of Ollama keeps its page", "[e2e][examples]") {
  model_endpoint endpoint;
  endpoint
      .then(chat_stream()
                .role()
                .tool_call(0, "a", "write_file", R"({"path":"GOAL.md","content":"Rest."})")
                .tool_call(1, "b", "write_file", R"({"path":"notes/today.md","content":"Sow.\n"})")
                .finish("tool_calls")
                .usage()
                .done())
      .then(stream_answer("The page is up to date."));
  const example_home home("ollama.yaml", {{"OLLAMA_URL", endpoint.base_url()}});
  write_file(home.file("kernel/default/GOAL.md"), "Plan a garden.\n");
  const auto cycle = home.run({"cycle"});
  INFO(cycle.out << cycle.err);
  REQUIRE(cycle.code == 0);
  CHECK(read_file(home.file("kernel/default/notes/today.md")) == "Sow.\n");
  CHECK(read_file(home.file("kernel/default/GOAL.md")) == "Plan a garden.\n");
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 2);
  CHECK(asked[0].json["tools"].size() == 4);
  CHECK_THAT(asked[0].json["messages"][0]["content"].get<std::string>(),
             Contains("Plan a garden."));
  CHECK(home.dispatch_of("keeper")["verification"] == "passed");
}

TEST_CASE("the example of a team goes on with its fallback, under its policy", "[e2e][examples]") {
  model_endpoint main([](const model_request&) { return quota_exceeded(); });
  model_endpoint spare([](const model_request& r) {
    if (r.json.contains("response_format"))
      return stream_answer(R"({"verdict":"green","reasons":["the disk has room"]})");
    if (r.json["messages"].back()["role"] == "tool")
      return stream_answer("The report is written.");
    return chat_stream()
        .role()
        .tool_call(0, "a", "write_file", R"({"path":"notes/report.md","content":"All green.\n"})")
        .tool_call(1, "b", "run_command", R"({"command":"wc -c notes/report.md"})")
        .tool_call(2, "c", "run_command", R"({"command":"rm -r notes"})")
        .finish("tool_calls")
        .usage()
        .done();
  });
  const example_home home("team.yaml",
                          {{"TEAM_MODEL_URL", main.base_url()}, {"OLLAMA_URL", spare.base_url()}});
  const auto cycle = home.run({"cycle"});
  INFO(cycle.out << cycle.err);
  REQUIRE(cycle.code == 0);
  CHECK(main.requests_count() == 2); // each run tries the first choice once, then stays
  CHECK(read_file(home.file("kernel/default/notes/report.md")) == "All green.\n");
  for (const auto* agent : {"facts", "rules", "analyst", "editor"})
    CHECK(home.dispatch_of(agent)["status"] == "done");
  std::string turns;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(home.file("executions")))
    if (entry.is_regular_file())
      turns += read_file(entry.path());
  CHECK_THAT(turns, Contains(R"("decision":"deny")"));
  CHECK(std::filesystem::exists(home.file("kernel/default/notes/facts.txt")));
  const auto cost = home.run({"cost", "--by", "model", "--json"}).json();
  REQUIRE(cost["items"].size() == 2);
  CHECK(std::ranges::any_of(cost["items"],
                            [](const json& row) { return row["key"] == "spare/qwen3:8b"; }));
}

TEST_CASE("the example of a planning model follows it within the limits", "[e2e][examples]") {
  model_endpoint endpoint([](const model_request& r) {
    const auto seen = json::parse(r.json["messages"][1]["content"].get<std::string>());
    json answer;
    if (seen.contains("agents")) {
      answer["dispatches"] = json::array();
      for (const auto* id : {"remind", "tidy", "measure"})
        answer["dispatches"].push_back({{"agent_id", id}, {"priority", 7}, {"reason", "due"}});
    } else {
      answer["lines"] = json::array();
      for (const auto& o : seen["outcomes"])
        answer["lines"].push_back({{"dispatch_id", o["dispatch_id"]}, {"text", "It went well."}});
    }
    return stream_answer(answer.dump());
  });
  const example_home home("planned.yaml", {{"OLLAMA_URL", endpoint.base_url()}});
  write_file(home.file("kernel/default/GOAL.md"), "Rest.\n");
  const auto cycle = home.run({"cycle"});
  INFO(cycle.out << cycle.err);
  REQUIRE(cycle.code == 0);
  CHECK(endpoint.requests_count() == 2);
  CHECK(home.dispatch_of("remind")["output"] == "Rest.\n");
  CHECK(home.dispatch_of("tidy")["priority"] == 7);
  const auto why = home.run({"why"});
  CHECK_THAT(why.out, Contains("a model chose 3 agents, 2 followed") &&
                          Contains("dropped measure: more than 2 dispatches"));
  CHECK_THAT(read_file(home.file("kernel/default/STATE.md")),
             Contains(" remind: It went well. (done)"));
}

TEST_CASE("the example of a tool server reads and does not write", "[e2e][examples]") {
  model_endpoint endpoint;
  endpoint
      .then(chat_stream()
                .role()
                .tool_call(0, "a", "mcp__files__read_file", R"({"path":"notes.txt"})")
                .tool_call(1, "b", "mcp__files__write_file", R"({"path":"notes.txt"})")
                .finish("tool_calls")
                .done())
      .then(stream_answer("Seeds are to be bought."));
  temp_dir programs;
  // In the place of npx: a server of the tests with tools of these names.
  write_file(programs.file("npx"),
             "#!/bin/sh\nexec python3 " + source_directory() +
                 "/tests/data/mcp/server.py --tool read_file --tool write_file\n");
  std::filesystem::permissions(programs.file("npx"), std::filesystem::perms::owner_all);
  const example_home home("mcp.yaml",
                          {{"OLLAMA_URL", endpoint.base_url()}, {"NPX", programs.file("npx")}});
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  CHECK(cycle.code == 0);
  CHECK(home.dispatch_of("reader")["status"] == "done");
  const json messages = endpoint.requests().at(1).json["messages"];
  CHECK(messages[messages.size() - 2]["content"] == "called read_file");
  CHECK_THAT(messages[messages.size() - 1]["content"].get<std::string>(),
             Contains("the reader changes nothing"));
}

TEST_CASE("the example of a coder keeps what it changed as a patch", "[e2e][examples]") {
  const temp_dir work;
  const auto repository = work.file("repo");
  const auto git = "git -c user.name=p -c user.email=p@example.org -C " + repository;
  REQUIRE(std::system(("git init -q -b main " + repository + " && echo one > " + repository +
                       "/README.md && " + git + " add -A && " + git + " commit -q -m first")
                          .c_str()) == 0);
  // In the place of claude: what it printed once, after a change that tells where it would have
  // asked.
  const temp_dir programs;
  write_file(programs.file("printed"),
             read_file(source_directory() + "/tests/data/agent_cli/claude_success.jsonl"));
  write_file(programs.file("claude"),
             "#!/bin/sh\ncat > /dev/null\necho \"asks $ANTHROPIC_BASE_URL\" >> README.md\n"
             "cat '" +
                 programs.file("printed") + "'\n");
  fs::permissions(programs.file("claude"), fs::perms::owner_all);
  const example_home home("coder.yaml", {{"REPOSITORY", repository},
                                         {"ANTHROPIC_BASE_URL", "http://127.0.0.1:1"},
                                         {"PATH", programs.path() + ":/usr/bin:/bin"}});
  const auto cycle = home.run({"cycle"});
  INFO(cycle.out << cycle.err);
  CHECK(cycle.code == 0);
  const auto row = home.dispatch_of("tidy");
  CHECK(row["status"] == "done");
  CHECK(row["verification"] == "passed");
  const auto patch =
      home.file("executions/" + row["dispatch_id"].get<std::string>() + "/patch-1.diff");
  CHECK_THAT(read_file(patch), Contains("+asks http://127.0.0.1:1"));
  CHECK(read_file(repository + "/README.md") == "one\n");
}

} // namespace boyd::examples_test
