#include "program.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <filesystem>

namespace boyd::cycle_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

const char* two_agents = R"(version: 1
node: {max_concurrent: 4, log_level: info}
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: good
        prompt: "State: {STATE}"
        executor: {type: command, argv: ["sh", "-c", "echo fine"]}
        require: [exit_zero]
      - agent_id: bad
        prompt: fail
        executor: {type: command, argv: ["sh", "-c", "echo broken >&2; exit 3"]}
        retry: {max_attempts: 1}
        require: [exit_zero]
)";

bool has_all(const nlohmann::json& object, const std::vector<std::string>& keys) {
  for (const auto& k : keys)
    if (!object.contains(k)) {
      UNSCOPED_INFO("missing: " << k);
      return false;
    }
  return true;
}

/// One agent that must be interrupted the first time, and ends at once the next.
constexpr const char* slow_once = R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: slow
        prompt: wait
        executor:
          type: command
          argv: ["sh", "-c", "if [ -e ran ]; then echo again; else : > ran; sleep 600; fi"]
)";

} // namespace

TEST_CASE("three cycles, and every reading verb's contract", "[e2e]") {
  const home_of_boyd home(two_agents);
  nlohmann::json cycle;
  for (int i = 0; i < 3; ++i) {
    const auto r = home.run({"cycle", "--json"});
    INFO(r.err);
    REQUIRE(r.code == 3);
    cycle = r.json();
    REQUIRE(cycle.is_object());
    CHECK(r.err.empty());
  }
  CHECK(cycle["schema"] == "boyd.cycle/1");
  CHECK(has_all(cycle, {"cycle_id", "status", "dispatched", "succeeded", "failed", "failed_agents",
                        "agent_summary", "duration_ms", "error", "agents"}));
  CHECK(cycle["status"] == "partial_success");
  CHECK(cycle["dispatched"] == 2);
  CHECK(cycle["succeeded"] == 1);
  CHECK(cycle["failed_agents"] == nlohmann::json::array({"bad"}));
  const auto state = read_file(home.file("kernel/default/STATE.md"));
  CHECK_THAT(state, Contains("latest_cycle_id: " + cycle["cycle_id"].get<std::string>()));

  const auto status = home.run({"--json", "status"});
  CHECK(status.code == 0);
  const auto s = status.json();
  CHECK(s["schema"] == "boyd.status/1");
  CHECK(has_all(s, {"node", "kernels", "agents", "actors", "queue"}));
  CHECK(s["queue"]["done"] == 3);
  CHECK(s["queue"]["failed"] == 3);
  REQUIRE_FALSE(s["actors"].empty());
  for (const auto& a : s["actors"])
    CHECK(has_all(a, {"name", "state", "restarts", "last_error"}));

  const auto listed = home.run({"dispatches", "ls", "--json"}).json();
  REQUIRE(listed["items"].size() == 6);
  CHECK_FALSE(listed["items"][0].contains("output"));
  CHECK(has_all(listed["items"][0],
                {"dispatch_id", "kernel_id",   "cycle_id",         "agent_id", "prompt",
                 "priority",    "status",      "metadata",         "attempt",  "max_attempts",
                 "not_before",  "lease_owner", "lease_expires_at", "fence",    "created_at",
                 "started_at",  "finished_at", "session_id",       "summary",  "error",
                 "usage"}));
  const auto failed =
      home.run({"dispatches", "ls", "--status", "failed", "--limit", "1", "--json"}).json();
  CHECK(failed["items"].size() == 1);
  const auto id = failed["items"][0]["dispatch_id"].get<std::string>();
  const auto shown = home.run({"dispatches", "show", id, "--json"}).json();
  CHECK(shown["dispatch"]["agent_id"] == "bad");
  CHECK_THAT(shown["dispatch"]["output"].get<std::string>(), Contains("broken"));
  CHECK(home.run({"dispatches", "show", "00000000"}).code == 1);

  CHECK(home.run({"state", "show"}).out == state);
  CHECK(home.run({"state", "log", "--json"}).json()["items"].size() >= 4);
  CHECK_THAT(home.run({"state", "diff"}).out, Contains("+- latest_cycle_id"));
  // Nothing is promised that no node would keep.
  const std::string no_node = "no node is running, so n";
  CHECK_THAT(home.run({"agents"}).out, Contains(no_node) && !Contains("-01-01 00:00:00Z"));
  CHECK_THAT(home.run({"next"}).out, Contains(no_node) && Contains("-01-01 00:00:00Z"));
  CHECK_THAT(home.run({"status"}).out,
             Contains("start it with: boyd node") && !Contains("-01-01 00:00:00Z"));
  {
    program node(home.node());
    REQUIRE(node.wait_for_stderr("ready"));
    CHECK_THAT(home.run({"agents"}).out, !Contains(no_node) && Contains("-01-01 00:00:00Z"));
    CHECK_THAT(home.run({"next"}).out, !Contains(no_node));
    CHECK_THAT(home.run({"status"}).out,
               !Contains("start it with") && Contains("-01-01 00:00:00Z"));
    const auto stopped = home.run({"stop"});
    INFO(stopped.err);
    CHECK(stopped.code == 0);
    CHECK(node.finish().code == 0);
  }
  CHECK_FALSE(home.run({"why", "--json"}).json()["sentences"].empty());
  CHECK(home.run({"why", "bad"}).code == 0);
  CHECK(home.run({"why", "nobody"}).code == 1);
  const auto plan = home.run({"plan", "--json"}).json();
  CHECK(plan["decisions"].size() == 2);
  CHECK_THAT(home.run({"plan", "--prompts"}).out, Contains("State: # Kernel State"));
  CHECK(home.run({"agents", "--json"}).json()["items"].size() == 2);
}

