#include "program.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <sys/stat.h>

namespace boyd::command_line_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

TEST_CASE("an unknown verb names the nearest one", "[e2e]") {
  const auto r = boyd_run({"statsu"});
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK_THAT(r.err, Contains("boyd: no such command: statsu"));
  CHECK_THAT(r.err, Contains("next: did you mean: boyd status"));

  const auto nested = boyd_run({"--home", "/nonexistent/home", "dispatches", "shwo"});
  CHECK(nested.code == 2);
  CHECK_THAT(nested.err, Contains("boyd dispatches show"));
}

TEST_CASE("words that people try lead to the verb that does it", "[e2e]") {
  for (const auto& [word, command] :
       std::map<std::string, std::string>{{"retry", "dispatches retry ID"},
                                          {"rerun", "dispatches retry ID"},
                                          {"list", "agents ls"},
                                          {"remove", "agents rm AGENT"},
                                          {"delete", "agents rm AGENT"},
                                          {"start", "node --background"},
                                          {"ps", "dispatches ls --status running"},
                                          {"log", "logs AGENT"},
                                          {"history", "dispatches ls"},
                                          {"show", "dispatches show ID"}}) {
    const auto r = boyd_run({word, "something"});
    CHECK(r.code == 2);
    CHECK_THAT(r.err, Contains("next: did you mean: boyd " + command + "\n"));
  }
  CHECK_THAT(boyd_run({"agents", "delete", "x"}).err, Contains("did you mean: boyd agents rm\n"));
  CHECK_THAT(boyd_run({"patches", "remove", "x"}).err,
             Contains("did you mean: boyd patches discard\n"));
  CHECK_THAT(boyd_run({"dispatches", "list"}).err, Contains("did you mean: boyd dispatches ls\n"));
  CHECK_THAT(boyd_run({"agents", "disk"}).err, Contains("did you mean: boyd agents show disk\n"));
  CHECK_THAT(boyd_run({"state", "disk"}).err, !Contains("show disk"));
  CHECK_THAT(boyd_run({"cost", "today"}).err, Contains("did you mean: boyd cost --from today\n"));
  CHECK_THAT(boyd_run({"cost", "reader"}).err, Contains("did you mean: boyd cost --by agent\n"));
  CHECK_THAT(boyd_run({"next", "disk", "3"}).err, Contains("did you mean -n 3?"));
  CHECK_THAT(boyd_run({"dispatches", "ls", "--status", "faild"}).err,
             Contains("did you mean failed?"));
}

TEST_CASE("an agent is paused by its name, and rows are counted with -n", "[e2e]") {
  const home_of_boyd home("version: 1\nkernels:\n  - agents:\n      - agent_id: worker\n"
                          "        executor: {type: command, argv: [\"true\"]}\n");
  CHECK(home.run({"pause", "worker", "--reason", "holiday"}).code == 0);
  CHECK_THAT(home.run({"status"}).out, Contains("agent default/worker is paused: holiday"));
  CHECK(home.run({"resume", "worker"}).code == 0);
  CHECK_THAT(home.run({"status"}).out, !Contains("is paused"));
  CHECK(home.run({"pause", "nobody"}).code != 0);
  REQUIRE(home.run({"run", "worker"}).code == 0);
  REQUIRE(home.run({"run", "worker"}).code == 0);
  CHECK(home.run({"dispatches", "ls", "-n", "1", "--json"}).json()["items"].size() == 1);
  CHECK(home.run({"cost", "--since", "today"}).code == 0);
}

TEST_CASE("usage errors end with 2 and speak JSON when asked", "[e2e]") {
  for (const auto& args :
       std::vector<std::vector<std::string>>{{},
                                             {"dispatches", "show"},
                                             {"cycle", "--nonsense"},
                                             {"dispatches", "ls", "--limit", "0"},
                                             {"dispatches", "ls", "--status", "lost"},
                                             {"completion", "tcsh"}}) {
    const auto r = boyd_run(args);
    CHECK(r.code == 2);
    CHECK_THAT(r.err, Catch::Matchers::StartsWith("boyd: "));
  }
  const auto r = boyd_run({"cycle", "--nonsense", "--json"});
  CHECK(r.code == 2);
  CHECK(r.json()["schema"] == "boyd.error/1");
  CHECK(r.json()["error"]["code"] == "invalid_argument");
}

