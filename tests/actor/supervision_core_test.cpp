#include "actors/supervision/core.hpp"
#include "boyd/core/limits.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <set>

namespace boyd::supervision_core_test {

using namespace boyd;

namespace {

using ids = std::vector<std::string>;

constexpr steady_time t0{milliseconds{1'000'000}};

child_rule rule(std::string id, ids depends_on = {},
                restart_kind restart = restart_kind::permanent) {
  return {std::move(id), std::move(depends_on), restart, 5s};
}

/// One that is parked after three failures in a minute.
child_rule dispensable(std::string id, ids depends_on = {}, std::string group = {}) {
  auto r = rule(std::move(id), std::move(depends_on));
  r.intensity = {.restarts = 3, .period = 60s};
  r.vital = false;
  r.group = std::move(group);
  return r;
}

/// Lets `id` die and start again until it is not started any more; returns how often it was.
int crash_for_ever(supervisor_core& core, const std::string& id, steady_time now = t0) {
  for (int restarts = 0; restarts < 1000; ++restarts) {
    core.down(id, true, "boom", now, 0.0);
    auto todo = core.reconcile(now);
    while (todo.start.empty() && todo.wake_at && !todo.escalate)
      todo = core.reconcile(now = *todo.wake_at);
    if (std::ranges::find(todo.start, id) == todo.start.end())
      return restarts;
    for (const auto& s : todo.start)
      core.started(s);
  }
  return -1;
}

const child_view& view_of(const std::vector<child_view>& all, const std::string& id) {
  return *std::ranges::find(all, id, &child_view::id);
}

/// store ← writer ← kernel, store ← pool, and one on its own.
supervisor_core family() {
  return supervisor_core({rule("store"), rule("writer", {"store"}), rule("kernel", {"writer"}),
                          rule("pool", {"store"}), rule("alone")},
                         {.restarts = 3, .period = 60s});
}

ids start_all(supervisor_core& core, steady_time now = t0) {
  auto todo = core.reconcile(now);
  for (const auto& id : todo.start)
    core.started(id);
  return todo.start;
}

std::string state_of(const supervisor_core& core, const std::string& id) {
  for (const auto& c : core.view())
    if (c.id == id)
      return c.state;
  return "unknown";
}

} // namespace

TEST_CASE("children start in order", "[supervision]") {
  auto core = family();
  CHECK(start_all(core) == ids{"store", "writer", "kernel", "pool", "alone"});
  CHECK(core.reconcile(t0).start.empty());
}

TEST_CASE("a new child waits for a dependency that is being renewed", "[supervision]") {
  auto core = family();
  start_all(core);
  core.renew("writer");
  core.add(rule("second kernel", {"writer"}));
  auto todo = core.reconcile(t0);
  CHECK(todo.stop == ids{"kernel"});
  CHECK(todo.start.empty()); // not with the writer that is about to go
  core.down("kernel", false, "", t0, 0.5);
  todo = core.reconcile(t0);
  CHECK(todo.stop == ids{"writer"});
  CHECK(todo.start.empty());
  core.down("writer", false, "", t0, 0.5);
  CHECK(core.reconcile(t0).start == ids{"writer", "kernel", "second kernel"});
}

TEST_CASE("what depends on a child behind it, by a rule that was replaced, is restarted with it",
          "[supervision]") {
  supervisor_core core({rule("gateway", {}), rule("kernel", {})}, {});
  core.add(rule("gateway", {"kernel"}));
  core.add(rule("above", {"gateway"}));
  CHECK(start_all(core) == ids{"kernel"});
  CHECK(start_all(core) == ids{"gateway", "above"});
  core.renew("kernel");
  CHECK(core.reconcile(t0).stop == ids{"above"});
  core.down("above", false, "", t0, 0.5);
  CHECK(core.reconcile(t0).stop == ids{"gateway"});
  core.down("gateway", false, "", t0, 0.5);
  CHECK(core.reconcile(t0).stop == ids{"kernel"});
}

TEST_CASE("what runs although it is to go, or to be started anew, is changing", "[supervision]") {
  using names = std::set<std::string>;
  auto core = family();
  start_all(core);
  core.reconcile(t0);
  CHECK(core.changing().empty());
  core.renew("writer");
  core.reconcile(t0);
  CHECK(core.changing() == names{"writer", "kernel"});
  core.down("kernel", false, "", t0, 0.5);
  core.reconcile(t0);
  CHECK(core.changing() == names{"writer"});
  core.down("writer", false, "", t0, 0.5);
  start_all(core);
  core.reconcile(t0);
  CHECK(core.changing().empty());
  core.remove("alone");
  core.reconcile(t0);
  CHECK(core.changing() == names{"alone"});
  core.down("alone", false, "", t0, 0.5);
  core.down("pool", true, "boom", t0, 0.5); // starts with what is new
  core.reconcile(t0);
  CHECK(core.changing().empty());
}

TEST_CASE("a dead child takes those that hold its handle with it, and no others", "[supervision]") {
  auto core = family();
  start_all(core);
  core.down("writer", true, "boom", t0, 0.5);
  auto todo = core.reconcile(t0);
  CHECK(todo.stop == ids{"kernel"});
  CHECK(todo.start.empty()); // the kernel must be gone first
  core.down("kernel", false, "", t0, 0.5);
  CHECK(core.reconcile(t0).start == ids{"writer", "kernel"});
}

TEST_CASE("dependents are stopped from the end, one level after the other", "[supervision]") {
  auto core = family();
  start_all(core);
  core.down("store", true, "boom", t0, 0.5);
  CHECK(core.reconcile(t0).stop == ids{"pool", "kernel"});
  core.down("pool", false, "", t0, 0.5);
  CHECK(core.reconcile(t0).stop.empty());
  CHECK(core.started_anew_with("kernel") == "store");
  CHECK(core.started_anew_with("alone").empty());
  core.down("kernel", false, "", t0, 0.5);
  CHECK(core.reconcile(t0).stop == ids{"writer"});
  core.down("writer", false, "", t0, 0.5);
  CHECK(core.reconcile(t0).start == ids{"store", "writer", "kernel", "pool"});
}

TEST_CASE("the text of the last failure and the restarts are kept", "[supervision]") {
  auto core = family();
  start_all(core);
  core.down("alone", true, "disk on fire", t0, 0.5);
  start_all(core);
  const auto view = core.view();
  CHECK(view.back().last_error == "disk on fire");
  CHECK(view.back().restarts == 1);
  CHECK(view.back().state == "running");
}

TEST_CASE("the first restart is at once, the next ones wait longer and longer", "[supervision]") {
  supervisor_core core({rule("a")}, {.restarts = 100, .period = 60s});
  start_all(core);
  milliseconds last{0};
  auto now = t0;
  for (int i = 0; i < 12; ++i) {
    core.down("a", true, "boom", now, 0.999);
    auto todo = core.reconcile(now);
    if (i == 0) {
      CHECK(todo.start == ids{"a"});
    } else {
      REQUIRE(todo.wake_at);
      const auto wait = *todo.wake_at - now;
      CHECK(wait >= last);
      CHECK(wait <= limits::backoff_cap);
      last = wait;
      now = *todo.wake_at;
    }
    CHECK(start_all(core, now) == ids{"a"});
  }
}

TEST_CASE("a quiet period forgives", "[supervision]") {
  supervisor_core core({rule("a")}, {.restarts = 100, .period = 60s});
  start_all(core);
  core.down("a", true, "boom", t0, 0.5);
  start_all(core);
  core.down("a", true, "boom", t0 + 1s, 0.5);
  CHECK(core.reconcile(t0 + 1s).wake_at);
  const auto later = t0 + 1s + limits::restart_period + 1s;
  start_all(core, later);
  core.down("a", true, "boom", later, 0.5);
  CHECK(core.reconcile(later).start == ids{"a"});
}

TEST_CASE("case 8 crash-loop: a spent intensity escalates with the reason", "[supervision]") {
  auto core = family();
  start_all(core);
  for (int i = 0; i < 3; ++i) {
    core.down("alone", true, "boom", t0, 0.0);
    CHECK_FALSE(core.reconcile(t0 + 10s).escalate);
    start_all(core, t0 + 10s);
  }
  core.down("alone", true, "the last straw", t0 + 10s, 0.0);
  const auto todo = core.reconcile(t0 + 10s);
  CHECK(todo.escalate);
  CHECK(todo.reason == "alone: the last straw");
  CHECK(todo.start.empty());
}

TEST_CASE("case 2 init-throws: a start that fails counts and is repeated", "[supervision]") {
  auto core = family();
  auto todo = core.reconcile(t0);
  CHECK(todo.start.front() == "store");
  core.start_failed("store", "no disk", t0, 0.0);
  CHECK(core.reconcile(t0).start.front() == "store"); // the first repeat comes at once
  core.start_failed("store", "no disk", t0, 0.0);
  todo = core.reconcile(t0);
  CHECK(todo.start == ids{"alone"}); // nobody starts without what it holds
  CHECK(todo.wake_at);
}

TEST_CASE("temporary and transient children are not always wanted again", "[supervision]") {
  supervisor_core core({rule("temporary", {}, restart_kind::temporary),
                        rule("transient", {}, restart_kind::transient)},
                       {.restarts = 3, .period = 60s});
  start_all(core);
  core.down("temporary", true, "boom", t0, 0.5);
  core.down("transient", true, "boom", t0, 0.5);
  CHECK(start_all(core) == ids{"transient"});
  core.down("transient", false, "", t0, 0.5);
  CHECK(start_all(core).empty());
  CHECK(state_of(core, "temporary") == "ended");
}

TEST_CASE("what depends on a child that has ended runs on without it", "[supervision]") {
  for (const auto kind : {restart_kind::temporary, restart_kind::transient}) {
    supervisor_core core(
        {rule("brief", {}, kind), rule("holder", {"brief"}), rule("last", {"holder"})},
        {.restarts = 3, .period = 60s});
    start_all(core);
    core.down("brief", false, "", t0, 0.5);
    auto todo = core.reconcile(t0);
    CHECK(todo.stop.empty());
    CHECK(todo.start.empty());
    CHECK(state_of(core, "brief") == "ended");
    CHECK(state_of(core, "holder") == "running");
    // It dies by itself, and comes again without the one that has ended.
    core.down("holder", true, "boom", t0, 0.5);
    core.reconcile(t0);
    core.down("last", false, "", t0, 0.5);
    CHECK(start_all(core) == ids{"holder", "last"});
    CHECK(core.view()[1].restarts == 1);
    // An operator wants it after all: whoever holds it is given the new handle.
    core.renew("brief");
    CHECK(state_of(core, "brief") == "restarting");
    CHECK(core.reconcile(t0).stop == ids{"last"});
    core.down("last", false, "", t0, 0.5);
    CHECK(core.reconcile(t0).stop == ids{"holder"});
    core.down("holder", false, "", t0, 0.5);
    CHECK(start_all(core) == ids{"brief", "holder", "last"});
    CHECK(core.view()[1].restarts == 1);
  }
}

TEST_CASE("restarts: chance spreads the delays between half and the whole", "[supervision]") {
  restart_backoff early;
  restart_backoff late;
  CHECK(early.failed(t0, 0.0) == 0ms);
  CHECK(late.failed(t0, 0.999) == 0ms);
  for (auto whole = limits::backoff_base; whole < limits::backoff_cap; whole *= 2) {
    CHECK(early.failed(t0, 0.0) == whole / 2);
    const auto latest = late.failed(t0, 0.999);
    CHECK(latest >= whole * 99 / 100);
    CHECK(latest <= whole);
  }
  CHECK(early.failed(t0, 0.0) == limits::backoff_cap / 2);
  CHECK(late.failed(t0, 0.999) >= limits::backoff_cap * 99 / 100);
  // A supervisor hands its chance on.
  const auto second_delay = [](double unit) {
    supervisor_core core({rule("store")}, {.restarts = 3, .period = 60s});
    start_all(core);
    core.down("store", true, "boom", t0, unit);
    start_all(core);
    core.down("store", true, "boom", t0, unit);
    return *core.reconcile(t0).wake_at - t0;
  };
  CHECK(second_delay(0.0) == limits::backoff_base / 2);
  CHECK(second_delay(0.999) >= limits::backoff_base * 99 / 100);
}

TEST_CASE("shutdown stops everything in reverse and starts nothing", "[supervision]") {
  auto core = family();
  start_all(core);
  core.begin_shutdown();
  ids stopped;
  for (int round = 0; round < 10 && !core.all_stopped(); ++round) {
    auto todo = core.reconcile(t0);
    CHECK(todo.start.empty());
    for (const auto& id : todo.stop) {
      stopped.push_back(id);
      core.down(id, false, "", t0, 0.5);
    }
  }
  CHECK(core.all_stopped());
  CHECK(stopped == ids{"alone", "pool", "kernel", "writer", "store"});
}

TEST_CASE("a removed child is stopped and forgotten", "[supervision]") {
  auto core = family();
  start_all(core);
  core.remove("alone");
  CHECK(core.reconcile(t0).stop == ids{"alone"});
  core.down("alone", false, "", t0, 0.5);
  CHECK(state_of(core, "alone") == "unknown");
}

TEST_CASE("any order of deaths, stops and starts converges", "[supervision]") {
  REQUIRE(rc::check("converges", [] {
    supervisor_core core({rule("a"), rule("b", {"a"}), rule("c", {"b"}), rule("d", {"a"})},
                         {.restarts = 1'000'000, .period = 60s});
    std::set<std::string> alive;
    auto now = t0;
    std::set<std::string> told; // to stop; they do so sooner or later
    const auto look = [&] {
      auto todo = core.reconcile(now);
      told.insert(todo.stop.begin(), todo.stop.end());
      for (const auto& id : todo.start) {
        core.started(id);
        RC_ASSERT(alive.insert(id).second);
      }
    };
    const auto gone = [&](const std::string& id, bool failure) {
      told.erase(id);
      if (alive.erase(id) > 0)
        core.down(id, failure, "boom", now, 0.5);
    };
    const auto obey = [&] {
      for (const auto& id : std::set<std::string>(told))
        gone(id, false);
      look();
    };
    const auto events = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6));
    for (const int e : events) {
      if (e < 4)
        gone(std::string(1, static_cast<char>('a' + e)), true);
      if (e == 4)
        obey();
      else
        look();
      now += 1s;
    }
    for (int i = 0; i < 40; ++i) {
      obey();
      now += limits::backoff_cap;
    }
    RC_ASSERT(alive == (std::set<std::string>{"a", "b", "c", "d"}));
  }));
}

