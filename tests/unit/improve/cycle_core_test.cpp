#include "boyd/improve/cycle_core.hpp"
#include "boyd/improve/patch.hpp"
#include "boyd/improve/task_prompt.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <set>

namespace boyd::cycle_core_test {

using namespace boyd::improve;
using Catch::Matchers::Contains;

namespace {

finding failing_test(const std::string& name) {
  finding f;
  f.from = finding_source::test;
  f.scanner = "tests";
  f.test = name;
  f.message = "it failed";
  return f;
}

finding bad_link(const std::string& path) {
  finding f;
  f.from = finding_source::hygiene;
  f.scanner = "hygiene";
  f.rule = "broken-link";
  f.path = path;
  f.text = "x.md";
  return f;
}

accepted_patch patch_of(const std::string& content) {
  accepted_patch p;
  p.summary = "writes " + content;
  p.changes.push_back({"f", planned_change::action_t::modify, "before", 0644, content});
  p.digest = digest_of(p.changes);
  return p;
}

cycle_options applying(bool approve = false, const std::string& approved = {}) {
  cycle_options o;
  o.apply = true;
  o.approve = approve;
  o.approved = approved;
  return o;
}

/// A world in which a model answers well, badly, late and with malice, a tree holds one number of a
/// patch or none, and the machine dies at any step.
class world {
 public:
  explicit world(unsigned seed) : random_(seed) {}

  std::vector<finding> findings{failing_test("a"), failing_test("b"), bad_link("README.md")};
  std::optional<cycle_state> disk;    ///< what was saved; nothing: nothing
  bool patched = false;               ///< the tree has the open patch of a task
  bool journal = false;               ///< and it can be taken back
  std::set<std::string> done;         ///< tasks that were settled
  std::vector<std::string> selected;  ///< of each cycle
  std::vector<std::string> asked;     ///< tasks of the cycle at hand
  std::map<std::string, int> counted; ///< failures that count, by task
  int crashes = 0;

  unsigned draw(unsigned most) { return std::uniform_int_distribution<unsigned>(0, most)(random_); }

  /// One cycle, with crashes and resumes in between.
  cycle_state cycle() {
    asked.clear();
    now_ += 1s;
    const auto earlier = disk.value_or(cycle_state{});
    const auto options = applying();
    auto core = cycle_core::fresh(earlier, options, now_);
    const auto id = core.state().cycle_id;
    auto effects = core.begin(now_);
    for (int guard = 0; guard < 1000; ++guard) {
      if (play(core, std::move(effects)))
        return core.state();
      // It died: what is on the disk decides.
      ++crashes;
      if (!disk || disk->cycle_id != id) {
        core = cycle_core::fresh(earlier, options, now_);
      } else {
        const auto text = state_json(*disk);
        auto read = read_state(text);
        REQUIRE(read.has_value());
        CHECK((state_json(*read) == text));
        auto again = cycle_core::resumed(std::move(*read), options);
        if (!again)
          return *disk; // the last save had been made
        core = *again;
      }
      effects = core.begin(now_);
    }
    FAIL("the cycle does not end");
    return core.state();
  }

 private:
  /// False: the machine died.
  bool play(cycle_core& core, cycle_effects begun) {
    std::deque<cycle_effect> waiting(begun.begin(), begun.end());
    while (!waiting.empty()) {
      if (draw(11) == 0)
        return false;
      auto next = std::move(waiting.front());
      waiting.pop_front();
      for (auto& e : std::visit([&](const auto& e) { return perform(core, e); }, next))
        waiting.push_back(std::move(e));
      if (draw(23) == 0)
        return false;
    }
    return true;
  }