TEST_CASE("an option that is given twice is named in plain words", "[e2e]") {
  const auto outer = boyd_run({"--home", "/one", "status", "--home", "/two"});
  CHECK(outer.code == 2);
  CHECK_THAT(outer.err, Contains("boyd: --home is given 2 times\n") && Contains("give it once"));
  const auto inner = boyd_run({"why", "--at", "1", "--at", "2", "--at", "3"});
  CHECK(inner.code == 2);
  CHECK_THAT(inner.err, Contains("boyd: --at is given 3 times\n"));
}

TEST_CASE("global options stand before and after the verb", "[e2e]") {
  const temp_dir dir;
  const auto home = dir.file("home");
  REQUIRE(boyd_run({"-v", "--no-color", "--json", "--home", home, "init", "--no-input"}).code == 0);
  const auto before = boyd_run({"--json", "-v", "--home=" + home, "status"});
  const auto after = boyd_run({"status", "--home", home, "--json", "-v"});
  CHECK(before.code == 0);
  CHECK(after.code == 0);
  CHECK(before.json()["schema"] == "boyd.status/1");
  CHECK(after.json()["schema"] == "boyd.status/1");
}

TEST_CASE("without a home every verb says so and what to do", "[e2e]") {
  const temp_dir dir;
  const auto home = dir.file("nothing");
  for (const char* verb : {"status", "agents", "dispatches", "state", "why", "plan", "pause",
                           "resume", "cycle", "node"}) {
    INFO(verb);
    const auto r = boyd_run({"--home", home, verb});
    CHECK(r.code == 1);
    CHECK_THAT(r.err, Contains("boyd: no Boyd home at " + home));
    CHECK_THAT(r.err, Contains("next: boyd --home " + home + " init"));
    CHECK_FALSE(std::filesystem::exists(home));
  }
  const auto r = boyd_run({"status", "--json"}, {{"BOYD_HOME", home}});
  CHECK(r.json()["error"]["code"] == "not_found");
}

TEST_CASE("every verb's help opens with an example", "[e2e]") {
  for (const auto& words : std::vector<std::vector<std::string>>{{"init"},
                                                                 {"node"},
                                                                 {"cycle"},
                                                                 {"status"},
                                                                 {"agents"},
                                                                 {"dispatches"},
                                                                 {"dispatches", "ls"},
                                                                 {"dispatches", "show"},
                                                                 {"dispatches", "retry"},
                                                                 {"dispatches", "cancel"},
                                                                 {"state"},
                                                                 {"state", "show"},
                                                                 {"state", "log"},
                                                                 {"state", "diff"},
                                                                 {"why"},
                                                                 {"plan"},
                                                                 {"pause"},
                                                                 {"resume"},
                                                                 {"config"},
                                                                 {"config", "validate"},
                                                                 {"config", "show"},
                                                                 {"config", "schema"},
                                                                 {"doctor"},
                                                                 {"version"},
                                                                 {"completion"}}) {
    auto args = words;
    args.emplace_back("--help");
    const auto r = boyd_run(args);
    INFO(words.front());
    CHECK(r.code == 0);
    CHECK_THAT(r.out, Catch::Matchers::StartsWith("Example:\n  boyd "));
    CHECK_THAT(r.out, Contains(words.back()));
  }
}

TEST_CASE("version, schema and reference need no home", "[e2e]") {
  const auto version = boyd_run({"--json", "version"});
  CHECK(version.code == 0);
  CHECK(version.json()["schema"] == "boyd.version/1");
  CHECK(version.json()["version"].is_string());
  const auto schema = boyd_run({"config", "schema"});
  CHECK(schema.json()["$schema"].is_string());
  CHECK_THAT(boyd_run({"config", "schema", "--markdown"}).out, Contains("max_concurrent"));
}

TEST_CASE("completion scripts are valid and complete", "[e2e]") {
  const temp_dir dir;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    INFO(shell);
    const auto r = boyd_run({"completion", shell});
    REQUIRE(r.code == 0);
    for (const char* verb : {"init", "node", "cycle", "status", "dispatches", "retry", "doctor"})
      CHECK_THAT(r.out, Contains(verb));
    const auto script = dir.file(shell);
    write_file(script, r.out);
    std::string interpreter;
    for (const std::string folder : {"/bin/", "/usr/bin/"})
      if (std::filesystem::exists(folder + shell))
        interpreter = folder + shell;
    if (interpreter.empty()) {
      tell_skipped("parsing the completion script", shell + " is not installed");
      continue;
    }
    const auto parsed = program({interpreter, "-n", script}).finish();
    CHECK(parsed.code == 0);
    CHECK(parsed.err.empty());
  }
}

