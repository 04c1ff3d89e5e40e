#include "attempt_bench.hpp"
#include "support.hpp"

#include <csignal>

namespace boyd::attempt_test {

using namespace boyd;
using namespace boyd::agent_cli_testing;

namespace {

using bench = attempt_bench;
using v = execution_verdict;
using f = failure_class;

} // namespace

TEST_CASE("the final event's answer is the result", "[agent_cli]") {
  bench b("claude");
  const auto& o = b.end("claude_success", 0);
  CHECK(o.execution == v::succeeded);
  CHECK(o.summary == "Done: hello.txt is written.");
  CHECK(o.output == "Done: hello.txt is written.");
  CHECK(o.usage.provider == "claude");
  CHECK(o.usage.input_tokens == 320);
  CHECK(o.usage.cost_microusd == 1374);
  CHECK(o.usage.session_id == "9344e76b-949a-40ba-953c-5100146a9cae");
}

TEST_CASE("without a final event a run is indeterminate, whatever the exit code", "[agent_cli]") {
  auto text = transcript("claude_success");
  text.pop_back();
  text.resize(text.rfind('\n') + 1);
  for (const int code : {0, 1, 3}) {
    bench b("claude");
    b.print(text);
    b.print("half a line");
    b.complain("Segmentation fault\n");
    const auto& o = b.exit(code);
    INFO(code << ": " << o.error);
    CHECK(o.execution == v::indeterminate);
    CHECK_FALSE(is_success(o));
    CHECK(o.error.starts_with("no final event: exit code " + std::to_string(code)));
    CHECK(o.error.find("Segmentation fault") != std::string::npos);
    CHECK(o.error.find("not JSON: 1") != std::string::npos);
    CHECK(o.failure == (code == 0 ? f::transient : f::deterministic));
    CHECK(o.output.find("\"type\":\"system\"") != std::string::npos); // to look at
  }
  bench silent("codex");
  CHECK(silent.exit(0).execution == v::indeterminate);
}

TEST_CASE("a failure that events tell beats exit code 0", "[agent_cli]") {
  bench b("codex");
  const auto& o = b.end("codex_error", 0);
  CHECK(o.execution == v::failed);
  CHECK(o.failure == f::deterministic);
  CHECK(o.error.find("the local endpoint refuses") != std::string::npos);
  bench claude("claude");
  CHECK(claude.end("claude_error", 0).execution == v::failed);
  bench key("codex");
  CHECK(key.end("codex_unauthorized", 1).failure == f::environment);
  bench gemini("gemini"); // its exit code says more than its event
  CHECK(gemini.end("gemini_error", 41).failure == f::environment);
}

TEST_CASE("opencode: what would have to be asked for is rejected, and ends the run",
          "[agent_cli]") {
  bench b("opencode");
  const auto& o = b.end("opencode_rejected", 0);
  CHECK(o.execution == v::failed);
  CHECK(o.failure == f::policy);
  CHECK(o.error.find("rejected permission") != std::string::npos);
}

TEST_CASE("what was too long for its model may be tried again, with less", "[agent_cli]") {
  auto told = transcript("codex_error");
  const std::string refusal = "the local endpoint refuses";
  for (auto at = told.find(refusal); at != std::string::npos; at = told.find(refusal))
    told.replace(at, refusal.size(), "Your input exceeds the context window of this model");
  bench by_event("codex");
  by_event.print(told);
  const auto& o = by_event.exit(0);
  INFO(o.error);
  CHECK(o.failure == f::transient);
  CHECK(o.usage.too_long);
  bench silent("claude");
  silent.complain("API Error: 400 Prompt is too long: 200001 tokens\n");
  const auto& s = silent.exit(1);
  CHECK(s.failure == f::transient);
  CHECK(s.usage.too_long);
  bench other("codex");
  CHECK_FALSE(other.end("codex_error", 0).usage.too_long);
}

TEST_CASE("denials fail the run, or are told beside it", "[agent_cli]") {
  bench strict("claude");
  const auto& o = strict.end("claude_denied", 0);
  CHECK(o.execution == v::failed);
  CHECK(o.failure == f::policy);
  CHECK(o.error == "denied: Bash");
  bench lax("claude", false);
  const auto& told = lax.end("claude_denied", 0);
  CHECK(told.execution == v::succeeded);
  CHECK(told.usage.denied == 1);
  CHECK(told.usage.denials == std::vector<std::string>{"Bash"});
}

TEST_CASE("a program that does not begin has stalled", "[agent_cli]") {
  bench b("claude");
  b.complain("connecting\n");
  b.print("no event\n");
  b.wait(59s);
  CHECK(b.signals.empty());
  b.wait(2s);
  CHECK(b.signals == std::vector<int>{SIGTERM});
  const auto& o = b.exit(-1, SIGTERM);
  CHECK(o.execution == v::stalled);
  CHECK(o.failure == f::transient);
  CHECK(o.error == "no first event within 1m: connecting");
}

TEST_CASE("only events that show progress hold off the watchdog", "[agent_cli]") {
  bench b("claude");
  b.print("{\"type\":\"system\",\"subtype\":\"init\"}\n");
  b.wait(90s);
  b.print("{\"type\":\"assistant\"}\n");
  b.wait(110s);
  CHECK(b.signals.empty());
  b.print("{\"type\":\"system\",\"subtype\":\"api_retry\"}\n");
  b.complain("still trying\n");
  b.wait(11s);
  CHECK(b.signals == std::vector<int>{SIGTERM});
  CHECK(b.exit(-1, SIGTERM).execution == v::stalled);
}

TEST_CASE("a program that stays after its final event is ended and judged by it", "[agent_cli]") {
  bench b("claude");
  b.wait(50s);
  b.print(transcript("claude_success"));
  b.wait(29s);
  CHECK(b.signals.empty());
  b.wait(2s);
  CHECK(b.signals == std::vector<int>{SIGTERM});
  const auto& o = b.exit(-1, SIGTERM);
  CHECK(o.execution == v::succeeded);
  CHECK(o.summary == "Done: hello.txt is written.");
  bench late("claude"); // its time ends meanwhile
  late.print("{\"type\":\"system\"}\n");
  for (int i = 0; i < 11; ++i) {
    late.wait(54s);
    late.print("{\"type\":\"assistant\"}\n");
  }
  late.print(transcript("claude_success"));
  late.wait(7s);
  CHECK(late.signals == std::vector<int>{SIGTERM});
  CHECK(late.exit(0).execution == v::succeeded);
}

TEST_CASE("a run whose program tells of more than its budget has failed by policy", "[agent_cli]") {
  bench told("claude");
  const auto usage = told.end("claude_success", 0).usage;
  const int turns = static_cast<int>(usage.turns.value());
  const auto tokens = usage.input_tokens.value() + usage.output_tokens.value();
  SECTION("as much as the budget is well, and warned of") {
    bench b("claude", true, {.tokens = tokens, .cost = 1374, .turns = turns});
    CHECK(b.end("claude_success", 0).execution == v::succeeded);
    CHECK(b.warnings ==
          std::vector<std::string>{"the budget of the run (turns) is used up to 100 %",
                                   "the budget of the run (tokens) is used up to 100 %",
                                   "the budget of the run (cost) is used up to 100 %"});
  }
  SECTION("less than four fifths is no word") {
    bench b("claude", true, {.tokens = tokens * 2, .cost = 2748, .turns = turns * 2});
    CHECK(b.end("claude_success", 0).execution == v::succeeded);
    CHECK(b.warnings.empty());
  }
  const auto passed = [](const config::budget_limit& budget) {
    bench b("claude", true, budget);
    const auto& o = b.end("claude_success", 0);
    CHECK(b.signals.empty()); // its end was told: nothing is left to stop
    CHECK(o.execution == v::failed);
    CHECK(o.failure == f::policy);
    CHECK(o.summary == o.error);
    return o.error;
  };
  SECTION("more is not") {
    CHECK(passed({.turns = turns - 1}) == "the run's budget of " + std::to_string(turns - 1) +
                                              " turns is used up; the program reported " +
                                              std::to_string(turns) + " (budget.run.turns)");
    CHECK(passed({.tokens = tokens - 1}).find("(budget.run.tokens)") != std::string::npos);
    CHECK(passed({.cost = 1000}) == "the run's budget of 0.001 dollars is used up; the program "
                                    "reported 0.001374 (budget.run.cost)");
  }
}

TEST_CASE("a program that tells its figures on the way is stopped when they pass its budget",
          "[agent_cli]") {
  const std::string step = R"({"type":"step_finish","part":{"reason":"tool-calls","cost":0.5,)"
                           R"("tokens":{"input":10,"output":1}}})"
                           "\n";
  bench b("opencode", true, {.cost = 2'000'000});
  for (int i = 0; i < 3; ++i)
    b.print(step);
  CHECK(b.warnings.empty());
  b.print(step);
  CHECK(b.warnings == std::vector<std::string>{"the budget of the run (cost) is used up to 100 %"});
  CHECK(b.signals.empty());
  b.print(step);
  b.print(step);
  CHECK(b.warnings.size() == 1);
  CHECK(b.signals == std::vector<int>{SIGTERM});
  const auto& o = b.exit(0, SIGTERM);
  CHECK(o.execution == v::failed);
  CHECK(o.failure == f::policy);
  CHECK(o.error ==
        "the run's budget of 2.00 dollars is used up; the program reported 2.50 (budget.run.cost)");
}

TEST_CASE("a program whose budget of time is over is ended", "[agent_cli]") {
  bench b("claude", true, {.wall = 10s});
  b.print("{\"type\":\"system\"}\n");
  b.wait(8s);
  CHECK(b.warnings == std::vector<std::string>{"the budget of the run (wall) is used up to 80 %"});
  b.wait(2s);
  CHECK(b.signals == std::vector<int>{SIGTERM});
  const auto& o = b.exit(0, SIGTERM);
  CHECK(o.failure == f::policy);
  CHECK(o.error.find("(budget.run.wall)") != std::string::npos);
}

TEST_CASE("plain text: the exit code judges", "[agent_cli]") {
  config::cli_adapter plain;
  plain.parser = config::cli_adapter::parser_t::text;
  plain.exit_codes = {{3, "environment"}};
  bench good(plain);
  good.print("hello\n");
  CHECK(good.exit(0).summary == "hello");
  CHECK(good.outcome->execution == v::succeeded);
  bench bad(plain);
  CHECK(bad.exit(3).failure == f::environment);
  CHECK(bad.outcome->error == "exit code 3");
}

TEST_CASE("a program that cannot start is told as ever", "[agent_cli]") {
  bench b("claude");
  process_exit e;
  e.started = false;
  e.start_error = "exec claude: No such file or directory";
  e.start_errno = ENOENT;
  b.take(b.core.on_exit(0, e, b.now));
  REQUIRE(b.outcome);
  CHECK(b.outcome->execution == v::failed);
  CHECK(b.outcome->failure == f::environment);
}

} // namespace boyd::attempt_test
