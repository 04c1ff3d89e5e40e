#include "chat_home.hpp"
#include "program.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace boyd::explain_e2e {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

/// Explaining and replaying with the real binary: every kind of executor, with a node and without.

namespace {

const std::string manual =
    "# The lamp\n"
    "Fill the tank with 12 litres of oil before dusk, then trim the wick to two fingers.\n"
    "At dawn put the flame out and write the hours into the log of the keeper.\n";

/// A home with an agent of every kind, and the model that one of them asks.
struct every_kind {
  temp_dir place;
  model_endpoint endpoint;
  home_of_boyd home{"version: 1\nkernels: [{agents: []}]\n"};

  every_kind() {
    fs::create_directories(place.file("repo"));
    write_file(place.file("repo/manual.md"), manual);
    git(place.file("repo"), "init -q -b main .");
    git(place.file("repo"), "add -A");
    git(place.file("repo"), "commit -q -m first");
    const char* top = std::getenv("BOYD_SOURCE_DIR");
    REQUIRE(top != nullptr);
    const auto transcripts = std::string(top) + "/tests/data/agent_cli";
    write_file(place.file("coder"), "#!/bin/sh\ncat >/dev/null\necho more >> manual.md\ncat '" +
                                        transcripts + "/claude_success.jsonl'\n");
    fs::permissions(place.file("coder"), fs::perms::owner_all);
    script_endpoint();
    home.write_configuration(yaml(transcripts));
  }

  void script_endpoint() {
    endpoint
        .then(chat_stream()
                  .role()
                  .tool_call(0, "a", "read_file", R"({"path":"manual.md"})")
                  .tool_call(1, "b", "write_file", R"({"path":"manual.md","content":"x"})")
                  .finish("tool_calls")
                  .usage({})
                  .done())
        .then(stream_answer("The lamp wants 12 litres before dusk [C1]."));
  }

  std::string yaml(const std::string& transcripts) const {
    const auto repo = place.file("repo");
    return "version: 1\n"
           "node: {sandbox: {writable: [" +
           place.path() + "], readable: [" + transcripts +
           "]}}\n"
           "providers:\n"
           "  - {provider_id: local, base_url: " +
           endpoint.base_url() +
           ", model: test-model}\n"
           "kernels:\n"
           "  - kernel_id: default\n"
           "    schedule: \"0 0 1 1 *\"\n"
           "    system_prompt: You keep a lighthouse.\n"
           "    agents:\n"
           "      - agent_id: bare\n"
           "        prompt: It is {TIME}.\n"
           "        executor: {type: command, argv: [cat]}\n"
           "      - agent_id: reader\n"
           "        prompt: \"What does the lamp want?\\n{CONTEXT}\\nAnswer in one line.\"\n"
           "        context: {items: [\"@manual.md\", \"@none.md\"], workspace: " +
           repo +
           "}\n"
           "        executor: {type: command, shell: \"cat >/dev/null; echo 12 litres [C1]\"}\n"
           "        require: [exit_zero]\n"
           "      - agent_id: fixed\n"
           "        prompt: Say it.\n"
           "        executor: {type: script, answers: [{output: it is said}]}\n"
           "      - agent_id: keeper\n"
           "        prompt: \"What does the lamp want?\"\n"
           "        context: {items: [\"@manual.md\"]}\n"
           "        executor: {type: chat, provider: local, workspace: " +
           repo +
           "}\n"
           "        tools: [read_file, write_file]\n"
           "        policy: {rules: [{tool: write_file, decision: deny, reason: not yours}]}\n"
           "      - agent_id: broken\n"
           "        prompt: Try.\n"
           "        retry: {max_attempts: 1}\n"
           "        executor: {type: command, shell: \"echo no oil >&2; exit 3\"}\n"
           "      - agent_id: coder\n"
           "        prompt: Mend the manual.\n"
           "        context: {items: [\"@manual.md\"]}\n"
           "        executor: {type: agent_cli, adapter: claude, program: " +
           place.file("coder") + ", worktree: {repo: " + repo + "}}\n";
  }

