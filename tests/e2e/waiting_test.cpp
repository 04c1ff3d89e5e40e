#include "approvals_lab.hpp"
#include "on_terminal.hpp"
#include "program.hpp"
#include "support/gate.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"

#include <chrono>
#include <filesystem>
#include <optional>

// What a command says while it waits: lines in a pipe, one that is rewritten on a terminal.

namespace boyd::waiting_test {

using namespace boyd::test;
using approvals_lab::wants;
using approvals_lab::yaml_of;
using Catch::Matchers::Contains;

namespace {

/// Ends when `go` is there.
const char* slow_agents = R"(version: 1
kernels:
  - schedule: "0 0 1 1 *"
    agents:
      - agent_id: slow
        prompt: wait
        executor: {type: command, argv: [sh, -c, "until [ -e go ]; do sleep 0.05; done; echo ended"]}
      - agent_id: flaky
        prompt: fail once
        executor: {type: command, argv: [sh, -c, "[ -e again ] || { touch again; exit 75; }"]}
        retry: {max_attempts: 2, base: 10ms, cap: 20ms}
)";

std::vector<std::string> argv_of(const home_of_boyd& home, std::vector<std::string> args) {
  args.insert(args.begin(), {"--home", home.path()});
  return args;
}

void let_go(const home_of_boyd& home) {
  write_file(home.file("kernel/default/go"), "");
}

/// The turns of a run, and an approval with the command that decides it.
void watch_model(const home_of_boyd& home) {
  auto argv = argv_of(home, {"run", "writer"});
  argv.insert(argv.begin(), boyd_binary());
  program run(argv);
  REQUIRE(run.wait_for_stderr("run writer started\n"));
  REQUIRE(run.wait_for_stderr("run writer turn 1: asking test-model (local)"));
  const auto before = "boyd --home " + home.path() + " approvals approve ";
  REQUIRE(run.wait_for_stderr("wait writer needs approval: " + before));
  REQUIRE(run.wait_for_stderr("\n"));
  const auto& text = run.stderr_now();
  const auto at = text.find(before) + before.size();
  const auto id = text.substr(at, text.find('\n', at) - at);
  CHECK(home.run({"approvals", "approve", id}).code == 0);
  const auto ended = run.finish();
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK_THAT(ended.err, Contains("run writer turn 1: run_command") &&
                            Contains("run writer turn 2: asking test-model (local)"));
}

} // namespace

TEST_CASE("waiting: turns, tools and approvals are told in a pipe", "[e2e][waiting]") {
  model_endpoint endpoint;
  for (int i = 0; i < 2; ++i) {
    endpoint.then(wants("run_command", approvals_lab::effect));
    endpoint.then(stream_answer("Done."));
  }
  const home_of_boyd home(yaml_of(endpoint));
  watch_model(home);
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  watch_model(home);
}

TEST_CASE("waiting: a retry is told with its reason, nothing with --json or --quiet",
          "[e2e][waiting]") {
  const home_of_boyd home(slow_agents);
  const auto told = home.run({"run", "flaky"});
  INFO(told.err);
  CHECK(told.code == 0);
  CHECK_THAT(told.err, Contains("wait flaky failed, next attempt in ") &&
                           Contains("run flaky attempt 2 of 2\n"));
  for (const char* option : {"--json", "--quiet"}) {
    std::filesystem::remove(home.file("kernel/default/again"));
    const auto silent = home.run({"run", "flaky", option});
    CHECK(silent.code == 0);
    CHECK(silent.err.empty());
  }
}

TEST_CASE("waiting: a terminal has one line with what is waited for, and how long",
          "[e2e][waiting]") {
  const home_of_boyd home(slow_agents);
  std::optional<program> node;
  for (const std::string verb : {"run", "cycle"}) {
    CAPTURE(verb);
    std::filesystem::remove(home.file("kernel/default/go"));
    auto args = argv_of(home, {verb});
    if (verb == "run")
      args.emplace_back("slow");
    on_terminal wait(args);
    REQUIRE(wait.wait_for("\r\x1b[K"));
    REQUIRE(wait.wait_for("slow: started"));
    REQUIRE(wait.wait_for(" · "));
    // The next second overwrites it.
    REQUIRE(wait.wait_for("\r\x1b[K"));
    REQUIRE(wait.wait_for("slow: started"));
    let_go(home);
    CHECK(wait.finish() == 0);
    // What stays on the screen: no step, and each line from its begin.
    const auto& text = wait.text();
    const auto last = text.rfind(" · ");
    CHECK(text.find("\r\x1b[K", last) != std::string::npos);
    CHECK_THAT(text, Contains("done") && !Contains("run slow"));
    std::istringstream parts(text);
    for (std::string line; std::getline(parts, line, '\r');) {
      INFO(line);
      if (line.find(" · ") != std::string::npos)
        CHECK(width_of(line) < columns);
    }
    if (!node) {
      node.emplace(home.node());
      REQUIRE(node->wait_for_stderr("ready: node "));
    }
  }
  // What takes less than a second has no lines but its output and its end.
  const auto begin = std::chrono::steady_clock::now();
  on_terminal brief(argv_of(home, {"run", "slow"}));
  CHECK(brief.finish() == 0);
  CHECK_THAT(brief.text(), Contains("ended\r\n") && Contains(": done\r\n"));
  if (std::chrono::steady_clock::now() - begin < std::chrono::seconds{1})
    CHECK_THAT(brief.text(), !Contains("perceive") && !Contains("record"));
  on_terminal quiet(argv_of(home, {"--quiet", "run", "slow"}));
  CHECK(quiet.finish() == 0);
  CHECK(quiet.text() == "ended\r\n");
}

} // namespace boyd::waiting_test
