#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"

#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace boyd::memory_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using Catch::Matchers::Matches;
using nlohmann::json;

namespace {

constexpr const char* yaml =
    "version: 1\n"
    "kernels:\n"
    "  - kernel_id: default\n"
    "    schedule: \"0 0 1 1 *\"\n"
    "    memory: {caps: [{section: Rules, entries: 2, characters: 80}]}\n"
    "    agents:\n"
    "      - {agent_id: worker, executor: {type: command, argv: [\"true\"]}}\n";

std::string corpus() {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  return std::string(top != nullptr ? top : ".") + "/bench/context/corpus.jsonl";
}

json recall(const home_of_boyd& home, std::vector<std::string> more) {
  std::vector<std::string> args{"memory", "recall"};
  args.insert(args.end(), more.begin(), more.end());
  args.emplace_back("--json");
  const auto ran = home.run(args);
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  return ran.json();
}

std::string kernel_file(const home_of_boyd& home, const std::string& name) {
  return home.file("kernel/default/" + name);
}

} // namespace

TEST_CASE("memory: append, recall and status say the same with a node and without", "[memory]") {
  const home_of_boyd home(yaml);
  auto said = home.run({"memory", "append", "Rules", "deploys happen on Tuesday", "--json"});
  INFO(said.out << said.err);
  REQUIRE(said.code == 0);
  CHECK(said.json().at("file") == "MEMORY.md");
  CHECK(said.json().at("changed") == true);
  CHECK(read_file(kernel_file(home, "MEMORY.md")) == "## Rules\n- deploys happen on Tuesday\n");
  const auto half = home.run({"memory", "append", "cats purr"});
  CHECK(half.code == 2);
  CHECK_THAT(half.err, Contains("two arguments are needed: SECTION and TEXT") &&
                           Contains("memory append Facts 'cats purr'"));
  // What does not fit is not passed off as an answer.
  CHECK_THAT(home.run({"memory", "recall", "banana"}).out,
             Contains("Nothing in memory matches \"banana\". Other entries:\n") &&
                 Contains("deploys happen on Tuesday"));
  CHECK_THAT(home.run({"memory", "recall", "deploys"}).out, !Contains("Nothing in memory"));
  const auto alone = recall(home, {"when do we deploy?", "--budget", "100"});
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  CHECK(recall(home, {"when do we deploy?", "--budget", "100"}).at("items").at(0).at("text") ==
        "deploys happen on Tuesday");
  CHECK(alone.at("items").at(0).at("text") == "deploys happen on Tuesday");
  CHECK(alone.at("tokens") == alone.at("items").at(0).at("tokens"));
  CHECK_THAT(alone.at("items").at(0).at("id").get<std::string>(), Contains("ctx_"));
  for (const char* text : {"never on Friday", "two people look at each change"})
    REQUIRE(home.run({"memory", "append", "Rules", text}).code == 0);
  CHECK(read_file(kernel_file(home, "MEMORY.md")) ==
        "## Rules\n- never on Friday\n- two people look at each change\n");
  // It has left MEMORY.md and is still known.
  CHECK(recall(home, {"when do we deploy?"}).at("items").at(0).at("text") ==
        "deploys happen on Tuesday");
  const auto with = home.run({"memory", "status", "--json"}).json();
  node.signal(SIGTERM);
  REQUIRE(node.finish().code == 0);
  const auto without = home.run({"memory", "status", "--json"}).json();
  CHECK(with == without);
  CHECK(with.at("entries") == 3);
  CHECK(with.at("sections").at(0).at("most_entries") == 2);
  CHECK_THAT(home.run({"memory"}).out, Contains("3 entries in memory"));
}

TEST_CASE("memory: an import is idempotent, and the corpus is recalled by its index", "[memory]") {
  const home_of_boyd home(yaml);
  auto done = home.run({"memory", "import", corpus(), "--json"});
  INFO(done.out << done.err);
  REQUIRE(done.code == 0);
  CHECK(done.json().at("imported") == 603);
  CHECK(done.json().at("skipped") == 0);
  done = home.run({"memory", "import", corpus(), "--kernel", "default", "--json"});
  CHECK(done.json().at("imported") == 0);
  CHECK(done.json().at("skipped") == 603);
  const auto found = recall(
      home, {"Who had put the link there?", "--budget", "500", "--at", "2026-06-30T09:00:00Z"});
  CHECK(found.at("tokens") <= 500);
  REQUIRE(found.at("items").size() > 3);
  for (const char* member : {"id", "key", "source", "time", "author", "text", "tokens", "score"})
    CHECK(found.at("items").at(0).contains(member));
  CHECK(recall(home, {"Who had put the link there?", "--limit", "2"}).at("items").size() == 2);
  // At an earlier moment the later entries are unknown.
  const auto early = recall(home, {"link", "--at", "2026-02-03T00:00:00Z"});
  for (const auto& item : early.at("items"))
    CHECK(item.at("time").get<std::string>() <= "2026-02-03T00:00:00Z");
  // The index is derived.
  std::filesystem::remove_all(home.file("knowledge"));
  CHECK(recall(home, {"Who had put the link there?", "--budget", "500", "--at",
                      "2026-06-30T09:00:00Z"}) == found);
}