  std::vector<json> rows() const {
    const auto all = home.run({"dispatches", "ls", "--json"}).json();
    REQUIRE(all.is_object());
    return all["items"].get<std::vector<json>>();
  }

  std::string id_of(const std::string& agent) const {
    for (const auto& row : rows())
      if (row["agent_id"] == agent)
        return row["dispatch_id"];
    FAIL("no dispatch of " << agent);
    return {};
  }

  std::string explained(const std::string& what) const {
    const auto r = home.run({"explain", what});
    INFO(r.err);
    REQUIRE(r.code == 0);
    return r.out;
  }

  json record(const std::string& id) const {
    return json::parse(read_file(home.file("executions/" + id + "/record.json")));
  }
};

} // namespace

TEST_CASE("explain and replay: every kind of executor", "[e2e][explain]") {
  const every_kind k;
  const auto cycle = k.home.run({"cycle"});
  INFO(cycle.out << cycle.err);
  CHECK(cycle.code == 3); // one of them fails on purpose
  const auto rows = k.rows();
  REQUIRE(rows.size() == 6);

  // What is gone afterwards does not matter: neither workspace, nor bank, nor model.
  fs::remove_all(k.place.file("repo"));
  fs::remove_all(k.home.file("knowledge"));
  for (const auto& row : rows) {
    const std::string id = row["dispatch_id"];
    const auto r = k.home.run({"replay", id, "--strict"});
    INFO(row["agent_id"] << "\n" << r.out << r.err);
    CHECK(r.code == 0);
    CHECK_THAT(r.out, Contains("identical: every byte"));
    const auto said = k.home.run({"replay", id, "--json"}).json();
    CHECK(said["holds"] == true);
    REQUIRE_FALSE(said["texts"].empty());
    const auto kept = k.record(id);
    CHECK(kept["attempts"][0]["version"].get<std::string>().size() > 2);
    const auto path = k.home.file("executions/" + id + "/explain.md");
    if (fs::exists(path))
      CHECK(read_file(path) == k.explained(id));
    else
      CHECK(kept["attempts"][0]["turns"][0]["snapshot"]["items"].empty());
  }
}

TEST_CASE("explain: what the page says of each kind of run", "[e2e][explain]") {
  const every_kind k;
  (void)k.home.run({"cycle"});
  CHECK_THAT(k.explained("bare"), Contains("The agent `bare` **ended without an error**") &&
                                      Contains("a program") && Contains("only its instructions") &&
                                      Contains("exit code 0"));
  const auto reader = k.explained("reader");
  CHECK_THAT(reader, Contains("`reader` is a program that Boyd runs") &&
                         Contains("Checks passed: 1 of 1 (it must end without an error)") &&
                         Contains("nobody checked the content") && !Contains("did its work") &&
                         Contains("| C1 | `manual.md` | cited |") &&
                         Contains("| – | `none.md` | **remove** |") &&
                         Contains("not decided by rules one by one") &&
                         Contains("**Contexts Used:**\n\n- C1 `manual.md`, cited: "));
  CHECK_THAT(k.explained("fixed"), Contains("a script with prepared answers"));
  const auto keeper = k.explained("keeper");
  CHECK_THAT(keeper, Contains("an AI model, `test-model`, from the provider `local`") &&
                         Contains("requested 2 tool calls") && Contains("policy: not yours`") &&
                         Contains("`read_file`: allowed") && Contains("citations are required"));
  CHECK_THAT(k.explained("broken"), Contains("**failed**") && Contains("no oil") &&
                                        Contains("the same input would probably fail"));
  CHECK_THAT(k.explained("coder"), Contains("an agent CLI, `claude`"));
  // The system message and the prompt, as the model was told them.
  const auto told = k.home.run({"replay", "keeper", "--prompt"}).out;
  CHECK_THAT(told, Contains("You keep a lighthouse.") && Contains("12 litres of oil"));
  const auto asked = k.endpoint.requests().front().json["messages"];
  CHECK_THAT(told, Contains(asked[1]["content"].get<std::string>()));
}