TEST_CASE("a held supervisor starts nothing, stops nothing and does not give up", "[supervision]") {
  auto core = family();
  start_all(core);
  core.hold();
  CHECK(core.given_up().empty());
  for (int i = 0; i < 5; ++i)
    core.down("writer", true, "boom", t0, 0.5);
  CHECK(core.given_up() == "writer: boom");
  auto todo = core.reconcile(t0 + 60s);
  CHECK(todo.start.empty());
  CHECK(todo.stop.empty());
  CHECK_FALSE(todo.escalate);
  CHECK_FALSE(todo.wake_at);
  CHECK(state_of(core, "writer") == "stopped");
  core.begin_shutdown();
  CHECK_FALSE(core.reconcile(t0 + 60s).stop.empty());
}

TEST_CASE("case 8 crash-loop: a child that is not vital is parked after exactly its restarts",
          "[supervision]") {
  supervisor_core core({rule("store"), dispensable("git"), rule("kernel", {"store", "git"})},
                       {.restarts = 3, .period = 60s});
  start_all(core);
  // Whoever holds its handle is restarted with it, but it does not fail itself.
  core.down("git", true, "boom", t0, 0.0);
  CHECK(core.reconcile(t0).stop == ids{"kernel"});
  core.down("kernel", false, "", t0, 0.0);
  CHECK(start_all(core) == ids{"git", "kernel"});
  core.renew("kernel");
  CHECK(core.reconcile(t0).stop == ids{"kernel"});
  core.down("kernel", false, "", t0, 0.0); // out of the way of the next crashes
  core.remove("kernel");

  CHECK(crash_for_ever(core, "git") == 2); // one of three is spent
  const auto git = view_of(core.view(), "git");
  CHECK(git.state == "parked");
  CHECK(git.reason == "failed 4 times within 1m: boom");
  CHECK(git.restarts == 4);
  const auto later = core.reconcile(t0 + std::chrono::hours{24});
  CHECK(later.start.empty());
  CHECK(later.stop.empty());
  CHECK_FALSE(later.wake_at); // no clock runs for it
  CHECK_FALSE(later.escalate);
  CHECK(state_of(core, "store") == "running");
}