  cycle_effects perform(cycle_core&, const effect::save& e) {
    disk = e.state;
    return {};
  }
  cycle_effects perform(cycle_core&, const effect::report&) { return {}; }
  cycle_effects perform(cycle_core& c, const effect::look&) {
    return c.on_look({"head", {}, {}}, now_);
  }
  cycle_effects perform(cycle_core& c, const effect::scan&) {
    std::vector<finding> left;
    const auto ids = ids_of(findings);
    for (std::size_t i = 0; i < findings.size(); ++i)
      if (!done.contains(ids[i]))
        left.push_back(findings[i]);
    CHECK_FALSE(patched);
    return c.on_scan(left, {}, now_);
  }
  cycle_effects perform(cycle_core& c, const effect::recheck&) {
    return c.on_recheck({draw(9) == 0, failure_kind::deterministic, "still"}, now_);
  }
  cycle_effects perform(cycle_core& c, const effect::ask& e) {
    asked.push_back(e.task.task_id);
    CHECK_FALSE(patched);
    if (draw(19) == 0)
      return c.on_disturbed("somebody changed a file", {}, now_);
    constexpr std::array kinds{
        failure_kind::none,      failure_kind::none,        failure_kind::none,  failure_kind::none,
        failure_kind::transient, failure_kind::environment, failure_kind::policy};
    return c.on_answer({"answer", kinds[draw(kinds.size() - 1)], "why"}, now_);
  }
  cycle_effects perform(cycle_core& c, const effect::judge&) {
    switch (draw(3)) {
    case 0:
      return c.on_judged(fail(errc::refused, "hostile"), now_);
    case 1:
      return c.on_judged(fail(errc::parse_error, "garbage"), now_);
    default:
      return c.on_judged(patch_of("x"), now_);
    }
  }
  cycle_effects perform(cycle_core& c, const effect::apply&) {
    CHECK_FALSE(journal);
    if (draw(9) == 0)
      return c.on_applied(fail(errc::conflict, "moved"), now_);
    patched = journal = true;
    return c.on_applied({}, now_);
  }
  cycle_effects perform(cycle_core& c, const effect::compare&) {
    return c.on_compared(patched && draw(19) != 0, now_);
  }
  cycle_effects perform(cycle_core& c, const effect::prove&) { return c.on_proved(check(), now_); }
  cycle_effects perform(cycle_core& c, const effect::guard&) {
    CHECK(patched);
    return c.on_guarded(check(), now_);
  }
  check_end check() {
    constexpr std::array kinds{failure_kind::deterministic, failure_kind::flaky,
                               failure_kind::environment, failure_kind::transient};
    return {draw(2) != 0, kinds[draw(kinds.size() - 1)], "because"};
  }
  cycle_effects perform(cycle_core& c, const effect::roll_back&) {
    patched = patched && !journal;
    journal = false;
    return c.on_rolled_back(undo_end{}, now_);
  }
  cycle_effects perform(cycle_core& c, const effect::commit&) {
    if (draw(9) == 0)
      return c.on_committed(fail(errc::conflict, "it changed"), now_);
    return c.on_committed(std::string("hash"), now_);
  }
  cycle_effects perform(cycle_core& c, const effect::forget&) {
    // What was verified is in the tree for good: the next cycle finds it done.
    CHECK((!journal || patched));
    done.insert(c.state().selected->task_id);
    journal = patched = false;
    return c.on_forgotten({}, now_);
  }

  std::mt19937 random_;
  utc_time now_ = from_unix_ms(1'800'000'000'000);
};

} // namespace

namespace {

/// With its patch nothing could be checked.
bool was_hindered(const cycle_state& s, const std::string& task) {
  return std::ranges::any_of(s.failure_log, [&](const failure_entry& f) {
    return f.task_id == task && f.kind == failure_kind::environment && f.at_phase == "VERIFY";
  });
}

} // namespace

TEST_CASE("a thousand seeds: one task a cycle, all of a patch or nothing, three strikes") {
  int crashes = 0;
  std::map<std::string, int> ends;
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    INFO("seed " << seed);
    world w(seed);
    for (int n = 0; n < 6; ++n) {
      const auto before = w.disk.value_or(cycle_state{});
      const auto s = w.cycle();
      ++ends[std::string(name_of(s.status))];
      // The state on the disk is the whole truth.
      CHECK(w.disk->cycle_id == s.cycle_id);
      CHECK_FALSE(s.is_open());
      CHECK_FALSE(w.patched);
      CHECK_FALSE(w.journal);
      const std::set<std::string> tasks(w.asked.begin(), w.asked.end());
      CHECK(tasks.size() <= 1);
      if (s.selected) {
        CHECK((tasks.empty() || *tasks.begin() == s.selected->task_id));
        CHECK(std::ranges::find(before.paused_tasks, s.selected->task_id) ==
              before.paused_tasks.end());
        CHECK(std::ranges::find(before.quarantined, s.selected->task_id) ==
              before.quarantined.end());
      }
      CHECK((s.outcome == "SUCCESS") == (s.selected && w.done.contains(s.selected->task_id)));
      CHECK(s.failure_log.size() <= before.failure_log.size() + 1);
      for (const auto& task : s.paused_tasks)
        CHECK((was_hindered(s, task) || s.strikes.at(task) == strikes_that_pause));
      for (const auto& [task, strikes] : s.strikes) {
        const auto earlier = before.strikes.contains(task) ? before.strikes.at(task) : 0;
        CHECK((strikes == earlier || strikes == earlier + 1));
        CHECK(strikes <= strikes_that_pause);
      }
      if (s.outcome != "SUCCESS" &&
          (s.failure == failure_kind::environment || s.failure == failure_kind::flaky))
        CHECK((s.strikes == before.strikes));
    }
    crashes += w.crashes;
  }
  INFO("COMPLETED " << ends["COMPLETED"] << " FAILED " << ends["FAILED"] << " PAUSED "
                    << ends["PAUSED"] << " crashes " << crashes);
  CHECK(crashes > 1000);
  for (const auto* end : {"COMPLETED", "FAILED", "PAUSED"})
    CHECK(ends[end] > 100);
}