TEST_CASE("bash completes verbs, their verbs, options and values", "[e2e]") {
  const temp_dir dir;
  write_file(dir.file("boyd.bash"), boyd_run({"completion", "bash"}).out);
  const auto complete = [&](const std::string& words, int index) {
    const auto r = program({"/bin/bash", "-c",
                            ". " + dir.file("boyd.bash") + "; COMP_WORDS=(" + words +
                                "); COMP_CWORD=" + std::to_string(index) +
                                "; _boyd; echo \"${COMPREPLY[*]}\""})
                       .finish();
    return r.out;
  };
  CHECK(complete("boyd stat", 1) == "status state\n");
  CHECK(complete("boyd dispatches re", 2) == "retry\n");
  CHECK(complete("boyd --home /x dispatches ls --sta", 5) == "--status\n");
  CHECK(complete("boyd dispatches ls --status fa", 4) == "failed\n");
  CHECK(complete("boyd completion z", 2) == "zsh\n");
  CHECK(complete("boyd --json sta", 2) == "status state\n");
}

TEST_CASE("bash completes agents, kernels, runs and paths of the home that is named", "[e2e]") {
  const std::string text = R"(version: 1
kernels:
  - kernel_id: work
    schedule: "0 0 1 1 *"
    agents:
      - {agent_id: report, executor: {type: command, argv: [echo, SECRET]}}
      - {agent_id: review, executor: {type: command, argv: ["true"]}}
  - {kernel_id: play, schedule: "0 0 1 1 *"}
)";
  const home_of_boyd home(text);
  REQUIRE(home.run({"run", "review"}).code == 0);
  home.write_configuration(std::string(text).replace(text.find("SECRET"), 6, "\"${NOT_SET}\""));
  const auto id =
      home.run({"dispatches", "ls", "--json"}).json()["items"][0]["dispatch_id"].get<std::string>();
  const temp_dir dir;
  write_file(dir.file("boyd.bash"), boyd_run({"completion", "bash"}).out);
  write_file(dir.file("a backup.tar"), "");
  const auto complete = [&](const std::string& words, int index) {
    const auto r = program({"/bin/bash", "-c",
                            ". " + dir.file("boyd.bash") + "; cd " + dir.path() + "; COMP_WORDS=(" +
                                boyd_binary() + " --home " + home.path() + " " + words +
                                "); COMP_CWORD=" + std::to_string(index + 2) +
                                "; _boyd; printf '%s|' \"${COMPREPLY[@]}\""})
                       .finish();
    CHECK(r.err.empty());
    return r.out;
  };
  CHECK(complete("run re", 2) == "report|review|");
  CHECK(complete("plan --kernel ''", 3) == "play|work|");
  CHECK(complete("agents show rev", 3) == "review|");
  CHECK(complete("dispatches show la", 3) == "last|");
  CHECK(complete("logs " + id.substr(24, 4), 2) == id.substr(24, 8) + "|");
  CHECK(complete("restore boy", 2) == "boyd.bash|");
}

TEST_CASE("usage errors lead to the verb's own help; help and version are found", "[e2e]") {
  const auto bare = boyd_run({});
  CHECK_THAT(bare.err, Contains("boyd: no command given"));
  CHECK_THAT(bare.err, Contains("next: list the commands: boyd --help"));
  CHECK_THAT(boyd_run({"dispatches", "show"}).err, Contains("see: boyd dispatches show --help"));
  CHECK_THAT(boyd_run({"version", "extra"}).err, Contains("boyd: unexpected argument: extra\n"));
  CHECK_THAT(boyd_run({"version", "--agent", "clock"}).err,
             Contains("boyd: unexpected arguments: --agent clock\n"));
  const auto helped = boyd_run({"help", "dispatches", "show"});
  CHECK(helped.code == 0);
  CHECK(helped.out == boyd_run({"dispatches", "show", "--help"}).out);
  CHECK(boyd_run({"help"}).out == boyd_run({"--help"}).out);
  for (const char* flag : {"--version", "-V"}) {
    const auto version = boyd_run({flag});
    CHECK(version.code == 0);
    CHECK(version.out == boyd_run({"version"}).out);
  }
}