TEST_CASE("a dry run fills in what a cycle does", "[e2e]") {
  const home_of_boyd home(R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    senses:
      - {name: weather, argv: ["echo", "clear skies"]}
    agents:
      - agent_id: reader
        prompt: "{MEMORY} | {SENSES}"
        executor: {type: command, argv: ["echo", "read"]}
)");
  write_file(home.file("kernel/default/SOUL.md"), "I am patient.\n");
  write_file(home.file("kernel/default/MEMORY.md"), "The mast is broken.\n");
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto ran = home.run({"dispatches", "ls", "--json"}).json()["items"][0];
  const auto prompt = ran["prompt"].get<std::string>();
  CHECK_THAT(prompt, Contains("I am patient."));
  CHECK_THAT(prompt, Contains("clear skies"));
  const auto plan = home.run({"plan", "--json"}).json();
  REQUIRE(plan["specs"].size() == 1);
  CHECK(plan["specs"][0]["prompt"] == prompt);
}

TEST_CASE("a refused commit is told by its cycle, the status and the next cycle's record",
          "[e2e]") {
  const home_of_boyd home(R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: tidy
        prompt: tidy up
        executor: {type: command, argv: ["sh", "-c", "rm -f note-*; echo tidied"]}
)");
  const auto kernel = home.file("kernel/default");
  home.run({"pause", "--agent", "tidy"});
  for (int i = 0; i < 40; ++i)
    write_file(kernel + "/note-" + std::to_string(i), "text\n");
  REQUIRE(home.run({"cycle"}).code == 0); // commits the notes
  home.run({"resume", "--agent", "tidy"});

  const auto first = home.run({"cycle", "--json"});
  INFO(first.out << first.err);
  CHECK(first.code == 3);
  const auto cycle = first.json();
  CHECK(cycle["status"] == "success");
  CHECK(cycle["error"] == "");
  REQUIRE_FALSE(cycle["problems"].empty());
  CHECK_THAT(cycle["problems"].dump(), Contains("git committer"));
  const auto status = home.run({"status"}).out;
  CHECK_THAT(status, Contains("needs attention") && Contains("git committer"));

  const auto next = home.run({"cycle"});
  INFO(next.out);
  CHECK(next.code == 3);
  CHECK_THAT(next.out, Contains("before this cycle: git committer") &&
                           Contains("recorded, but git committer"));
  CHECK_THAT(read_file(kernel + "/STATE.md"),
             Contains("latest_error: before this cycle: git committer"));

  // Most of the files are there again: the last error is told once more, and then it is over.
  for (int i = 0; i < 40; ++i)
    write_file(kernel + "/note-" + std::to_string(i), "text\n");
  home.run({"pause", "--agent", "tidy"});
  CHECK_THAT(home.run({"cycle"}).out, Contains("before this cycle: git committer"));
  CHECK(home.run({"cycle"}).code == 0);
  CHECK_THAT(read_file(kernel + "/STATE.md"), Contains("latest_error: (none)"));
  CHECK_THAT(home.run({"status"}).out, !Contains("git committer:"));
}

TEST_CASE("pause and resume hold over processes", "[e2e]") {
  const home_of_boyd home(two_agents);
  CHECK(home.run({"pause", "--agent", "bad", "--reason", "on holiday"}).code == 0);
  const auto cycle = home.run({"cycle", "--json"});
  CHECK(cycle.code == 0);
  CHECK(cycle.json()["dispatched"] == 1);
  CHECK_THAT(home.run({"why", "bad"}).out, Contains("on holiday"));
  CHECK_THAT(home.run({"status"}).out, Contains("agent default/bad is paused: on holiday"));
  CHECK(home.run({"resume", "--agent", "bad", "--json"}).json()["cleared"] == true);
  CHECK(home.run({"cycle", "--json"}).json()["dispatched"] == 2);
  CHECK(home.run({"pause"}).code == 0);
  CHECK_THAT(home.run({"status"}).out, Contains("kernel default is paused: no reason given"));
  CHECK_THAT(home.run({"why"}).out, Contains(": no reason given."));
  CHECK(home.run({"pause", "--agent", "nobody"}).code == 1);
}