TEST_CASE("explain: options, ids and errors; with a node as without", "[e2e][explain]") {
  const every_kind k;
  const auto early = k.home.run({"explain", "last"});
  CHECK(early.code == 1);
  CHECK_THAT(early.err, Contains("no runs yet") && Contains("boyd cycle"));
  CHECK_THAT(k.home.run({"explain", "reader"}).err, Contains("the agent reader has not run yet"));
  (void)k.home.run({"cycle"});
  const auto id = k.id_of("reader");
  const auto whole = k.explained(id);
  CHECK(k.explained(id.substr(0, id.size() - 2)) == whole);
  CHECK(k.explained("reader") == whole);
  CHECK_FALSE(k.explained("last").empty());
  CHECK_THAT(k.home.run({"explain", id, "--context"}).out,
             Contains("## Context Bank Usage") && !Contains("## Turn by Turn"));
  CHECK_THAT(k.home.run({"explain", id, "--lifecycle"}).out,
             Contains("## Lifecycle Recommendations") && !Contains("## Context Bank Usage"));
  CHECK_THAT(k.home.run({"explain", id, "--no-kg"}).out, !Contains("Evidence & Provenance"));
  CHECK_THAT(k.home.run({"explain", id, "--graph"}).out, Contains("```mermaid"));
  const auto body = k.home.run({"explain", id, "--json"}).json();
  CHECK(body["schema"] == "boyd.explain/1");
  CHECK(body["dispatch_id"] == id);
  CHECK(body["markdown"] == whole);
  CHECK(body["fate"] == "done");
  CHECK(body["record"]["schema"] == "boyd.execution/1");
  CHECK(body["recommendations"].size() == 2);
  for (const auto* verb : {"explain", "replay"}) {
    const auto none = k.home.run({verb, "nobody"});
    CHECK(none.code == 1);
    CHECK_THAT(none.err, Contains("nobody") && Contains("boyd dispatches ls"));
    const auto gone = k.home.run({verb, "01900000-0000-7000-8000-000000000000"});
    CHECK(gone.code == 1);
    CHECK_THAT(gone.err, Contains("no record of this run"));
  }
  program node(k.home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  CHECK(k.explained(id) == whole);
  CHECK(k.home.run({"replay", id, "--strict"}).code == 0);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("replay: what is damaged or missing is named, and --strict says 1", "[e2e][explain]") {
  const every_kind k;
  (void)k.home.run({"cycle"});
  const auto id = k.id_of("reader");
  const std::string hash = k.record(id)["attempts"][0]["turns"][0]["snapshot"]["items"][0]["hash"];
  const auto object = k.home.file("context/objects/" + hash.substr(0, 2) + "/" + hash);
  REQUIRE(read_file(object) == manual);
  write_file(object, "something else\n");
  auto r = k.home.run({"replay", id, "--strict", "--diff"});
  INFO(r.out << r.err);
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Contains("damaged: manual.md") &&
                        Contains("differs: the prompt of attempt 1") && Contains(hash));
  CHECK(k.home.run({"replay", id}).code == 0); // it tells; only --strict judges
  fs::remove(object);
  r = k.home.run({"replay", id, "--strict"});
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Contains("missing: manual.md") && Contains("--diff"));
  CHECK(k.home.run({"replay", id, "--prompt"}).code == 1);
  write_file(object, manual);
  CHECK(k.home.run({"replay", id, "--strict"}).code == 0);
  const auto page = k.home.file("executions/" + id + "/explain.md");
  write_file(page, read_file(page) + "and more\n");
  r = k.home.run({"replay", id, "--strict", "--diff"});
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Contains("differs: explain.md") && Contains("and more"));
  fs::remove(page);
  r = k.home.run({"replay", id, "--strict"});
  CHECK(r.code == 1);
  CHECK_THAT(r.out, Contains("missing: explain.md"));
  write_file(k.home.file("executions/" + id + "/record.json"), "{\"schema\":");
  r = k.home.run({"replay", id, "--strict"});
  CHECK(r.code == 1);
  CHECK_THAT(r.err, Contains("record.json") && Contains("boyd dispatches show"));
}