TEST_CASE("an empty or wrong path is not taken for the standard one", "[e2e]") {
  const home_of_boyd home;
  for (const char* option : {"--home", "--config"}) {
    const auto r = boyd_run({option, "", "status"}, {{"BOYD_HOME", home.path()}});
    CHECK(r.code == 2);
    CHECK_THAT(r.err, Contains("the path is empty"));
  }
  const auto other =
      boyd_run({"--config", home.file("none.yaml"), "status"}, {{"BOYD_HOME", home.path()}});
  CHECK(other.code == 4);
  CHECK_THAT(other.err, Contains("configuration file not found (" + home.file("none.yaml")));
  const auto file = home.file("boyd.yaml");
  CHECK_THAT(boyd_run({"--home", file, "status"}).err, Contains("the home is not a directory"));
  const auto made = boyd_run({"--home", file, "init", "--no-input"});
  CHECK(made.code == 1);
  CHECK_THAT(made.err, Contains("next: choose another home"));
}

TEST_CASE("questions that find nothing say so", "[e2e]") {
  const home_of_boyd home;
  CHECK(home.run({"dispatches"}).out == "No runs yet; run a cycle: boyd cycle\n");
  CHECK(home.run({"dispatches", "ls", "--status", "failed"}).out == "No matching runs.\n");
  // A slip in a filter is not taken for an empty queue.
  const auto slip = home.run({"dispatches", "ls", "--agent", "nobody"});
  CHECK(slip.code == 1);
  CHECK_THAT(slip.err, Contains("no such agent: nobody"));
  CHECK_THAT(home.run({"dispatches", "ls", "--kernel", "defautl"}).err,
             Contains("no such kernel: defautl") && Contains("did you mean default?"));
  CHECK(home.run({"dispatches", "ls", "--json"}).json()["items"].empty());
  CHECK(home.run({"state", "log", "--path", "nothing.md"}).out == "No commits.\n");
  const auto file = home.run({"state", "show", "--path", "nothing.md"});
  CHECK(file.code == 1);
  CHECK_THAT(file.err, Contains("no such file: nothing.md (" + home.file("kernel/default")));
  CHECK_THAT(home.run({"dispatches", "show", "abc"}).err, Contains("next: list them with"));
  CHECK_THAT(home.run({"state", "show", "--at", "2020-01-01T00:00:00Z"}).err, Contains("next: "));
  CHECK(home.run({"why", "--at", "someday"}).code == 2);
  CHECK_THAT(home.run({"config"}).out, Contains("1 kernel, 2 agents"));
}

TEST_CASE("dispatches are retried and cancelled on real rows", "[e2e]") {
  const home_of_boyd home;
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto row = home.run({"dispatches", "ls", "--limit", "1", "--json"}).json()["items"][0];
  const auto id = row["dispatch_id"].get<std::string>();
  const auto short_id = id.substr(id.size() - 12, 8);
  CHECK(home.run({"dispatches", "cancel", id}).out == short_id + ": nothing to do: already done\n");
  const auto queued = home.run({"dispatches", "retry", id});
  CHECK(queued.out ==
        short_id + ": queued again (was done); what comes of it replaces the result\n");
  CHECK_THAT(queued.err, Contains("no node is running; it starts with the next ") &&
                             Contains("cycle or boyd ") && Contains(" run\n"));
  CHECK_THAT(home.run({"status"}).out,
             Contains("! 1 run waits, and no node is running: boyd ") && !Contains("No problems."));
  CHECK(home.run({"dispatches", "retry", id}).out ==
        short_id + ": nothing to do: already pending\n");
  CHECK(home.run({"dispatches", "cancel", id}).out == short_id + ": cancelled (was pending)\n");
  CHECK_THAT(home.run({"status"}).out, !Contains("no node is running: "));
  CHECK_THAT(home.run({"dispatches", "show", id}).out,
             !Contains("exit code") && Contains(": by an operator"));
  CHECK_THAT(home.run({"dispatches", "show", id, "-v"}).out,
             Contains("verdicts  execution cancelled") && Contains("fence     "));
  CHECK(home.run({"dispatches", "retry", id, "--json"}).json()["result"] == "accepted");
  // The next command that runs work runs it, too.
  REQUIRE(home.run({"cycle"}).code == 0);
  CHECK(home.run({"dispatches", "show", id, "--json"}).json()["dispatch"]["fence"] >= 2);
}