TEST_CASE("case 8 crash-loop: a vital child escalates after exactly its restarts",
          "[supervision]") {
  auto core = family();
  start_all(core);
  CHECK(crash_for_ever(core, "alone") == 3);
  CHECK(core.reconcile(t0).escalate);
}

TEST_CASE("a vital child has a limit of its own below that of the subtree", "[supervision]") {
  auto strict = rule("strict");
  strict.intensity = {.restarts = 1, .period = 60s};
  supervisor_core core({strict, rule("other")}, {.restarts = 10, .period = 60s});
  start_all(core);
  CHECK(crash_for_ever(core, "strict") == 1);
  CHECK(core.reconcile(t0).escalate);
}

TEST_CASE("failures of what is not vital count for nobody else", "[supervision]") {
  std::vector<child_rule> rules{rule("vital")};
  for (int i = 0; i < 20; ++i)
    rules.push_back(dispensable("d" + std::to_string(i)));
  supervisor_core core(std::move(rules), {.restarts = 3, .period = 60s});
  start_all(core);
  for (int i = 0; i < 20; ++i)
    core.down("d" + std::to_string(i), true, "boom", t0, 0.0);
  auto todo = core.reconcile(t0);
  CHECK(todo.start.size() == 20);
  CHECK_FALSE(todo.escalate);
}