TEST_CASE("explain and replay: the database stands for a record that was never written",
          "[e2e][explain]") {
  const every_kind k;
  (void)k.home.run({"cycle"});
  for (const auto* agent : {"bare", "fixed", "broken"}) {
    INFO(agent);
    const auto id = k.id_of(agent);
    const auto told = k.home.run({"replay", id, "--prompt"}).out;
    fs::remove_all(k.home.file("executions/" + id));
    const auto page = k.explained(id);
    CHECK_THAT(page, Contains("## Turn by Turn") && Contains(id));
    CHECK((page.find("**failed**") != page.npos) == (std::string(agent) == "broken"));
    CHECK(k.home.run({"replay", id, "--strict"}).code == 0);
    CHECK(k.home.run({"replay", id, "--prompt"}).out == told);
    CHECK_FALSE(fs::exists(k.home.file("executions/" + id)));
  }
  CHECK_THAT(k.explained("bare"), Contains("a program"));
  CHECK_THAT(k.explained("fixed"), Contains("a script"));
}

TEST_CASE("record: a run whose input cannot be recorded does not begin", "[e2e][explain][record]") {
  const home_of_boyd home("version: 1\nkernels:\n  - kernel_id: default\n"
                          "    schedule: \"0 0 1 1 *\"\n    agents:\n"
                          "      - agent_id: one\n        prompt: go\n"
                          "        executor: {type: command, argv: [touch, effect]}\n");
  fs::remove_all(home.file("executions"));
  write_file(home.file("executions"), "in the way\n");
  CHECK(home.run({"cycle"}).code == 1);
  CHECK_FALSE(fs::exists(home.file("kernel/default/effect")));
  const auto row = home.run({"dispatches", "ls", "--json"}).json()["items"][0];
  CHECK(row["failure_class"] == "environment");
  CHECK_THAT(row["error"].get<std::string>(), Contains("cannot record the input of the run"));
}

TEST_CASE("replay: what a killed node leaves holds, and so does what comes after it",
          "[e2e][explain]") {
  const temp_dir place;
  const auto gate = place.file("gate");
  const home_of_boyd home(
      "version: 1\nkernels:\n  - kernel_id: default\n    schedule: \"0 0 1 1 *\"\n    agents:\n"
      "      - agent_id: slow\n        prompt: \"Read it.\\n{CONTEXT}\"\n"
      "        context: {items: [\"@GOAL.md\"]}\n"
      "        executor: {type: command, shell: \"if [ -e " +
      gate + " ]; then echo went on; else touch " + place.file("begun") +
      "; exec sleep 600; fi\"}\n");
  write_file(home.file("kernel/default/GOAL.md"), std::string(100, 'g') + "\n");
  {
    program cycle({boyd_binary(), "--home", home.path(), "cycle"});
    REQUIRE(wait_until([&] { return fs::exists(place.file("begun")); }));
    cycle.signal(SIGKILL);
    (void)cycle.finish();
  }
  const auto rows = home.run({"dispatches", "ls", "--json"}).json();
  REQUIRE(rows["items"].size() == 1);
  const std::string id = rows["items"][0]["dispatch_id"];
  auto r = home.run({"replay", id, "--strict"});
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Contains("prompt of attempt 1") && Contains("has not ended"));
  CHECK_THAT(home.run({"explain", id}).out, Contains("**has not finished**"));
  write_file(gate, "");
  (void)home.run({"cycle"});
  r = home.run({"replay", id, "--strict"});
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Contains("prompt of attempt 2"));
  CHECK_THAT(home.run({"explain", id}).out,
             Contains("**ended without an error**") && Contains("**Attempts:** 2"));
}

