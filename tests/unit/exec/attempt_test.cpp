#include "attempt_bench.hpp"
#include "boyd/exec/exit_class.hpp"

#include <rapidcheck.h>

#include <cerrno>
#include <csignal>

namespace boyd::attempt_test {

using namespace boyd;
using namespace boyd::exec;

namespace {

using bench = test::attempt_bench;
using test::need;
using kind_t = config::requirement::kind_t;

} // namespace

TEST_CASE("a run that ends well") {
  bench b;
  const auto& o =
      b.run({.output = "\nreading\n  3 commits since yesterday  \n---\n", .duration = 1500ms});
  CHECK(is_success(o));
  CHECK(o.execution == execution_verdict::succeeded);
  CHECK(o.claim == claim_verdict::none);
  CHECK(o.verification == verification_verdict::none);
  CHECK(o.failure == failure_class::none);
  CHECK(o.exit_code == 0);
  CHECK(o.summary == "3 commits since yesterday");
  CHECK(o.output == "\nreading\n  3 commits since yesterday  \n---\n");
  CHECK(o.error.empty());
  CHECK(o.session_id == "kernel-a-1");
  CHECK(o.usage.wall_ms == 1500);
}

TEST_CASE("a silent success has a summary; a declared one wins") {
  CHECK(bench().run({}).summary == "completed");
  CHECK(bench().run({.output = "said\n{\"status\": \"done\"}\n"}).summary == "said");
  CHECK(
      bench().run({.output = "first\nBOYD_SUMMARY: two\nBOYD_SUMMARY:  three \nlast\n"}).summary ==
      "three");
}

TEST_CASE("exit codes and signals map to failure classes") {
  const auto failure = [](sim::sim_program p) {
    bench b;
    b.options.exit_classes = {{3, "transient"}, {4, "none"}, {75, "policy"}};
    return b.run(p).failure;
  };
  CHECK(failure({.exit_code = 1}) == failure_class::deterministic);
  CHECK(failure({.exit_code = 3}) == failure_class::transient);
  CHECK(failure({.exit_code = 4}) == failure_class::none);
  CHECK(failure({.exit_code = 75}) == failure_class::policy);
  CHECK(failure({.exit_code = 124}) == failure_class::transient);
  CHECK(failure({.exit_code = 127}) == failure_class::environment);
  CHECK(failure({.exit_code = 137}) == failure_class::transient);
  CHECK(failure({.exit_code = 139}) == failure_class::deterministic);
  CHECK(failure({.exit_signal = SIGKILL}) == failure_class::transient);
  CHECK(failure({.exit_signal = SIGSEGV}) == failure_class::deterministic);
  CHECK(failure({.start_errno = ENOENT}) == failure_class::environment);
  CHECK(failure({.start_errno = EMFILE}) == failure_class::transient);
  CHECK(failure({.start_errno = E2BIG}) == failure_class::deterministic);
  for (const int number : {EAGAIN, EMFILE, ENFILE, ENOMEM, ENOENT, ETXTBSY}) {
    bench b;
    CHECK(b.run({.start_errno = number}).no_room == (number != ENOENT && number != ETXTBSY));
  }
  process_exit own;
  own.started = false;
  own.start_errno = EMFILE;
  CHECK(is_shortage(own));
  own.own_limits = true; // its own `open_files`
  CHECK_FALSE(is_shortage(own));
  process_exit refused;
  refused.started = false;
  CHECK(classify_exit(refused, {}) == failure_class::transient);
  process_exit tempfail;
  tempfail.exit_code = 75;
  CHECK(classify_exit(tempfail, {}) == failure_class::transient);
}

TEST_CASE("a failure says why, with the last line of stderr") {
  bench b;
  const auto& o =
      b.run({.output = "working\n", .errors = "warning\nfatal: no remote\n\n", .exit_code = 2});
  CHECK(o.execution == execution_verdict::failed);
  CHECK(o.error == "exit code 2: fatal: no remote");
  CHECK(o.summary == "exit code 2: fatal: no remote");
  CHECK(o.output == "working\n--- stderr ---\nwarning\nfatal: no remote\n\n");
  CHECK(o.exit_code == 2);
}

TEST_CASE("the claim is the last line of stdout when it is JSON with a status") {
  const auto claim = [](const std::string& output) { return bench().run({.output = output}); };
  auto o = claim("text\n{\"status\":\"failed\",\"summary\":\"could not log in\"}\n");
  CHECK(o.execution == execution_verdict::succeeded);
  CHECK(o.claim == claim_verdict::failed);
  CHECK(o.failure == failure_class::deterministic);
  CHECK(o.summary == "could not log in");
  CHECK(o.error == "claims failure: could not log in");
  CHECK_FALSE(is_success(o));
  o = claim("{\"status\":\"failed\",\"failure_class\":\"transient\"}");
  CHECK(o.failure == failure_class::transient);
  o = claim("{\"status\":\"done\",\"summary\":\"all good\"}\n\n");
  CHECK(o.claim == claim_verdict::done);
  CHECK(o.summary == "all good");
  CHECK(is_success(o));
  CHECK(claim("{\"status\":\"none\"}").claim == claim_verdict::none);
  CHECK(claim("{\"status\":7}").claim == claim_verdict::none);
  CHECK(claim(std::string(5000, '[')).claim == claim_verdict::none);
}

TEST_CASE("requirements decide the verification") {
  bench b;
  SECTION("all hold") {
    b.options.require = {need(kind_t::exit_zero), need(kind_t::no_question),
                         need(kind_t::artifact, "out.md"), need(kind_t::schema, "/s.json"),
                         need(kind_t::command)};
    b.options.require.back().argv = {"check"};
    process_spec check;
    check.argv = {"check"};
    b.options.checks = {check};
    b.runner.define("check", sim::sim_program{.duration = 3s});
    b.files["/repo/out.md"] =
        file_info{.kind = file_kind::regular, .size = 3, .modified = b.clock->now() + 1s};
    b.texts["/s.json"] = std::string(R"({"type":"object","required":["a"]})");
    const auto& o = b.run({.output = "{\"a\":1}\n"});
    CHECK(o.error.empty());
    CHECK(o.verification == verification_verdict::passed);
    CHECK(is_success(o));
  }
  SECTION("each failure is named") {
    b.options.require = {need(kind_t::no_question), need(kind_t::artifact, "out.md"),
                         need(kind_t::schema, "/gone.json"), need(kind_t::command)};
    b.options.require.back().argv = {"check"};
    process_spec check;
    check.argv = {"check"};
    b.options.checks = {check};
    b.runner.define("check", sim::sim_program{.errors = "2 tests failed\n", .exit_code = 1});
    const auto& o = b.run({.output = "Shall I go on?\n"});
    CHECK(o.execution == execution_verdict::succeeded);
    CHECK(o.verification == verification_verdict::failed);
    CHECK(o.failure == failure_class::deterministic);
    CHECK(o.error ==
          "no_question: the output ends by asking: Shall I go on?; artifact out.md: does "
          "not exist; schema /gone.json: no such file; command check: exit code 1: 2 "
          "tests failed");
  }
  SECTION("a check that hangs is ended; a later attempt may pass") {
    b.options.timeout = 30s;
    b.options.require = {need(kind_t::command), need(kind_t::exit_zero)};
    process_spec check;
    check.argv = {"check"};
    b.options.checks = {check};
    b.runner.define("check", sim::sim_program{.hang = true, .ignore_term = true});
    const auto& o = b.run({});
    CHECK(o.verification == verification_verdict::failed);
    CHECK(o.failure == failure_class::transient);
    CHECK(b.elapsed() == minimum_check_time + limits::term_grace);
    CHECK(b.runner.running() == 0);
  }
  SECTION("nothing is checked after a failure, and nothing counts as verified") {
    b.options.require = {need(kind_t::command)};
    process_spec check;
    check.argv = {"check"};
    b.options.checks = {check};
    const auto& o = b.run({.exit_code = 1});
    CHECK(o.verification == verification_verdict::failed);
    CHECK(b.runner.started() == 1);
  }
}

TEST_CASE("a file's answer that comes after the deadline meets no other check") {
  attempt_options o;
  process_spec spec;
  spec.argv = {"agent"};
  o.work = spec;
  o.require = {need(kind_t::artifact, "/a"), need(kind_t::artifact, "/b")};
  attempt_core core(o);
  const steady_time start{1000ms};
  (void)core.begin(start);
  process_exit zero;
  zero.exit_code = 0;
  REQUIRE(std::holds_alternative<effect::stat_file>(core.on_exit(0, zero, start).front()));
  const auto ended = core.on_timer(timer_kind::deadline, start + o.timeout);
  REQUIRE(ended.size() == 1);
  const auto& outcome = *std::get<effect::finish>(ended.front()).outcome;
  CHECK(outcome.verification == verification_verdict::failed);
  CHECK(outcome.failure == failure_class::transient);
  CHECK(core.on_file_info(file_info{}, start + o.timeout).empty());
}

TEST_CASE("a scripted answer is an attempt like any other") {
  bench b;
  config::script_executor::answer a;
  a.output = "line one\nline two\n";
  a.delay = 2s;
  SECTION("success") {
    a.summary = "wrote two lines";
    b.options.work = a;
    b.options.require = {need(kind_t::exit_zero)};
    const auto& o = b.run({});
    CHECK(is_success(o));
    CHECK(o.summary == "wrote two lines");
    CHECK(o.output == a.output);
    CHECK(b.elapsed() == 2s);
  }
  SECTION("failure") {
    a.fail = "environment";
    b.options.work = a;
    const auto& o = b.run({});
    CHECK(o.execution == execution_verdict::failed);
    CHECK(o.failure == failure_class::environment);
  }
  SECTION("too slow") {
    b.options.timeout = 1s;
    b.options.work = a;
    const auto& o = b.run({});
    CHECK(o.execution == execution_verdict::timed_out);
    CHECK(b.elapsed() == 1s);
  }
  CHECK(b.runner.started() == 0);
}

TEST_CASE("output is valid UTF-8 within its cap, head and tail kept") {
  REQUIRE(rc::check("cap and count hold for any bytes in any pieces", [] {
    const auto pieces = *rc::gen::arbitrary<std::vector<std::string>>();
    const auto cap = *rc::gen::inRange<std::size_t>(2, 40);
    output_keeper kept(cap);
    std::string whole;
    for (const auto& piece : pieces) {
      kept.append(piece);
      whole += piece;
    }
    const auto shown = *rc::gen::inRange<std::size_t>(2, 50);
    const auto view = kept.render(shown);
    RC_ASSERT(kept.total() == whole.size());
    const std::size_t limit = std::min(shown, cap / 2 * 2);
    if (whole.size() <= limit) {
      RC_ASSERT(view.cut == 0u);
    } else {
      // A cut on a character's boundary may drop up to three bytes on each side.
      RC_ASSERT(view.cut >= whole.size() - limit);
      RC_ASSERT(view.cut <= whole.size() - limit + 6);
    }
  }));
  output_keeper kept(10);
  kept.append("0123456789abcdefghij");
  CHECK(kept.render(10).text == "01234\n… 10 bytes not stored …\nfghij");
  CHECK(kept.render(4).text == "01\n… 16 bytes not stored …\nij");
}

TEST_CASE("random events: one end at most, nothing after it, and an end always comes") {
  REQUIRE(rc::check("attempt_core", [] {
    bench b;
    b.options.timeout = milliseconds{*rc::gen::inRange(1, 5000)};
    b.options.no_output_timeout = milliseconds{*rc::gen::inRange(0, 3000)};
    sim::sim_program p;
    p.duration = milliseconds{*rc::gen::inRange(0, 9000)};
    p.hang = *rc::gen::arbitrary<bool>();
    p.ignore_term = *rc::gen::arbitrary<bool>();
    p.unkillable = *rc::gen::weightedElement<bool>({{9, false}, {1, true}});
    p.output_every = milliseconds{*rc::gen::elementOf(std::vector<int>{0, 100, 2500})};
    p.exit_code = *rc::gen::inRange(0, 3);
    b.options.require = {need(kind_t::exit_zero)};
    b.runner.define("agent", p);
    b.begin();
    const auto cancel_after = *rc::gen::inRange(0, 60);
    for (int i = 0; i < 5000 && b.advance(); ++i) {
      if (i == cancel_after)
        b.perform(b.core->cancel(cancel_reason::shutdown, b.clock->time));
      const auto kind = static_cast<timer_kind>(i % 5);
      b.perform(b.core->on_timer(kind, b.clock->time)); // stray ones change nothing
      if (b.outcome && b.runner.running() == 0)
        break;
    }
    RC_ASSERT(b.finishes == 1);
    RC_ASSERT(b.core->finished());
    if (!p.unkillable)
      RC_ASSERT(b.runner.running() == 0u);
    RC_ASSERT(!is_success(*b.outcome) || (p.exit_code == 0 && !p.hang));
  }));
}

} // namespace boyd::attempt_test