TEST_CASE("who depends on a parked child runs without it and is restarted with it",
          "[supervision]") {
  supervisor_core core({dispensable("git"), rule("kernel", {"git"})},
                       {.restarts = 3, .period = 60s});
  for (int i = 0; i < 4; ++i)
    core.start_failed("git", "no repository", t0, 0.0);
  CHECK(state_of(core, "git") == "parked");
  CHECK(start_all(core) == ids{"kernel"});
  CHECK(core.reconcile(t0).stop.empty());

  core.renew("git"); // a restart does not unpark
  CHECK(core.reconcile(t0).start.empty());
  CHECK(core.unpark("git"));
  CHECK_FALSE(core.unpark("kernel"));
  CHECK(core.reconcile(t0).stop == ids{"kernel"}); // it holds no handle
  core.down("kernel", false, "", t0, 0.0);
  CHECK(start_all(core) == ids{"git", "kernel"});
  CHECK(view_of(core.view(), "git").reason.empty());
  // Its past is forgotten: the next failure is a first one.
  core.down("git", true, "boom", t0, 0.0);
  CHECK(core.reconcile(t0).stop == ids{"kernel"});
  core.down("kernel", false, "", t0, 0.0);
  CHECK(core.reconcile(t0).start == ids{"git", "kernel"});
}

