#include "program.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <filesystem>

// What a foreground cycle runs beside its own plan when no node does.

namespace boyd::cycle_others_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// `shell`: what the agent "worker" does; a second kernel has an agent of its own.
std::string with_worker(const std::string& shell) {
  return R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: worker
        prompt: work
        executor: {type: command, shell: ")" +
         shell + R"("}
        require: [exit_zero]
        retry: {max_attempts: 1}
  - kernel_id: second
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: quiet
        prompt: rest
        executor: {type: command, argv: ["true"]}
)";
}

/// Fails the first time; then it takes longer than the cycle that finds it pending.
constexpr const char* fails_once = "if [ -e ran ]; then sleep 3; echo again >> ends; else "
                                   ": > ran; exit 3; fi";

/// A failed dispatch of the worker that was asked for again; its ID.
std::string retried(const home_of_boyd& home) {
  CHECK(home.run({"cycle"}).code == 1);
  const auto row = home.run({"dispatches", "ls", "--json"}).json()["items"][0];
  const auto id = row["dispatch_id"].get<std::string>();
  REQUIRE(home.run({"dispatches", "retry", id}).code == 0);
  return id;
}

json dispatch(const home_of_boyd& home, const std::string& id) {
  return home.run({"dispatches", "show", id, "--json"}).json()["dispatch"];
}

} // namespace

TEST_CASE("case W1: a foreground cycle waits for a retried dispatch of an earlier one", "[e2e]") {
  const home_of_boyd home(with_worker(fails_once));
  const auto id = retried(home);
  const auto r = home.run({"cycle", "--json"});
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  const auto cycle = r.json();
  CHECK(cycle["status"] == "success");
  REQUIRE(cycle["also_ran"].size() == 1);
  CHECK(cycle["also_ran"][0]["dispatch_id"] == id);
  CHECK(cycle["also_ran"][0]["status"] == "done");
  const auto row = dispatch(home, id);
  CHECK(row["status"] == "done");
  CHECK(row["fence"].get<int>() == 2); // once by each cycle
  CHECK(read_file(home.file("kernel/default/ends")) == "again\n");
  CHECK_FALSE(home.run({"cycle", "--json"}).json().contains("also_ran"));
}

TEST_CASE("case W1: a cycle of another kernel does the same, and says when that failed", "[e2e]") {
  const home_of_boyd home(with_worker("echo broken >&2; sleep 1; exit 3"));
  const auto id = retried(home);
  const auto r = home.run({"cycle", "--kernel", "second"});
  INFO(r.out << r.err);
  CHECK(r.code == 3);
  CHECK_THAT(r.out, Contains("success") && Contains("ALSO RAN") && Contains("worker") &&
                        Contains("failed"));
  CHECK(dispatch(home, id)["status"] == "failed");
}

TEST_CASE("case W1: a refused cycle cuts nothing short that has begun", "[e2e]") {
  const home_of_boyd home(with_worker(fails_once));
  const auto id = retried(home);
  REQUIRE(home.run({"pause", "--reason", "holiday"}).code == 0);
  const auto r = home.run({"cycle"});
  INFO(r.out << r.err);
  CHECK(r.code == 5);
  const auto row = dispatch(home, id);
  // It has not begun, or ran to its end.
  CHECK((row["status"] == "done" || (row["status"] == "pending" && row["fence"] == 1)));
}

TEST_CASE("case W1: an attempt that outlives its cycle's deadline is waited for", "[e2e]") {
  auto yaml = with_worker("sleep 4; echo late >> ends");
  yaml.insert(yaml.find("    agents:"), "    cycle_deadline: 1s\n");
  const home_of_boyd home(yaml);
  const auto r = home.run({"cycle", "--json"});
  INFO(r.out << r.err);
  CHECK(r.code == 3);
  CHECK(r.json()["also_ran"][0]["status"] == "done");
  CHECK(read_file(home.file("kernel/default/ends")) == "late\n");
}

TEST_CASE("case W1: an interruption gives back what runs beside the cycle", "[e2e]") {
  const home_of_boyd home(with_worker("if [ -e ran ]; then : > begun; sleep 600; else : > ran; "
                                      "exit 3; fi"));
  const auto id = retried(home);
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  REQUIRE(wait_until([&] { return std::filesystem::exists(home.file("kernel/default/begun")); }));
  REQUIRE(cycle.wait_for_stderr("waiting for 1 other"));
  cycle.signal(SIGINT);
  const auto ended = cycle.finish();
  INFO(ended.err);
  CHECK(ended.code >= 0);
  CHECK(ended.code != 0);
  CHECK(dispatch(home, id)["status"] == "pending");
}

} // namespace boyd::cycle_others_test