TEST_CASE("a dispatch of an agent that is gone is not queued again", "[e2e]") {
  const home_of_boyd home("version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
                          "      - {agent_id: a, executor: {type: command, argv: [date]}}\n"
                          "      - {agent_id: b, executor: {type: command, argv: [date]}}\n");
  REQUIRE(home.run({"run", "a"}).code == 0);
  const auto id = home.run({"dispatches", "ls", "--agent", "a", "--json"})
                      .json()["items"][0]["dispatch_id"]
                      .get<std::string>();
  home.write_configuration("version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
                           "      - {agent_id: b, executor: {type: command, argv: [date]}}\n");
  const auto refused = home.run({"dispatches", "retry", id});
  CHECK(refused.code != 0);
  CHECK_THAT(refused.err, Contains("agent default/a is no longer configured"));
  CHECK(home.run({"dispatches", "show", id, "--json"}).json()["dispatch"]["status"] == "done");
  const auto why = home.run({"why", "a"});
  CHECK(why.code == 0);
  CHECK_THAT(why.out, Contains("Agent a is no longer configured in boyd.yaml") &&
                          Contains("the last decision about it was made at ") &&
                          Contains("Agent a was dispatched in cycle "));
  CHECK_THAT(home.run({"why", "never"}).err, Contains("no such agent: never"));
  CHECK_THAT(home.run({"why", "b"}).out, !Contains("no longer configured"));
  const auto page = home.run({"explain", "a"});
  CHECK(page.code == 0);
  CHECK(page.out.starts_with("# Run of `a`"));
  CHECK_THAT(page.err, Contains("the agent default/a is no longer configured in boyd.yaml"));
  CHECK_THAT(home.run({"explain", "never"}).err, Contains("no run or agent has this name: never"));
}

TEST_CASE("findings stand under a sentence that names the file", "[e2e]") {
  const home_of_boyd home;
  home.write_configuration("version: 1\nkernels:\n  - agents: []\nfaults:\n"
                           "  - {point: store.aply, action: crash}\n");
  const auto r = home.run({"status"});
  CHECK(r.code == 4);
  CHECK_THAT(r.err, Contains("the configuration has 1 error (" + home.file("boyd.yaml") + ")\n"));
  CHECK_THAT(
      r.err,
      Contains("boyd.yaml:5:13: faults[0].point: \"store.aply\" is not a known value; did you "
               "mean store.apply?\n"));
}

TEST_CASE("a configuration that is named and not there ends every verb with 4", "[e2e]") {
  const home_of_boyd home;
  const std::vector<std::vector<std::string>> verbs{{"status"},
                                                    {"node"},
                                                    {"cycle"},
                                                    {"agents"},
                                                    {"dispatches", "ls"},
                                                    {"state", "show"},
                                                    {"why"},
                                                    {"plan"},
                                                    {"pause"},
                                                    {"resume"},
                                                    {"config", "show"},
                                                    {"config", "validate"},
                                                    {"doctor"},
                                                    {"status", "--watch"}};
  for (auto words : verbs) {
    INFO(words.front());
    words.insert(words.begin(), {"--config", "/nonexistent"});
    const auto r = home.run(words);
    CHECK(r.code == 4);
    CHECK_THAT(r.err + r.out, Contains("/nonexistent"));
    CHECK_THAT(r.err + r.out, Contains("next: "));
  }
}

TEST_CASE("every error says what to do next", "[e2e]") {
  const home_of_boyd home;
  const auto inside = home.file("boyd.yaml") + "/sub";
  const std::vector<std::vector<std::string>> commands{
      {"frob"},
      {"status", "extra"},
      {"--home", inside, "init", "--no-input"},
      {"--home", home.path() + "2", "--config", "/no/such/place/boyd.yaml", "init", "--no-input"},
      {"--home", "/proc/boyd", "init", "--no-input"},
      {"state", "show", "--path", "../x"},
      {"state", "show", "--path", "."},
      {"state", "show", "--at", "nope"},
      {"state", "diff", "nope"},
      {"dispatches", "show", "nope"},
      {"dispatches", "ls", "--limit", "0"},
      {"why", "--at", "2026-99-99T00:00:00Z"},
      {"why", "nobody"},
      {"plan", "--kernel", "nope"},
      {"completion", "csh"},
      {"--home", "", "status"}};
  for (const auto& words : commands) {
    const auto r = home.run(words);
    INFO(words.front() << " " << words.back() << "\n" << r.err);
    CHECK(r.code != 0);
    CHECK_THAT(r.err, Contains("\n  next: "));
  }
}

