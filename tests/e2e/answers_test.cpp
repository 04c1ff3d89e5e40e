#include "program.hpp"
#include "support/pch.hpp"

#include <csignal>
#include <filesystem>

namespace boyd::answers_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

/// What commands answer: with and without a node the same, in whole sentences, one line per cause.

namespace {

const char* with_secret = R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: caller
        prompt: call
        executor: {type: command, argv: ["echo", "called"], env: {TOKEN: "${RA_TOKEN}"}}
)";

const char* two_kernels = R"(version: 1
node: {chaos: true}
kernels:
  - kernel_id: one
    schedule: "0 0 1 1 *"
    agents:
      - {agent_id: a, prompt: x, executor: {type: command, argv: ["echo", "of one"]}}
      - {agent_id: b, prompt: x, executor: {type: command, argv: ["echo", "of one"]}}
  - kernel_id: two
    schedule: "0 0 1 1 *"
    agents:
      - {agent_id: a, prompt: x, executor: {type: command, argv: ["echo", "of two"]}}
)";

finished run_with(const home_of_boyd& home, std::vector<std::string> args,
                  const std::map<std::string, std::string>& environment) {
  args.insert(args.begin(), {"--home", home.path()});
  return boyd_run(args, environment);
}

/// The home's kernel loses most of its files, as after a person's mistake.
void lose_files(const home_of_boyd& home) {
  const auto kernel = home.file("kernel/default");
  for (int i = 0; i < 8; ++i)
    write_file(kernel + "/note" + std::to_string(i), "text");
  REQUIRE(home.run({"cycle"}).code == 0);
  for (int i = 0; i < 8; ++i)
    std::filesystem::remove(kernel + "/note" + std::to_string(i));
}

} // namespace

TEST_CASE("commands that only ask do without the node's secrets", "[e2e]") {
  const home_of_boyd home;
  home.write_configuration(with_secret);
  REQUIRE(run_with(home, {"cycle"}, {{"RA_TOKEN", "hunter22"}}).code == 0);
  for (const auto& words : std::vector<std::vector<std::string>>{{"status"},
                                                                 {"agents"},
                                                                 {"dispatches", "ls"},
                                                                 {"state", "log"},
                                                                 {"state", "show"},
                                                                 {"why"},
                                                                 {"pause", "--reason", "tired"},
                                                                 {"resume"}}) {
    INFO(words.front());
    const auto unset = run_with(home, words, {});
    CHECK(unset.code == 0);
    CHECK_THAT(unset.err, Contains("boyd: RA_TOKEN is not set here") &&
                              Contains("(" + home.file("boyd.yaml") + ")\n"));
    const auto set = run_with(home, words, {{"RA_TOKEN", "hunter22"}});
    CHECK(set.err.empty());
    if (words.front() != "pause" && words.front() != "resume" && words.front() != "why")
      CHECK(set.out == unset.out);
  }
  for (const auto* verb : {"plan", "cycle", "node", "config"}) {
    INFO(verb);
    const auto r = run_with(home, {verb}, {});
    CHECK(r.code == 4);
    CHECK_THAT(r.err, Contains("the environment variable RA_TOKEN is not set"));
  }
}

TEST_CASE("a variable that no text can stand for is still an error", "[e2e]") {
  const home_of_boyd home;
  home.write_configuration("version: 1\nnode: {max_concurrent: \"${HOW_MANY}\"}\n"
                           "kernels:\n  - agents: []\n");
  const auto r = home.run({"status"});
  CHECK(r.code == 4);
  CHECK_THAT(r.err, Contains("the environment variable HOW_MANY is not set"));
}

