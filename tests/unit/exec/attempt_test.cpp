#include "boyd/exec/attempt.hpp"
#include "boyd/exec/exit_class.hpp"
#include "support/pch.hpp"
#include "support/sim/processes.hpp"

#include <rapidcheck.h>

#include <cerrno>
#include <csignal>

namespace boyd::attempt_test {

using namespace boyd;
using namespace boyd::exec;

namespace {

struct manual_clock : clock_port {
  steady_time time{1'000'000ms};
  utc_time now() const override { return utc_time{time.time_since_epoch()}; }
  steady_time steady() const override { return time; }
};

/// Carries out an attempt's effects on the simulated runner: what the executor actor does.
struct bench {
  std::shared_ptr<manual_clock> clock = std::make_shared<manual_clock>();
  sim::sim_process_runner runner{clock};
  attempt_options options;
  std::unique_ptr<attempt_core> core;
  std::map<timer_kind, steady_time> timers;
  std::map<run_index, process_handle> handles;
  std::map<std::string, result<file_info>> files;
  std::map<std::string, result<std::string>> texts;
  std::optional<run_outcome> outcome;
  std::vector<std::string> warnings;
  steady_time begun{};
  int finishes = 0;

  bench() {
    process_spec spec;
    spec.argv = {"agent"};
    options.work = spec;
    options.timeout = 10min;
    options.base_directory = "/repo";
    options.session_id = "kernel-a-1";
  }

  void perform(attempt_effects effects) {
    for (auto& e : effects) {
      if (auto* s = std::get_if<effect::start_process>(&e)) {
        const auto run = s->run;
        handles[run] = *runner.start(s->spec, {[this, run](output_stream o, std::string_view b) {
                                                 core->on_output(run, o, b, clock->time);
                                               },
                                               [this, run](const process_exit& x) {
                                                 perform(core->on_exit(run, x, clock->time));
                                               }});
      } else if (auto* k = std::get_if<effect::signal_process>(&e)) {
        runner.signal(handles.at(k->run), k->signal);
      } else if (auto* t = std::get_if<effect::arm_timer>(&e)) {
        timers[t->kind] = t->at;
      } else if (auto* f = std::get_if<effect::stat_file>(&e)) {
        const auto found = files.find(f->path);
        perform(
            core->on_file_info(found == files.end() ? file_info{} : found->second, clock->time));
      } else if (auto* r = std::get_if<effect::read_file>(&e)) {
        const auto found = texts.find(r->path);
        perform(core->on_file_text(found == texts.end()
                                       ? result<std::string>(fail(errc::not_found, "no such file"))
                                       : found->second,
                                   clock->time));
      } else if (auto* told = std::get_if<effect::talk>(&e)) {
        warnings.push_back(std::get<effect::warn>(told->what).text);
      } else {
        ++finishes;
        outcome = std::get<effect::finish>(e).outcome;
      }
    }
  }

  void begin() {
    options.started_at = clock->now();
    core = std::make_unique<attempt_core>(options);
    begun = clock->time;
    perform(core->begin(clock->time));
  }

  /// One step of virtual time; false when nothing will happen any more.
  bool advance(std::optional<steady_time> until = std::nullopt) {
    auto next = runner.next_event();
    for (const auto& [kind, at] : timers)
      if (!next || at < *next)
        next = at;
    if (!next || (until && *next > *until))
      return false;
    clock->time = std::max(clock->time, *next);
    runner.step(clock->time);
    auto due = std::exchange(timers, {});
    for (const auto& [kind, at] : due) {
      if (at > clock->time)
        timers.emplace(kind, at);
      else
        perform(core->on_timer(kind, clock->time));
    }
    return true;
  }

  const run_outcome& run(sim::sim_program program) {
    runner.define("agent", std::move(program));
    begin();
    for (int i = 0; i < 10'000 && !outcome && advance(); ++i) {
    }
    REQUIRE(outcome.has_value());
    REQUIRE(finishes == 1);
    REQUIRE(core->finished());
    return *outcome;
  }

  milliseconds elapsed() const { return clock->time - begun; }
};

config::requirement need(config::requirement::kind_t kind, std::string argument = {}) {
  config::requirement r;
  r.kind = kind;
  r.argument = std::move(argument);
  return r;
}

using kind_t = config::requirement::kind_t;

} // namespace

TEST_CASE("a run that ends well") {
  bench b;
  const auto& o = b.run({.output = "\n  3 commits since yesterday  \nmore\n", .duration = 1500ms});
  CHECK(is_success(o));
  CHECK(o.execution == execution_verdict::succeeded);
  CHECK(o.claim == claim_verdict::none);
  CHECK(o.verification == verification_verdict::none);
  CHECK(o.failure == failure_class::none);
  CHECK(o.exit_code == 0);
  CHECK(o.summary == "3 commits since yesterday");
  CHECK(o.output == "\n  3 commits since yesterday  \nmore\n");
  CHECK(o.error.empty());
  CHECK(o.session_id == "kernel-a-1");
  CHECK(o.usage_json.find("\"wall_ms\":1500") != std::string::npos);
}

TEST_CASE("a silent success has a summary; a declared one wins") {
  CHECK(bench().run({}).summary == "completed");
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
    CHECK(o.error == "the program ended, and nobody reported how");
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
    CHECK(b.outcome->error == "ended by shutdown");
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
  const auto& outcome = std::get<effect::finish>(ended.front()).outcome;
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
  CHECK(kept.render(10).text == "01234\n… 10 bytes not kept …\nfghij");
  CHECK(kept.render(4).text == "01\n… 16 bytes not kept …\nij");
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