TEST_CASE("the last of a group is not parked: it escalates", "[supervision]") {
  supervisor_core core(
      {dispensable("kernel:a", {}, "kernels"), dispensable("kernel:b", {}, "kernels")},
      {.restarts = 3, .period = 60s});
  start_all(core);
  crash_for_ever(core, "kernel:a");
  CHECK(state_of(core, "kernel:a") == "parked");
  CHECK_FALSE(core.reconcile(t0).escalate);
  crash_for_ever(core, "kernel:b");
  CHECK(core.reconcile(t0).escalate);
}

TEST_CASE("a shutdown does not wait for what is parked", "[supervision]") {
  supervisor_core core({dispensable("git"), rule("kernel", {"git"})},
                       {.restarts = 3, .period = 60s});
  for (int i = 0; i < 4; ++i)
    core.start_failed("git", "no repository", t0, 0.0);
  start_all(core);
  core.begin_shutdown();
  CHECK(core.reconcile(t0).stop == ids{"kernel"});
  core.down("kernel", false, "", t0, 0.0);
  CHECK(core.all_stopped());
}

TEST_CASE("a restart that an operator wants does not wait for the back-off", "[supervision]") {
  supervisor_core core({rule("a")}, {.restarts = 100, .period = 60s});
  start_all(core);
  for (int i = 0; i < 8; ++i) {
    core.down("a", true, "boom", t0, 0.9);
    core.started("a");
  }
  core.down("a", true, "boom", t0, 0.9);
  CHECK(core.reconcile(t0).start.empty());
  core.renew("a");
  CHECK(core.reconcile(t0).start == ids{"a"});
}

TEST_CASE("case 8 crash-loop: a part that has given up is not tried again", "[supervision][core]") {
  supervisor_core core({rule("vital"), dispensable("other")}, {.restarts = 3, .period = 60s});
  start_all(core);
  core.gave_up("other", "its worker failed 6 times", t0);
  auto todo = core.reconcile(t0);
  CHECK(todo.start.empty());
  CHECK_FALSE(todo.escalate);
  CHECK(view_of(core.view(), "other").state == "parked");
  CHECK(view_of(core.view(), "other").reason == "its worker failed 6 times");
  CHECK(core.unpark("other"));
  CHECK(core.reconcile(t0).start == ids{"other"});
  core.started("other");
  core.gave_up("vital", "its worker failed 4 times", t0);
  todo = core.reconcile(t0);
  CHECK(todo.escalate);
  CHECK(todo.reason == "vital: its worker failed 4 times");
}

} // namespace boyd::supervision_core_test