TEST_CASE(
    "doctor and status tell of a commit that is refused, and the next cycle of the one before",
    "[e2e]") {
  const home_of_boyd home;
  lose_files(home);
  const auto refused = home.run({"cycle"});
  CHECK(refused.code == 3);
  CHECK_THAT(refused.out, Contains("`git add -A && git commit`"));
  const auto doctor = home.run({"doctor"});
  CHECK(doctor.code == 1);
  CHECK_THAT(doctor.out, Contains("fail  kernel default: the commit would delete 8 of ") &&
                             Contains("next: restore them there with `git checkout HEAD -- .`"));
  // The remedy stands at the end of the line: it is never cut off.
  CHECK_THAT(home.run({"status"}).out,
             Contains("the latest cycle is recorded, but ") &&
                 Contains("or, if intended, commit by hand: `git add -A && git commit`"));
  program git({"/bin/sh", "-c", "cd \"$0\" && git -c safe.directory='*' checkout -q HEAD -- .",
               home.file("kernel/default")});
  REQUIRE(git.finish().code == 0);
  const auto mended = home.run({"cycle"});
  CHECK(mended.code == 0);
  CHECK_THAT(mended.out, Contains("\nbefore this cycle: ") && !Contains("error:"));
  CHECK(home.run({"doctor"}).code == 0);
}

TEST_CASE("doctor tells what the last cycle left when nothing else is wrong", "[e2e]") {
  const home_of_boyd home;
  lose_files(home);
  REQUIRE(home.run({"cycle"}).code == 3);
  for (int i = 0; i < 8; ++i)
    write_file(home.file("kernel/default/note" + std::to_string(i)), "text");
  const auto doctor = home.run({"doctor"});
  CHECK(doctor.code == 0);
  CHECK_THAT(doctor.out, Contains("warn  kernel default: the latest cycle is recorded, but "));
}

TEST_CASE("a nested repository is named without a node, too", "[e2e]") {
  const home_of_boyd home;
  REQUIRE(home.run({"cycle"}).code == 0);
  CHECK_THAT(home.run({"status"}).out, Contains("No problems."));
  program git({"/bin/sh", "-c", "git init -q \"$0\"", home.file("kernel/default/tool")});
  REQUIRE(git.finish().code == 0);
  const auto r = home.run({"status"});
  CHECK_THAT(r.out,
             Contains("needs attention\n  ! git_committer: " + home.file("kernel/default/tool") +
                      "/ is a separate git repository and is not versioned: "));
  CHECK_THAT(home.run({"doctor"}).out, Contains("/tool/ is a separate git repository"));
}

TEST_CASE("dispatches of several kernels name theirs, and the next page keeps the question",
          "[e2e]") {
  const home_of_boyd home(two_kernels);
  REQUIRE(home.run({"cycle", "--kernel", "one"}).code == 0);
  REQUIRE(home.run({"cycle", "--kernel", "two"}).code == 0);
  const auto all = home.run({"dispatches", "ls"}).out;
  CHECK_THAT(all,
             Contains("KERNEL  AGENT") && Contains("  one     a ") && Contains("  two     a "));
  const auto page =
      home.run({"dispatches", "ls", "--kernel", "one", "--status", "done", "--limit", "1"}).out;
  CHECK_THAT(page, Contains("more: boyd dispatches ls --kernel one --status done --limit 1 "
                            "--before "));
  const auto help = boyd_run({"dispatches", "ls", "--help"}).out;
  CHECK_THAT(help, Contains("Only this kernel (default: all kernels)"));
  const home_of_boyd single;
  REQUIRE(single.run({"cycle"}).code == 0);
  CHECK_THAT(single.run({"dispatches", "ls"}).out, !Contains("KERNEL"));
}

TEST_CASE("a refused cycle is one error object, and its hint names the kernel", "[e2e]") {
  const home_of_boyd home(two_kernels);
  REQUIRE(home.run({"pause", "--kernel", "two", "--reason", "later"}).code == 0);
  const auto r = home.run({"cycle", "--kernel", "two", "--json"});
  CHECK(r.code == 5);
  CHECK(r.json()["schema"] == "boyd.error/1");
  CHECK(r.json()["error"]["code"] == "locked");
  CHECK(r.json()["error"]["what"] == "no cycle was started: the kernel is paused (later)");
  CHECK(r.json()["error"]["next"] == "boyd resume --kernel two");
}