TEST_CASE("an earlier run of a dispatch is listed, and what it said is kept", "[e2e]") {
  const home_of_boyd home(R"yaml(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: counter
        prompt: count
        executor: {type: command, argv: ["sh", "-c", "echo x >> n; echo run $(wc -l < n)"]}
)yaml");
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto row = home.run({"dispatches", "ls", "--json"}).json()["items"][0];
  const auto id = row["dispatch_id"].get<std::string>();
  CHECK_THAT(home.run({"dispatches", "show", id}).out, !Contains("earlier attempts"));
  const auto status_of = [&](const std::string& which) {
    return home.run({"dispatches", "show", which, "--json"}).json()["dispatch"]["status"];
  };
  REQUIRE(home.run({"dispatches", "retry", id}).code == 0);
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto shown = home.run({"dispatches", "show", id}).out;
  CHECK_THAT(shown, Contains("earlier attempts\nATTEMPT  STARTED"));
  CHECK_THAT(shown, Contains("\n1        2"));
  CHECK_THAT(shown,
             Contains("result    ended with exit code 0; it made no statement of its own\n") &&
                 !Contains("verdicts") && !Contains("metadata"));
  CHECK_THAT(shown, Contains("--attempt N"));
  CHECK(home.run({"dispatches", "show", id, "--attempt", "1"}).out == "run 1\n");
  CHECK(home.run({"dispatches", "show", id, "--attempt", "1", "--json"}).json()["to"] == "done");
  // The name that it had before, which no help shows.
  CHECK(home.run({"dispatches", "show", id, "--run", "1"}).out == "run 1\n");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"dispatches", "show"}, {"logs"}, {"patches", "show"}, {"patches", "discard"}}) {
    auto help = words;
    help.emplace_back("--help");
    CHECK_THAT(home.run(help).out, Contains("--attempt N") && !Contains("--run"));
  }
  // The cycle does not wait for it: what the data ends too early runs again in a node.
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  REQUIRE(wait_until([&] { return status_of(id) == "done"; }));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
  const auto last =
      home.run({"dispatches", "show", id, "--json"}).json()["dispatch"]["fence"].dump();
  CHECK_THAT(home.run({"dispatches", "show", id, "--attempt", last}).out, Contains("run "));
  const auto none = home.run({"dispatches", "show", id, "--attempt", "999"});
  CHECK(none.code == 1);
  CHECK_THAT(none.err, Contains("next: existing attempts: 1, 2"));
  const auto first = home.run({"logs", id, "--attempt", "1"});
  CHECK(first.code == 0);
  CHECK(first.out == "run 1\n");
  CHECK_THAT(first.err, Contains("attempt 1 of run ") && Contains(": done, started ") &&
                            Contains("boyd: done after "));
  const auto unknown = home.run({"logs", id, "--run", "999"});
  CHECK(unknown.code == 1);
  CHECK(unknown.out.empty());
  CHECK_THAT(unknown.err, Contains("no such attempt of this run: 999"));
  // Listings stay small.
  const auto listed = home.run({"dispatches", "ls", "--json"}).json()["items"];
  for (const auto& item : listed)
    for (const auto& earlier : item["attempts"])
      CHECK_FALSE(earlier.contains("output"));
}

TEST_CASE("what cannot be written to standard output is a failure", "[e2e]") {
  const home_of_boyd home;
  for (const auto* verb : {"status", "version"}) {
    program full({"/bin/sh", "-c", "\"$0\" --home \"$1\" \"$2\" > /dev/full", boyd_binary(),
                  home.path(), verb});
    const auto r = full.finish();
    CHECK(r.code == 1);
    CHECK_THAT(r.err, Contains("cannot write to standard output"));
  }
}

TEST_CASE("a reader that is gone is no error", "[e2e]") {
  const home_of_boyd home;
  const temp_dir dir;
  for (const auto* verb : {"status", "version"}) {
    // A pipe whose only reader has closed it before anything is written.
    program unread({"/bin/sh", "-c",
                    "mkfifo \"$3\" && exec 5<>\"$3\" 6>\"$3\" 5<&- && "
                    "exec \"$0\" --home \"$1\" \"$2\" >&6",
                    boyd_binary(), home.path(), verb, dir.file(verb)});
    const auto r = unread.finish();
    CHECK(r.code == 128 + SIGPIPE);
    CHECK(r.err.empty());
  }
}

} // namespace boyd::command_line_test
