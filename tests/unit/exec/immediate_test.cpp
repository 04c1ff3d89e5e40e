#include "boyd/exec/immediate.hpp"
#include "support/pch.hpp"

namespace boyd::immediate_test {

using namespace boyd;
using namespace boyd::exec;

namespace {

config::requirement need(config::requirement::kind_t kind) {
  config::requirement r;
  r.kind = kind;
  return r;
}

} // namespace

TEST_CASE("what is over in the moment it begins", "[exec][immediate]") {
  using kind_t = config::requirement::kind_t;
  config::script_executor::answer answer;
  CHECK(is_immediate(answer, {}));
  CHECK(is_immediate(answer, {need(kind_t::exit_zero), need(kind_t::no_question)}));
  CHECK_FALSE(is_immediate(answer, {need(kind_t::exit_zero), need(kind_t::artifact)}));
  CHECK_FALSE(is_immediate(answer, {need(kind_t::schema)}));
  CHECK_FALSE(is_immediate(answer, {need(kind_t::command)}));
  answer.delay = 1ms;
  CHECK_FALSE(is_immediate(answer, {}));
}

TEST_CASE("answers in the configuration come in turn, those of a file with a worker",
          "[exec][immediate]") {
  config::agent agent;
  CHECK(immediate_answer(agent, 0) == nullptr);
  config::script_executor script;
  script.answers.resize(2);
  script.answers[1].delay = 1ms;
  agent.run = script;
  const auto& answers = std::get<config::script_executor>(agent.run).answers;
  CHECK(immediate_answer(agent, 0) == &answers[0]);
  CHECK(immediate_answer(agent, 1) == nullptr);
  CHECK(immediate_answer(agent, 2) == &answers[0]);
  std::get<config::script_executor>(agent.run).file = "/answers.yaml";
  CHECK(immediate_answer(agent, 0) == nullptr);
}

TEST_CASE("an immediate attempt is judged like any other", "[exec][immediate]") {
  const steady_time now{1h};
  attempt_options options;
  config::script_executor::answer answer;
  answer.output = "all well\nShall I go on?\n";
  options.work = answer;
  options.session_id = "s-1";
  SECTION("without requirements") {
    const auto outcome = run_immediate(options, now);
    REQUIRE(outcome);
    CHECK(outcome->execution == execution_verdict::succeeded);
    CHECK(outcome->summary == "all well");
    CHECK(outcome->output == answer.output);
    CHECK(outcome->session_id == "s-1");
  }
  SECTION("with one that fails") {
    options.require.push_back(need(config::requirement::kind_t::no_question));
    const auto outcome = run_immediate(options, now);
    REQUIRE(outcome);
    CHECK(outcome->verification == verification_verdict::failed);
  }
  SECTION("a failure") {
    answer.fail = "transient";
    options.work = answer;
    const auto outcome = run_immediate(options, now);
    REQUIRE(outcome);
    CHECK(outcome->execution == execution_verdict::failed);
    CHECK(outcome->failure == failure_class::transient);
  }
  SECTION("one that is not immediate is refused") {
    answer.delay = 1s;
    options.work = answer;
    CHECK(run_immediate(options, now).error().code == errc::bug);
  }
}

} // namespace boyd::immediate_test