TEST_CASE("every verb's help names the options that it shares with all others", "[e2e]") {
  for (const auto& words : std::vector<std::vector<std::string>>{{"status"},
                                                                 {"agents"},
                                                                 {"dispatches", "ls"},
                                                                 {"cycle"},
                                                                 {"doctor"},
                                                                 {"config", "show"}}) {
    INFO(words.back());
    auto args = words;
    args.emplace_back("--help");
    CHECK_THAT(boyd_run(args).out,
               Contains("--home DIR ") && Contains("--config FILE ") && Contains("--json "));
  }
  CHECK_THAT(boyd_run({"version", "--help"}).out, Contains("--json ") && !Contains("--home"));
}

TEST_CASE("agents shows when each can run again", "[e2e]") {
  const home_of_boyd home(R"(version: 1
kernels:
  - kernel_id: default
    schedule: "* * * * *"
    agents:
      - {agent_id: free, prompt: x, executor: {type: command, argv: ["true"]}}
      - {agent_id: off, prompt: x, enabled: false, executor: {type: command, argv: ["true"]}}
      - {agent_id: held, prompt: x, executor: {type: command, argv: ["true"]}}
      - {agent_id: tired, prompt: x, cooldown: 12h, executor: {type: command, argv: ["true"]}}
)");
  REQUIRE(home.run({"cycle"}).code == 0);
  REQUIRE(home.run({"pause", "--agent", "held"}).code == 0);
  const auto body = home.run({"agents", "--json"}).json();
  const auto& items = body["items"];
  const auto next_slot = body["schedule"]["next_slot"].get<std::string>();
  CHECK(items[0]["next_run"] == next_slot);
  CHECK(items[1]["next_run"].is_null());
  CHECK(items[2]["next_run"].is_null());
  CHECK(items[3]["next_run"].get<std::string>() > next_slot);
  REQUIRE(home.run({"pause"}).code == 0);
  CHECK(home.run({"agents", "--json"}).json()["items"][0]["next_run"].is_null());
}

TEST_CASE("a store that is away is one line of status", "[e2e]") {
  const home_of_boyd home(two_kernels);
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: "));
  REQUIRE(home.run({"chaos", "inject", "store.apply", "--error", "--count", "0"}).code == 0);
  const auto out = home.run({"status"}).out;
  const auto lines = out.substr(0, out.find("\n\n"));
  CHECK_THAT(lines, Contains("  ! queue and last runs are unknown"));
  CHECK_THAT(lines, !Contains("degraded"));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("quiet hours refuse a cycle of the running node", "[e2e]") {
  const home_of_boyd home(R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    quiet_hours: [{schedule: "* * * * *", length: 2h, reason: hush}]
    agents:
      - {agent_id: a, prompt: x, executor: {type: command, argv: ["true"]}}
)");
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: "));
  const auto r = home.run({"cycle"});
  CHECK(r.code == 5);
  CHECK_THAT(r.err, Contains("no cycle was started: quiet hours until ") && Contains("(hush)"));
  CHECK(home.run({"dispatches", "ls", "--json"}).json()["items"].empty());
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("what ran before it was put back and cancelled is not called new", "[e2e]") {
  const home_of_boyd home;
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto id = home.run({"dispatches", "ls", "--json"}).json()["items"][0]["dispatch_id"];
  REQUIRE(home.run({"dispatches", "retry", id}).code == 0);
  REQUIRE(home.run({"dispatches", "cancel", id}).code == 0);
  const auto row = home.run({"dispatches", "show", id, "--json"}).json()["dispatch"];
  CHECK_THAT(row["error"].get<std::string>(),
             StartsWith("cancelled while waiting for another attempt"));
  CHECK(row["exit_code"].is_null());
}

TEST_CASE("the parts are the same ones with and without a node", "[e2e]") {
  const home_of_boyd home;
  const auto names = [&] {
    std::vector<std::string> all;
    const auto body = home.run({"actors", "ls", "--json"}).json();
    for (const auto& part : body["items"])
      all.push_back(part["name"]);
    return all;
  };
  const auto stopped = names();
  CHECK(stopped.back() == "process_host");
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: "));
  CHECK(names() == stopped);
  // Whoever has the home is told as what it is: a node, or a command that runs a cycle.
  const auto second = home.run({"node"});
  CHECK(second.code == 5);
  CHECK_THAT(second.err, Contains("another node or command uses this home: process "));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

} // namespace boyd::answers_test