TEST_CASE("an interrupted foreground cycle is resumed by the next", "[e2e]") {
  const home_of_boyd home(slow_once);
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  REQUIRE(cycle.wait_for_stderr("slow"));
  cycle.signal(SIGINT);
  const auto interrupted = cycle.finish();
  INFO(interrupted.err);
  CHECK(interrupted.code == 1);
  CHECK_THAT(interrupted.err, Contains("will be resumed at the next start"));
  const auto row = home.run({"dispatches", "ls", "--json"}).json()["items"][0];
  CHECK(row["status"] == "pending");
  const auto problem =
      "cycle " + row["cycle_id"].get<std::string>() + " was interrupted and will be resumed";
  CHECK_THAT(home.run({"status", "--json"}).json()["kernels"][0]["problem"].get<std::string>(),
             Contains(problem));
  CHECK_THAT(home.run({"status"}).out, Contains("! kernel default: " + problem.substr(0, 40)));
}

/// Kills a foreground cycle in the middle of its run; the ID of the cycle that it leaves.
std::string left_by_a_killed_cycle(const home_of_boyd& home) {
  program killed({boyd_binary(), "--home", home.path(), "cycle"});
  const auto ran = home.file("kernel/default/ran");
  REQUIRE(wait_until([&] { return std::filesystem::exists(ran); }));
  killed.signal(SIGKILL);
  killed.finish();
  const auto row = home.run({"dispatches", "ls", "--json"}).json()["items"][0];
  return row["cycle_id"].get<std::string>();
}

/// Checks that `next`, an answer of `cycle --json`, tells of the cycle `left` before its own.
void check_tells_of(const finished& next, const std::string& left) {
  INFO(next.out << next.err);
  CHECK(next.code == 0);
  const auto first = next.err.find("boyd: finishing interrupted cycle " + left + " first");
  const auto ended = next.err.find("boyd: interrupted cycle " + left + " ended: success");
  CHECK(first < ended);
  CHECK(ended < next.err.find("cycle " + next.json()["cycle_id"].get<std::string>() + " begins"));
  CHECK(next.json()["cycle_id"] != left);
  CHECK(next.json()["finished_first"] ==
        nlohmann::json::array({{{"cycle_id", left}, {"status", "success"}}}));
}

TEST_CASE("a cycle behind one that was killed tells of it", "[e2e]") {
  const home_of_boyd home(slow_once);
  const auto left = left_by_a_killed_cycle(home);
  check_tells_of(home.run({"cycle", "--json"}), left);
  CHECK_FALSE(home.run({"cycle", "--json"}).json().contains("finished_first"));
}

TEST_CASE("a cycle tells of a killed one that ended before it was asked for", "[e2e]") {
  const home_of_boyd home(slow_once);
  const auto left = left_by_a_killed_cycle(home);
  // The request for the new cycle comes late, as on a slow machine: the left one is over by then.
  const auto next = boyd_run({"--home", home.path(), "cycle", "--json"},
                             {{"BOYD_FAULTS", "kernel.request=delay,delay=2s,count=1"}});
  check_tells_of(next, left);
}

TEST_CASE("the time that an answer prints finds what it told of", "[e2e]") {
  const home_of_boyd home(two_agents);
  const auto before = read_file(home.file("kernel/default/STATE.md"));
  REQUIRE(home.run({"cycle"}).code == 3);
  const auto told = home.run({"why", "--json"}).json();
  const auto when = told["slot"]["scheduled_at"].get<std::string>();
  const auto again = home.run({"why", "--at", when, "--json"}).json();
  CHECK(again["slot"] == told["slot"]);
  CHECK(again["decisions"].size() == 2);
  const auto newest = home.run({"state", "log", "--json"}).json()["items"][0];
  const auto shown = home.run({"state", "show", "--at", newest["time"].get<std::string>()}).out;
  CHECK(shown == read_file(home.file("kernel/default/STATE.md")));
  CHECK(shown != before);
}

TEST_CASE("another command that holds the home is waited for", "[e2e]") {
  const home_of_boyd home(two_agents);
  std::vector<std::unique_ptr<program>> all;
  for (int i = 0; i < 4; ++i)
    all.push_back(std::make_unique<program>(
        std::vector<std::string>{boyd_binary(), "--home", home.path(), "status", "--json"}));
  for (auto& p : all) {
    const auto r = p->finish();
    INFO(r.err);
    CHECK(r.code == 0);
    CHECK(r.json()["schema"] == "boyd.status/1");
  }
}

TEST_CASE("case W10: a cycle by hand looks at inputs whose check rests", "[e2e]") {
  const home_of_boyd home(R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: mail
        prompt: read
        executor: {type: command, argv: ["true"]}
        wake: {inputs: [inbox]}
)");
  const auto inbox = home.file("../inbox"); // beside the file that the home was made from
  std::filesystem::create_directories(inbox);
  const auto dispatched = [&] {
    const auto r = home.run({"cycle", "--json"});
    INFO(r.err);
    CHECK(r.code == 0);
    return r.json()["dispatched"].get<int>();
  };
  CHECK(dispatched() == 1); // the first look
  CHECK(dispatched() == 0);
  write_file(inbox + "/m", "x");
  CHECK(dispatched() == 1);
  CHECK(dispatched() == 0);
  CHECK(dispatched() == 0);
  write_file(inbox + "/m", "y");
  CHECK(dispatched() == 1);
}

} // namespace boyd::cycle_test
