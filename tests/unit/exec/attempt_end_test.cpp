#include "attempt_bench.hpp"

namespace boyd::attempt_end_test {

using namespace boyd;
using namespace boyd::exec;

namespace {

using bench = test::attempt_bench;
using test::need;
using kind_t = config::requirement::kind_t;

} // namespace

TEST_CASE("the budget of time is policy's, not a time-out: it is not tried again") {
  bench b;
  b.options.timeout = 60s;
  SECTION("it ends first") {
    b.options.wall_budget = 30s;
    const auto& o = b.run({.hang = true});
    CHECK(o.execution == execution_verdict::failed);
    CHECK(o.failure == failure_class::policy);
    CHECK(o.error == "the run's budget of time, 30s, is used up (budget.run.wall)");
    CHECK(b.elapsed() == 30s);
    CHECK(b.warnings ==
          std::vector<std::string>{"the budget of the run (wall) is used up to 80 %"});
  }
  SECTION("the time-out ends first") {
    b.options.wall_budget = 2min;
    CHECK(b.run({.hang = true}).execution == execution_verdict::timed_out);
    CHECK(b.elapsed() == 60s);
  }
}

TEST_CASE("the deadline: TERM, then KILL when it is ignored") {
  bench b;
  b.options.timeout = 60s;
  SECTION("TERM is heard") {
    const auto& o = b.run({.hang = true});
    CHECK(o.execution == execution_verdict::timed_out);
    CHECK(o.failure == failure_class::transient);
    CHECK(o.error == "timed out after 1m");
    CHECK(b.elapsed() == 60s);
  }
  SECTION("TERM is ignored") {
    const auto& o = b.run({.hang = true, .ignore_term = true});
    CHECK(o.execution == execution_verdict::timed_out);
    CHECK(b.elapsed() == 60s + limits::term_grace);
  }
  SECTION("not even KILL helps") {
    const auto& o = b.run({.hang = true, .unkillable = true});
    CHECK(o.execution == execution_verdict::indeterminate);
    CHECK(o.failure == failure_class::environment);
    CHECK_FALSE(is_success(o));
    CHECK(b.elapsed() == 60s + limits::term_grace + kill_wait);
  }
  SECTION("a clean exit after TERM is still too late") {
    b.runner.define("agent", sim::sim_program{.duration = 62s, .ignore_term = true});
    const auto& o = b.run({.duration = 62s, .ignore_term = true});
    CHECK(o.exit_code == 0);
    CHECK(o.execution == execution_verdict::timed_out);
    CHECK_FALSE(is_success(o));
  }
}

TEST_CASE(
    "an end that nobody reported: the attempt failed by chance, and the verdict that was there "
    "stands") {
  bench b;
  const auto lose = [&](milliseconds after) {
    b.runner.define("agent", sim::sim_program{.hang = true, .ignore_term = true});
    b.begin();
    while (b.advance(b.begun + after)) {
    }
    b.perform(b.core->on_lost_exit(0));
    REQUIRE(b.finishes == 1);
    b.perform(b.core->on_exit(0, {}, b.clock->time)); // and then it comes after all
    b.perform(b.core->on_lost_exit(0));
    CHECK(b.finishes == 1);
    return *b.outcome;
  };
  SECTION("while it ran") {
    const auto o = lose(1s);
    CHECK(o.execution == execution_verdict::indeterminate);
    CHECK(o.failure == failure_class::transient);
    CHECK(o.error == "the program ended for an unknown reason");
  }
  SECTION("after its time was over") {
    b.options.timeout = 10s;
    const auto o = lose(11s);
    CHECK(o.execution == execution_verdict::timed_out);
    CHECK(o.error == "timed out after 10s");
  }
  SECTION("of a check") {
    b.options.require = {need(kind_t::command), need(kind_t::exit_zero)};
    b.options.require[0].argv = {"check"};
    process_spec check;
    check.argv = {"check"};
    b.options.checks = {check};
    b.runner.define("agent", sim::sim_program{});
    b.runner.define("check", sim::sim_program{.hang = true});
    b.begin();
    while (b.advance(b.begun + 1s)) {
    }
    b.perform(b.core->on_lost_exit(1));
    REQUIRE(b.outcome);
    CHECK(b.outcome->execution == execution_verdict::succeeded);
    CHECK(b.outcome->failure == failure_class::transient);
    CHECK(b.outcome->verification == verification_verdict::failed);
  }
}

TEST_CASE("no output for too long is a stall; bytes are progress") {
  bench b;
  b.options.timeout = 1h;
  b.options.no_output_timeout = 30s;
  SECTION("silent") {
    const auto& o = b.run({.output = "start\n", .hang = true});
    CHECK(o.execution == execution_verdict::stalled);
    CHECK(o.failure == failure_class::transient);
    CHECK(o.error == "no output for 30s");
    CHECK(b.elapsed() == 30s);
  }
  SECTION("talking") {
    const auto& o = b.run({.duration = 10min, .output_every = 20s});
    CHECK(o.execution == execution_verdict::succeeded);
  }
}

TEST_CASE("case 13 double-sigterm: in a hurry a process that ignores TERM has little time left") {
  for (const bool told_before : {false, true}) {
    bench b;
    b.runner.define("agent", sim::sim_program{.hang = true, .ignore_term = true});
    b.begin();
    REQUIRE_FALSE(b.advance(b.clock->time - 1ms));
    if (told_before)
      b.perform(b.core->cancel(cancel_reason::shutdown, b.clock->time));
    // A repeat gives it no more time.
    for (int i = 0; i < 3; ++i) {
      b.perform(b.core->cancel(cancel_reason::hurry, b.clock->time));
      b.clock->time += limits::hurried_grace / 4;
    }
    while (!b.outcome && b.advance()) {
    }
    REQUIRE(b.outcome.has_value());
    CHECK(b.outcome->execution == execution_verdict::cancelled);
    CHECK(b.outcome->error == "stopped by shutdown");
    CHECK(b.elapsed() == limits::hurried_grace);
    CHECK(b.runner.running() == 0);
  }
}

TEST_CASE("cancelling ends the process, then the attempt; the first reason counts") {
  for (const auto reason :
       {cancel_reason::by_operator, cancel_reason::shutdown, cancel_reason::next_cycle}) {
    bench b;
    b.runner.define("agent", sim::sim_program{.hang = true, .ignore_term = true});
    b.begin();
    REQUIRE_FALSE(b.advance(b.clock->time - 1ms));
    b.perform(b.core->cancel(reason, b.clock->time));
    b.perform(b.core->cancel(cancel_reason::by_operator, b.clock->time));
    while (!b.outcome && b.advance()) {
    }
    REQUIRE(b.outcome.has_value());
    CHECK(b.finishes == 1);
    CHECK(b.outcome->execution == execution_verdict::cancelled);
    CHECK(b.outcome->failure == failure_class::none);
    CHECK((b.outcome->error == "cancelled by an operator") ==
          (reason == cancel_reason::by_operator));
    CHECK(b.elapsed() == limits::term_grace);
    CHECK(b.runner.running() == 0);
  }
}

TEST_CASE("a process whose lease is lost is killed at once, whatever grace it had") {
  const sim::sim_program stubborn{.hang = true, .ignore_term = true};
  const auto ends_at_once = [](bench& b, const char* error) {
    const auto lost = b.clock->time;
    b.perform(b.core->cancel(cancel_reason::lease_lost, lost));
    b.perform(b.core->cancel(cancel_reason::lease_lost, lost));
    while (!b.outcome && b.advance()) {
    }
    REQUIRE(b.outcome.has_value());
    CHECK(b.clock->time == lost);
    CHECK(b.outcome->execution == execution_verdict::cancelled);
    CHECK(b.outcome->error == error);
    CHECK(b.runner.running() == 0);
  };
  bench b;
  b.runner.define("agent", stubborn);
  SECTION("while it runs") {
    b.begin();
    ends_at_once(b, "the lease was lost");
  }
  SECTION("an operator has cancelled it: that stays the reason") {
    b.begin();
    b.perform(b.core->cancel(cancel_reason::by_operator, b.clock->time));
    ends_at_once(b, "cancelled by an operator");
  }
  SECTION("its time was over") {
    b.options.timeout = 1s;
    b.begin();
    while (b.advance(b.begun + 2s)) {
    }
    REQUIRE(b.runner.running() == 1);
    ends_at_once(b, "the lease was lost");
  }
  SECTION("before it began") {
    b.core = std::make_unique<attempt_core>(b.options);
    ends_at_once(b, "the lease was lost");
    CHECK(b.runner.started() == 0);
  }
}

TEST_CASE("a check whose run has lost its lease is killed at once") {
  bench b;
  b.options.require = {{kind_t::command, {}, {"check"}}};
  process_spec check;
  check.argv = {"check"};
  b.options.checks = {check};
  b.runner.define("agent", sim::sim_program{});
  b.runner.define("check", sim::sim_program{.hang = true, .ignore_term = true});
  b.begin();
  while (b.advance(b.begun + 1s)) {
  }
  REQUIRE(b.runner.running() == 1);
  b.perform(b.core->cancel(cancel_reason::lease_lost, b.clock->time));
  const auto lost = b.clock->time;
  while (!b.outcome && b.advance()) {
  }
  REQUIRE(b.outcome.has_value());
  CHECK(b.clock->time == lost);
  CHECK(b.runner.running() == 0);
}

} // namespace boyd::attempt_end_test
