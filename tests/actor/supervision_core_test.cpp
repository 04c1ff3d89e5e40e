#include "actors/supervision/core.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <set>

using namespace boyd;

namespace {

using ids = std::vector<std::string>;

constexpr steady_time t0{milliseconds{1'000'000}};

child_rule rule(std::string id, ids depends_on = {},
                restart_kind restart = restart_kind::permanent) {
  return {std::move(id), std::move(depends_on), restart, 5s};
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

TEST_CASE("a spent intensity escalates with the reason (FAULTS 8)", "[supervision]") {
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

TEST_CASE("a start that fails counts and is repeated (FAULTS 2)", "[supervision]") {
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
  CHECK(state_of(core, "temporary") == "stopped");
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
  for (int i = 0; i < 5; ++i)
    core.down("writer", true, "boom", t0, 0.5);
  auto todo = core.reconcile(t0 + 60s);
  CHECK(todo.start.empty());
  CHECK(todo.stop.empty());
  CHECK_FALSE(todo.escalate);
  CHECK_FALSE(todo.wake_at);
  CHECK(state_of(core, "writer") == "stopped");
  core.begin_shutdown();
  CHECK_FALSE(core.reconcile(t0 + 60s).stop.empty());
}