TEST_CASE("memory: many questions are answered in their order", "[memory]") {
  const home_of_boyd home(yaml);
  REQUIRE(home.run({"memory", "import", corpus()}).code == 0);
  std::string lines = "\xEF\xBB\xBF";
  for (int i = 0; i < 120; ++i)
    lines += i % 2 == 0 ? "{\"query\":\"pager\",\"at\":\"2026-04-01T00:00:00Z\"}\r\n"
                        : "{\"query\":\"证书\"}\n\n";
  const auto file = home.file("questions.jsonl");
  write_file(file, lines);
  const auto ran = home.run({"memory", "recall", "--queries", file, "--budget", "200"});
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  std::istringstream out(ran.out);
  std::vector<json> answers;
  for (std::string line; std::getline(out, line);)
    answers.push_back(json::parse(line));
  REQUIRE(answers.size() == 120);
  CHECK(answers[0] == answers[118]);
  CHECK(answers[1] == answers[119]);
  CHECK(answers[0] != answers[1]);
}

TEST_CASE("memory: a bad line is named, and nothing is imported", "[memory]") {
  const home_of_boyd home(yaml);
  const auto file = home.file("lines.jsonl");
  write_file(file, "{\"time\":\"2026-02-13T10:00:00Z\",\"text\":\"good\"}\n"
                   "\n"
                   "{\"time\":\"someday\",\"text\":\"bad\"}\n"
                   "not json\n");
  auto done = home.run({"memory", "import", file});
  CHECK(done.code == 2);
  CHECK_THAT(done.err, Contains("lines.jsonl:3") && Contains("someday") && Contains("line 4") &&
                           Contains("RFC 3339"));
  CHECK_FALSE(std::filesystem::exists(kernel_file(home, "archive")));
  // Bytes are read generously: a mark, CRLF, half of a surrogate pair.
  write_file(file, "\xEF\xBB\xBF{\"time\":\"2026-02-13T10:00:00Z\",\"text\":\"a \\ud83d\"}\r\n");
  done = home.run({"memory", "import", file, "--json"});
  INFO(done.err);
  CHECK(done.json().at("imported") == 1);
  CHECK(home.run({"memory", "import", home.file("none.jsonl")}).code == 1);
  CHECK(home.run({"memory", "recall"}).code == 2);
}

TEST_CASE("memory: compact tells first, and then moves", "[memory]") {
  const home_of_boyd home(yaml);
  write_file(kernel_file(home, "MEMORY.md"), "## Rules\n- 1\n- 2\n- 3\n\n## Free\n- x\n");
  const auto told = home.run({"memory", "compact"});
  INFO(told.out << told.err);
  CHECK_THAT(told.out, Contains("MEMORY.md: 1 entry to archive/") && Contains("--yes"));
  CHECK_THAT(read_file(kernel_file(home, "MEMORY.md")), Contains("- 1\n"));
  REQUIRE(home.run({"memory", "compact", "--yes"}).code == 0);
  CHECK(read_file(kernel_file(home, "MEMORY.md")) == "## Rules\n- 2\n- 3\n\n## Free\n- x\n");
  CHECK_THAT(home.run({"memory", "compact"}).out, Contains("within their limits"));
}

TEST_CASE("memory: what an editor puts beyond a cap moves at the end of the cycle", "[memory]") {
  const home_of_boyd home(yaml);
  write_file(kernel_file(home, "MEMORY.md"), "## Rules\n- 1\n- 2\n- 3\n");
  REQUIRE(home.run({"cycle"}).code == 0);
  CHECK(read_file(kernel_file(home, "MEMORY.md")) == "## Rules\n- 2\n- 3\n");
  std::string archived;
  for (const auto& file : std::filesystem::directory_iterator(kernel_file(home, "archive")))
    if (file.path().extension() == ".md")
      archived += read_file(file.path().string());
  CHECK_THAT(archived, Contains("MEMORY.md — Rules\n- 1\n"));
  CHECK(home.run({"state", "show", "--path", "MEMORY.md", "--at", "HEAD"}).out ==
        "## Rules\n- 2\n- 3\n");
  // The move is a commit of its own, and what the editor wrote stands in one before it.
  const auto git = [&](const std::string& command) {
    return program({"/bin/sh", "-c", "cd '" + kernel_file(home, ".") + "' && git " + command})
        .finish()
        .out;
  };
  const std::string move =
      "$(git log -1 --format=%H --grep='^memory: moved to the archive (entries: 1, notes: 0)')";
  CHECK_THAT(git("show --format= --name-only " + move),
             Matches("MEMORY\\.md\narchive/[0-9-]+\\.md\n"));
  CHECK(git("show " + move + "~1:MEMORY.md") == "## Rules\n- 1\n- 2\n- 3\n");
  REQUIRE(home.run({"cycle"}).code == 0);
  CHECK(git("log --format=%s --grep='^memory: '") ==
        "memory: moved to the archive (entries: 1, notes: 0)\n");
  CHECK(recall(home, {"1"}).at("items").size() == 3);
}