TEST_CASE("a dry run selects, and asks nobody") {
  auto core = cycle_core::fresh({}, {}, from_unix_ms(0));
  core.begin(from_unix_ms(0));
  core.on_look({}, from_unix_ms(1));
  core.on_scan({bad_link("a.md"), failing_test("t")}, {}, from_unix_ms(2));
  const auto& s = core.state();
  CHECK(s.cycle_id == "19700101_000000");
  CHECK(s.status == improve_status::completed);
  REQUIRE(s.selected.has_value());
  CHECK(s.selected->what.test == "t");
  CHECK(s.candidates.size() == 2);
  CHECK_THAT(candidates_json(s), Contains("\"estimated_effort\": \"medium\""));
}

TEST_CASE("edits that are not committed, and a lack of the environment, are no strikes") {
  for (const auto& p : {preflight{"h", "dirty", {}}, preflight{"h", {}, "no executor"}}) {
    auto core = cycle_core::fresh({}, applying(), from_unix_ms(0));
    core.begin(from_unix_ms(0));
    core.on_look(p, from_unix_ms(1));
    core.on_scan({failing_test("t")}, {}, from_unix_ms(2));
    CHECK(core.state().status == improve_status::paused);
    CHECK(core.state().reason == (p.dirty.empty() ? p.hindrance : p.dirty));
    CHECK(core.state().strikes.empty());
    CHECK(core.state().failure_log.empty());
  }
}

TEST_CASE("an approval is for one patch, byte for byte") {
  auto core = cycle_core::fresh({}, applying(true), from_unix_ms(0));
  core.begin(from_unix_ms(0));
  core.on_look({"h", {}, {}}, from_unix_ms(1));
  core.on_scan({bad_link("a.md")}, {}, from_unix_ms(2));
  core.on_answer({"x", failure_kind::none, {}}, from_unix_ms(3));
  core.on_judged(patch_of("good"), from_unix_ms(4));
  auto s = core.state();
  CHECK(s.status == improve_status::paused);
  CHECK_THAT(s.reason, Contains(s.execution.patch->digest));
  CHECK_FALSE(cycle_core::resumed(s, applying()).has_value());
  CHECK_FALSE(cycle_core::resumed(s, applying(false, "00")).has_value());
  auto changed = s;
  changed.execution.patch->changes[0].after = "evil";
  CHECK_FALSE(cycle_core::resumed(changed, applying(false, s.execution.patch->digest)).has_value());
  auto again = cycle_core::resumed(s, applying(false, s.execution.patch->digest));
  REQUIRE(again.has_value());
  again->begin(from_unix_ms(5));
  const auto effects = again->on_rolled_back(undo_end{}, from_unix_ms(6));
  REQUIRE(effects.size() == 1);
  CHECK(std::holds_alternative<effect::apply>(effects.front()));
}

TEST_CASE("what was refused and what failed is told to whoever answers next") {
  auto core = cycle_core::fresh({}, applying(), from_unix_ms(0));
  core.begin(from_unix_ms(0));
  core.on_look({"h", {}, {}}, from_unix_ms(1));
  core.on_scan({bad_link("a.md")}, {}, from_unix_ms(2));
  core.on_answer({"x", failure_kind::none, {}}, from_unix_ms(3));
  const auto effects = core.on_judged(fail(errc::refused, "cannot write in .git"), from_unix_ms(4));
  const auto* ask = std::get_if<effect::ask>(&effects.back());
  REQUIRE(ask != nullptr);
  CHECK_THAT(task_prompt(core.state(), {}), Contains("cannot write in .git"));
  core.on_answer({"x", failure_kind::policy, "denied"}, from_unix_ms(5));
  CHECK(core.state().status == improve_status::failed);
  CHECK(core.state().failure_log.size() == 1);
  CHECK(core.state().failure_log[0].kind == failure_kind::policy);
}

TEST_CASE("a state that is damaged is an error that says where") {
  CHECK_FALSE(read_state("").has_value());
  CHECK_FALSE(read_state("{}").has_value());
  CHECK_FALSE(read_state(R"({"schema_version": 99})").has_value());
  auto text = state_json(cycle_state{});
  CHECK(read_state(text).has_value());
  text.replace(text.find("RUNNING"), 7, "WALKING");
  const auto bad = read_state(text);
  REQUIRE_FALSE(bad.has_value());
  CHECK_THAT(bad.error().what, Contains("WALKING"));
}

} // namespace boyd::cycle_core_test