TEST_CASE("replay: a model asked again on what is on record, its tools answered from it",
          "[e2e][explain]") {
  every_kind k;
  (void)k.home.run({"cycle"});
  const auto id = k.id_of("keeper");
  const auto facts = [&] { return read_file(k.home.file("knowledge/graph.jsonl")); };
  const auto learned = [&] {
    const auto plan = k.home.run({"plan", "keeper", "--json"}).json();
    return plan["agents"][0]["context"]["items"][0]["importance"].get<double>();
  };
  const auto importance = learned();
  write_file(k.place.file("repo/manual.md"), "now it says something else\n");

  // The same answers again: no drift, and nothing is done.
  k.script_endpoint();
  const auto before = k.endpoint.requests_count();
  auto r = k.home.run({"replay", "keeper", "--reevaluate", "--strict"});
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Contains("drift         0.00") && Contains("decision_"));
  auto asked = k.endpoint.requests();
  REQUIRE(asked.size() == before + 2);
  CHECK(asked[before].json["messages"] == asked[before - 2].json["messages"]);
  CHECK(asked[before].json["tools"] == asked[before - 2].json["tools"]);
  CHECK(asked[before + 1].json["messages"] == asked[before - 1].json["messages"]);
  CHECK(read_file(k.place.file("repo/manual.md")) == "now it says something else\n");
  CHECK_THAT(facts(), Contains("\"kind\":\"reevaluation\"") &&
                          Contains("\"from\":\"exec_" + id + "\",\"to\":\"decision_"));
  CHECK(std::abs(learned() - importance) < 1e-3); // but for the time that has passed

  // Another answer of another model, which calls what the recorded run did not.
  k.endpoint
      .then(chat_stream()
                .role()
                .tool_call(0, "z", "list_dir", R"({"path":"."})")
                .finish("tool_calls")
                .usage({})
                .done())
      .then(stream_answer("Ask the harbour master."));
  r = k.home.run({"replay", id, "--reevaluate", "--model", "other-model", "--json"});
  INFO(r.out << r.err);
  REQUIRE(r.code == 0);
  const auto body = r.json();
  CHECK(body["schema"] == "boyd.reevaluation/1");
  CHECK(body["model"] == "other-model");
  CHECK(body["drift"]["citations"] == 1.0);
  CHECK(body["drift"]["actions"] == 1.0);
  CHECK(body["drift"]["conclusion"] == 1.0);
  CHECK(body["recorded"]["citations"] == json::array({"C1"}));
  asked = k.endpoint.requests();
  CHECK(asked.back().json["model"] == "other-model");
  CHECK_THAT(asked.back().json["messages"].back()["content"].get<std::string>(),
             Contains("the recorded run did not make this call"));
  k.endpoint.then(stream_answer("Something else."));
  CHECK(k.home.run({"replay", id, "--reevaluate", "--strict"}).code == 1);
  CHECK(k.home.run({"replay", id, "--strict"}).code == 0);

  const auto bare = k.home.run({"replay", "bare", "--reevaluate"});
  CHECK(bare.code == 1);
  CHECK_THAT(bare.err, Contains("no answer to compare"));
  const auto coder = k.home.run({"replay", "coder", "--reevaluate"});
  CHECK(coder.code != 0);
  CHECK_THAT(coder.err, Contains("--executor PROVIDER") && Contains("local"));
  CHECK(k.home.run({"replay", id, "--model", "m"}).code == 2);
}

} // namespace boyd::explain_e2e