TEST_CASE("memory: {MEMORY} has its budget, and No references found is filled in", "[memory]") {
  const home_of_boyd home("version: 1\n"
                          "kernels:\n"
                          "  - kernel_id: default\n"
                          "    schedule: \"0 0 1 1 *\"\n"
                          "    memory: {budget_tokens: 120}\n"
                          "    agents:\n"
                          "      - agent_id: worker\n"
                          "        prompt: \"known: {MEMORY}\"\n"
                          "        executor: {type: command, argv: [cat]}\n");
  write_file(kernel_file(home, "SOUL.md"), "## Who I Am\n- somebody called {GOAL} @GOAL.md\n");
  write_file(kernel_file(home, "GOAL.md"), "never in there\n");
  std::string facts = "## Important Facts\n";
  for (int i = 0; i < 40; ++i)
    facts += "- fact number " + std::to_string(i) + "\n";
  write_file(kernel_file(home, "MEMORY.md"), facts);
  CHECK_THAT(home.run({"plan", "--prompts"}).out, Contains("left out"));
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto rows = home.run({"dispatches", "ls", "--json"}).json();
  const auto id = rows.at("items").at(0).at("dispatch_id").get<std::string>();
  const auto output = home.run({"dispatches", "show", id, "--json"})
                          .json()
                          .at("dispatch")
                          .at("output")
                          .get<std::string>();
  INFO(output);
  CHECK_THAT(output, Contains("somebody called {GOAL} @GOAL.md") &&
                         Contains("- fact number 39\n") && !Contains("- fact number 0\n") &&
                         Contains("left out"));
  CHECK_THAT(output, !Contains("never in there"));
  // The record of the cycle has moved what was beyond the section's cap.
  CHECK_THAT(read_file(kernel_file(home, "MEMORY.md")),
             Contains("- fact number 35\n") && !Contains("- fact number 34\n"));
}

TEST_CASE("memory: a program's BOYD_REMEMBER lines are kept once it is done", "[memory]") {
  const home_of_boyd home("version: 1\n"
                          "kernels:\n"
                          "  - kernel_id: default\n"
                          "    schedule: \"0 0 1 1 *\"\n"
                          "    agents:\n"
                          "      - agent_id: good\n"
                          "        executor: {type: command, shell: \"echo 'BOYD_REMEMBER: "
                          "[Important Facts] the sky is "
                          "blue'; echo 'BOYD_REMEMBER: no section'; echo done\"}\n"
                          "      - agent_id: bad\n"
                          "        retry: {max_attempts: 1}\n"
                          "        executor: {type: command, shell: \"echo 'BOYD_REMEMBER: "
                          "[Important Facts] the sky is "
                          "green'; exit 1\"}\n");
  (void)home.run({"cycle"});
  CHECK(read_file(kernel_file(home, "MEMORY.md")) == "## Important Facts\n- the sky is blue\n");
  (void)home.run({"cycle"});
  CHECK(read_file(kernel_file(home, "MEMORY.md")) == "## Important Facts\n- the sky is blue\n");
  CHECK_THAT(home.run({"state", "show", "--path", "MEMORY.md", "--at", "HEAD"}).out,
             Contains("the sky is blue"));
}

TEST_CASE("memory: a chat remembers and recalls", "[memory]") {
  model_endpoint endpoint;
  endpoint
      .then(tool_answer("a", "remember",
                        R"({"section":"Important Facts","text":"the gate code is 1234"})"))
      .then(tool_answer("b", "recall", R"({"query":"what is the code of the gate?"})"))
      .then(tool_answer("c", "remember", R"({"section":"","text":"x"})"))
      .then(text_answer("It is 1234."));
  const home_of_boyd home("version: 1\n"
                          "providers:\n"
                          "  - {provider_id: local, base_url: \"" +
                          endpoint.base_url() +
                          "\", model: test-model, max_retries: 0, capabilities: {stream: false}}\n"
                          "kernels:\n"
                          "  - kernel_id: default\n"
                          "    schedule: \"0 0 1 1 *\"\n"
                          "    agents:\n"
                          "      - agent_id: worker\n"
                          "        prompt: Do it.\n"
                          "        executor: {type: chat, provider: local}\n"
                          "        tools: [remember, recall]\n");
  const auto ran = home.run({"cycle"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 4);
  REQUIRE(asked[0].json["tools"].size() == 2);
  const auto last = [&](std::size_t request) {
    return asked[request].json["messages"].back()["content"].get<std::string>();
  };
  CHECK(last(1) == "remembered in MEMORY.md, Important Facts");
  CHECK_THAT(last(2),
             Contains("the gate code is 1234") && Contains("(MEMORY.md — Important Facts)"));
  CHECK_THAT(last(3), Contains("section is empty"));
  CHECK(read_file(kernel_file(home, "MEMORY.md")) ==
        "## Important Facts\n- the gate code is 1234\n");
}

} // namespace boyd::memory_test
