#include "boyd/improve/cycle_core.hpp"
#include "boyd/improve/patch.hpp"
#include "support/pch.hpp"

#include <algorithm>

/// What a cycle makes of a task that is looked at again before anybody is asked, and of tasks that
/// were set aside.
namespace boyd::recheck_test {

using namespace boyd::improve;
using Catch::Matchers::Contains;

namespace {

const utc_time begin = from_unix_ms(1'800'000'000'000);

finding failing(const std::string& name, const std::string& hash = {}) {
  finding f;
  f.from = finding_source::test;
  f.scanner = "tests";
  f.test = name;
  f.message = "it failed";
  f.path = hash.empty() ? "" : "t.py";
  f.file_hash = hash;
  return f;
}

cycle_options applying() {
  cycle_options o;
  o.apply = true;
  return o;
}

/// A cycle that has scanned, and what it wants next.
cycle_effects scanned(cycle_core& core, const std::vector<finding>& findings,
                      const scan_results& results = {}) {
  core.begin(begin);
  core.on_look({"head", {}, {}}, begin);
  return core.on_scan(findings, results, begin);
}

bool asks(const cycle_effects& effects) {
  return std::ranges::any_of(effects,
                             [](const auto& e) { return std::holds_alternative<effect::ask>(e); });
}

/// One whole cycle, whose patch is judged well and proved as `proof` says.
cycle_state with_proof(const cycle_state& earlier, const std::vector<finding>& findings,
                       const check_end& proof) {
  auto core = cycle_core::fresh(earlier, applying(), begin);
  scanned(core, findings);
  if (!core.state().selected)
    return core.state();
  core.on_recheck({false, failure_kind::deterministic, "still"}, begin);
  core.on_answer({"answer", failure_kind::none, {}}, begin);
  accepted_patch p;
  p.changes.push_back({"f", planned_change::action_t::modify, "b", 0644, "x"});
  core.on_judged(p, begin);
  core.on_applied({}, begin);
  core.on_proved(proof, begin);
  core.on_rolled_back(undo_end{}, begin);
  return core.state();
}

} // namespace

TEST_CASE("a recheck decides whether anybody is asked, and what is no fault of the task") {
  struct row {
    check_end end;
    failure_kind kind;
    improve_status status;
    bool quarantined;
  };
  for (const auto& r : {
           row{{true, failure_kind::none, {}},
               failure_kind::flaky,
               improve_status::completed,
               true},
           row{{false, failure_kind::flaky, "it failed, then passed"},
               failure_kind::flaky,
               improve_status::completed,
               true},
           row{{false, failure_kind::environment, "no compiler"},
               failure_kind::environment,
               improve_status::paused,
               false},
           row{{false, failure_kind::transient, "too long"},
               failure_kind::transient,
               improve_status::failed,
               false},
           row{{false, failure_kind::deterministic, "no report", {}, false},
               failure_kind::environment,
               improve_status::paused,
               false},
       }) {
    INFO(name_of(r.kind) << " " << r.end.detail);
    auto core = cycle_core::fresh({}, applying(), begin);
    scanned(core, {failing("a")});
    CHECK_FALSE(asks(core.on_recheck(r.end, begin)));
    const auto& s = core.state();
    CHECK(s.status == r.status);
    CHECK(s.failure == r.kind);
    CHECK(s.strikes.empty());
    CHECK(s.paused_tasks.empty());
    CHECK(s.quarantined.size() == (r.quarantined ? 1 : 0));
    CHECK(s.answers == 0);
  }
  auto core = cycle_core::fresh({}, applying(), begin);
  scanned(core, {failing("a")});
  CHECK(asks(core.on_recheck({false, failure_kind::deterministic, "still", "printed"}, begin)));
  CHECK(core.state().execution.evidence == "printed");
}

TEST_CASE("a lint error is looked at again, too: a scanner may tell only what is new") {
  finding f;
  f.scanner = "lint";
  f.rule = "R";
  f.path = "a.c";
  auto core = cycle_core::fresh({}, applying(), begin);
  const auto effects = scanned(core, {f});
  CHECK(std::holds_alternative<effect::recheck>(effects.back()));
  core.on_recheck({true, failure_kind::none, {}}, begin);
  CHECK(core.state().failure == failure_kind::flaky);
}

TEST_CASE("a provider that is away is no strike, however often") {
  cycle_state s;
  for (int i = 0; i < 2 * strikes_that_pause; ++i) {
    auto core = cycle_core::fresh(s, applying(), begin);
    scanned(core, {failing("a")});
    core.on_recheck({false, failure_kind::deterministic, "still"}, begin);
    for (int n = 0; n < most_tries; ++n)
      core.on_answer({{}, failure_kind::transient, "503"}, begin);
    s = core.state();
    CHECK(s.status == improve_status::failed);
    CHECK(s.failure == failure_kind::transient);
    CHECK(s.strikes.empty());
  }
  CHECK(s.paused_tasks.empty());
}

TEST_CASE("tests that take too long with a patch are a strike") {
  const auto s = with_proof({}, {failing("a")}, {false, failure_kind::transient, "too long"});
  CHECK(s.strikes.size() == 1);
}

TEST_CASE("a patch with which nothing can be checked is paid for once") {
  const std::vector<finding> findings{failing("a"), failing("b")};
  const check_end away{false, failure_kind::environment, "tests: No module named x"};
  auto s = with_proof({}, findings, away);
  const auto first = s.selected->task_id;
  CHECK(s.status == improve_status::paused);
  CHECK(s.strikes.empty());
  s = with_proof(s, findings, away);
  CHECK(s.selected->task_id != first);
  s = with_proof(s, findings, away);
  CHECK_FALSE(s.selected.has_value());
  CHECK(s.answers == 2);
  CHECK_THAT(s.reason, Contains("boyd improve retry TASK"));
}

TEST_CASE("tests that could not run end the cycle before anybody is paid") {
  finding link;
  link.from = finding_source::hygiene;
  link.scanner = "hygiene";
  link.rule = "broken-link";
  link.path = "README.md";
  scan_results results;
  results.scanners.push_back({"tests", 0, 0, 0, "pytest is not there", true, true});
  auto core = cycle_core::fresh({}, applying(), begin);
  CHECK_FALSE(asks(scanned(core, {link}, results)));
  CHECK(core.state().status == improve_status::paused);
  CHECK_THAT(core.state().reason, Contains("pytest is not there"));
  CHECK(core.state().strikes.empty());
}

TEST_CASE("a task is taken up again by hand, or when its file is another one") {
  const std::vector<finding> old{failing("a", "hash-1")};
  const check_end wrong{false, failure_kind::deterministic, "wrong"};
  cycle_state s;
  for (int i = 0; i < strikes_that_pause; ++i)
    s = with_proof(s, old, wrong);
  REQUIRE(s.paused_tasks.size() == 1);
  const auto id = s.paused_tasks[0];
  CHECK_FALSE(with_proof(s, old, wrong).selected.has_value());
  CHECK(why_passed_over(s.candidates[0], s) == "paused after 3 failures");

  auto by_hand = s;
  CHECK_FALSE(take_up(by_hand, "test-nothing").has_value());
  const auto taken = take_up(by_hand, id.substr(0, 8));
  REQUIRE(taken.has_value());
  CHECK(*taken == id);
  CHECK(with_proof(by_hand, old, wrong).selected.has_value());

  // Also after its state was written and read.
  const auto kept = read_state(state_json(s));
  REQUIRE(kept.has_value());
  const auto next = with_proof(*kept, {failing("a", "hash-2")}, wrong);
  REQUIRE(next.selected.has_value());
  CHECK(next.strikes.at(id) == 1);
  CHECK(next.paused_tasks.empty());
}

TEST_CASE("what several tasks begin with names none of them") {
  cycle_state s;
  s.paused_tasks = {"test-1a", "test-1b"};
  s.quarantined = {"test-1"};
  CHECK(take_up(s, "test-").error().code == errc::invalid_argument);
  CHECK(take_up(s, "test-1").value() == "test-1");
  CHECK(s.paused_tasks.size() == 2);
}

TEST_CASE("the contents of a patch stay in the state no longer than they are needed") {
  const auto s = with_proof({}, {failing("a")}, {false, failure_kind::deterministic, "wrong"});
  REQUIRE(s.execution.patch.has_value());
  CHECK_THAT(state_json(s), !Contains("\"after\""));
  CHECK_THAT(report_json(s), !Contains("\"after\""));
  auto open = s;
  open.status = improve_status::running;
  CHECK_THAT(state_json(open), Contains("\"after\": \"x\""));
}

} // namespace boyd::recheck_test
