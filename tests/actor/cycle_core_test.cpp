#include "actors/kernel/cycle_core.hpp"
#include "support/pch.hpp"

namespace boyd::cycle_core_test {

using namespace boyd;

namespace {

constexpr utc_time t0{milliseconds{1'770'976'800'000}};

config::kernel kernel_of(std::initializer_list<const char*> ids) {
  config::kernel k;
  for (const char* id : ids) {
    config::agent a;
    a.agent_id = id;
    a.prompt = "{STATE}|{GOAL}|{TIME}";
    k.agents.push_back(a);
  }
  return k;
}

occurrence slot() {
  occurrence o;
  o.kernel_id = "default";
  o.scheduled_at = t0;
  return o;
}

error broken(const char* what) {
  return {errc::io_error, what, {}, {}};
}

dispatch row(const char* agent, dispatch_status status, const char* text = "fine") {
  dispatch d;
  d.dispatch_id = std::string("id-") + agent;
  d.agent_id = agent;
  d.cycle_id = "c1";
  d.status = status;
  d.outcome.summary = text;
  if (status == dispatch_status::failed)
    d.outcome.error = text;
  return d;
}

std::function<std::string()> ids() {
  auto n = std::make_shared<int>(0);
  return [n] { return "d" + std::to_string((*n)++); };
}

/// A cycle that is waiting for its dispatches.
cycle_core waiting(const config::kernel& k) {
  cycle_core c(k, "c1", "node-a", slot(), t0, t0);
  c.begin({});
  c.perceive(std::string("state"), gathered_context{});
  c.orient(orientation{}, {}, {}, ids(), t0);
  c.decide(plan::plan_static(k, c.input()));
  c.act({}, {t0, 0s});
  return c;
}

} // namespace

TEST_CASE("cycle: the steps in order") {
  const auto k = kernel_of({"a", "b"});
  cycle_core c(k, "c1", "node-a", slot(), t0, t0);
  CHECK(c.step() == cycle_step::begin);
  c.begin({});
  CHECK(c.step() == cycle_step::perceive);
  c.perceive(std::string("state"), gathered_context{});
  CHECK(c.step() == cycle_step::orient);
  c.orient(orientation{}, {}, {}, ids(), t0);
  CHECK(c.step() == cycle_step::decide);
  c.decide(plan::plan_static(k, c.input()));
  CHECK(c.step() == cycle_step::act);
  CHECK(c.plan().specs.size() == 2);
  c.act({}, {t0, 0s});
  CHECK(c.step() == cycle_step::wait);
  c.wait(std::vector<dispatch>{row("a", dispatch_status::done), row("b", dispatch_status::done)},
         false, {t0 + 3s, 3s});
  CHECK(c.step() == cycle_step::gather);
  CHECK(c.record().status == cycle_status::success);
  CHECK(c.record().duration_ms == 3000);
  c.gather({});
  CHECK(c.step() == cycle_step::record);
  CHECK(c.effects().size() == 2);
  c.recorded({});
  CHECK(c.step() == cycle_step::follow);
  c.followed();
  CHECK(c.step() == cycle_step::done);
  CHECK(c.untold().empty());
}

TEST_CASE("cycle: a store that is away holds the cycle where it is; nothing else does") {
  const auto k = kernel_of({"a"});
  cycle_core c(k, "c1", "node-a", slot(), t0, t0);
  c.begin(fail(broken("store")));
  CHECK(c.step() == cycle_step::begin);
  c.begin({});
  c.perceive(fail(broken("state file")), fail(broken("librarian")));
  CHECK(c.step() == cycle_step::orient);
  CHECK(c.problems().size() == 2);
  c.orient(fail(broken("store")), {}, {}, ids(), t0);
  CHECK(c.step() == cycle_step::orient);
  c.orient(orientation{}, {}, {}, ids(), t0);
  c.decide(plan::plan_static(k, c.input()));
  c.act(fail(broken("store")), {t0, 0s});
  CHECK(c.step() == cycle_step::act);
  c.act({}, {t0, 0s});
  c.wait(fail(broken("store")), false, {t0, 0s});
  CHECK(c.step() == cycle_step::wait);
  c.wait(std::vector<dispatch>{row("a", dispatch_status::done)}, false, {t0, 0s});
  c.gather({});
  c.recorded(fail(broken("store")));
  CHECK(c.step() == cycle_step::record);
  CHECK(c.record().error.find("state file") != std::string::npos);
}

TEST_CASE("cycle: that not all late results are told is told") {
  const auto k = kernel_of({"a"});
  auto c = waiting(k);
  c.wait(std::vector<dispatch>{row("a", dispatch_status::done)}, false, {t0, 0s});
  const std::vector<dispatch> late(3, row("b", dispatch_status::done));
  c.gather(late, true);
  CHECK(c.record().error.find("only 3 of the late results") != std::string::npos);
}

TEST_CASE("cycle: what follows it has its outcomes, and its edges once for each end") {
  const auto k = kernel_of({"a", "b"});
  auto c = waiting(k);
  c.wait(std::vector<dispatch>{row("a", dispatch_status::done), row("b", dispatch_status::running)},
         true, {t0, 0s});
  auto late = row("x", dispatch_status::failed, "broke");
  late.cycle_id = "c0";
  c.gather({late});
  const auto all = c.effects();
  REQUIRE(all.size() == 2);
  CHECK(all[0].kind == effects::effect_kind::edges);
  CHECK(all[0].edges.size() == 4); // two decisions, two ends
  CHECK(all[1].kind == effects::effect_kind::history);
  CHECK(all[1].cycle_id == "c1");
  CHECK(all[1].status == c.record().status);
  REQUIRE(all[1].outcomes.size() == 3);
  CHECK(all[1].outcomes[0].text == "broke");
}

TEST_CASE("cycle: a record that is refused goes alone, then without its texts, then not at all") {
  const auto k = kernel_of({"a"});
  auto c = waiting(k);
  c.wait(std::vector<dispatch>{row("a", dispatch_status::done)}, false, {t0, 0s});
  c.gather({});
  c.give_up(broken("trigger"), {t0, 0s});
  CHECK(c.step() == cycle_step::record);
  CHECK(c.form() == record_form::alone);
  CHECK(c.record().status == cycle_status::success);
  CHECK(c.record().error.find("trigger") != std::string::npos);
  c.give_up(broken("trigger"), {t0, 0s});
  CHECK(c.form() == record_form::bare);
  CHECK(c.record().agents.empty());
  CHECK_FALSE(c.is_unrecorded());
  c.give_up(broken("trigger"), {t0, 0s});
  CHECK(c.step() == cycle_step::done);
  CHECK(c.is_unrecorded());
  CHECK_FALSE(c.untold().empty());
}

TEST_CASE("case 20 failover-loses-last-second: what was enqueued and is gone is enqueued again") {
  const auto k = kernel_of({"a", "b"});
  auto c = waiting(k);
  c.wait(std::vector<dispatch>{row("a", dispatch_status::done), row("b", dispatch_status::pending)},
         false, {t0, 0s});
  REQUIRE(c.step() == cycle_step::wait);
  // What has ended is known; the other one had not begun.
  c.wait(std::vector<dispatch>{}, false, {t0, 0s});
  REQUIRE(c.step() == cycle_step::act);
  CHECK(c.rows().size() == 1);
  c.act({}, {t0, 0s});
  c.wait(std::vector<dispatch>{row("b", dispatch_status::done)}, false, {t0, 0s});
  CHECK(c.step() == cycle_step::gather);
  CHECK(c.record().dispatched == 2);
  CHECK(c.record().succeeded == 2);
  CHECK(c.record().error.find("lost 1 acknowledged dispatches") != std::string::npos);
  // Only what is lost: what has ended and is not there any more would run once more.
  CHECK(c.plan().specs.size() == 1);
  // One that is to end enqueues nothing, nor does one that has not looked for long.
  auto cancelled = waiting(k);
  cancelled.request_cancel();
  cancelled.wait(std::vector<dispatch>{}, false, {t0, 0s});
  CHECK(cancelled.step() != cycle_step::act);
  auto suspended = waiting(k);
  suspended.wait(
      std::vector<dispatch>{row("a", dispatch_status::running), row("b", dispatch_status::running)},
      false, {t0, 0s});
  // Nor by the next look, which is not long ago; but it is told of.
  for (const auto status : {dispatch_status::running, dispatch_status::done}) {
    REQUIRE(suspended.step() == cycle_step::wait);
    suspended.wait(std::vector<dispatch>{row("a", status)}, false, {t0 + 1h, 1h}, 1h);
  }
  CHECK(suspended.step() == cycle_step::gather);
  CHECK(suspended.record().error.find("1 queued dispatches") != std::string::npos);
  // An outage that is shorter than what has ended is kept hides nothing.
  auto outage = waiting(k);
  outage.wait(std::vector<dispatch>{}, false, {t0 + 50min, 50min});
  CHECK(outage.step() == cycle_step::act);
  // Where it stays away, the cycle ends at its deadline.
  auto late = waiting(k);
  late.wait(std::vector<dispatch>{}, true, {t0 + 1h, 1h});
  CHECK(late.step() == cycle_step::gather);
  CHECK(late.record().error.find("2 queued dispatches") != std::string::npos);
  CHECK(late.record().status == cycle_status::error);
}

TEST_CASE("cycle: a planner that fails makes the cycle an error, not a crash") {
  const auto k = kernel_of({"a"});
  cycle_core c(k, "c1", "node-a", slot(), t0, t0);
  c.begin({});
  c.perceive(std::string{}, gathered_context{});
  c.orient(orientation{}, {}, {}, ids(), t0);
  c.decide(fail(broken("planner")));
  REQUIRE(c.plan().decisions.size() == 1);
  CHECK(c.plan().decisions[0].reason == "planner");
  c.act({}, {t0, 0s});
  c.wait(std::vector<dispatch>{}, false, {t0, 0s});
  CHECK(c.record().status == cycle_status::error);
}

TEST_CASE("cycle: what failed is named, and fails nobody else") {
  const auto k = kernel_of({"a", "b"});
  auto c = waiting(k);
  c.wait(std::vector<dispatch>{row("b", dispatch_status::failed, "broke"),
                               row("a", dispatch_status::done)},
         false, {t0, 0s});
  CHECK(c.record().status == cycle_status::partial_success);
  CHECK(c.record().failed_agents == std::vector<std::string>{"b"});
  REQUIRE(c.record().agents.size() == 2);
  CHECK(c.record().agents[0].agent_id == "a");
  CHECK(c.record().agents[1].summary == "broke");
  CHECK(c.effects().front().edges.size() == 4);
}

TEST_CASE("cycle: at its deadline what still runs is recorded as running") {
  const auto k = kernel_of({"a", "b"});
  auto c = waiting(k);
  std::vector<dispatch> rows{row("a", dispatch_status::done), row("b", dispatch_status::running)};
  c.wait(rows, false, {t0, 0s});
  CHECK(c.step() == cycle_step::wait);
  CHECK(c.unfinished() == std::vector<std::string>{"id-b"});
  c.wait(rows, true, {t0 + 1h, 1h});
  CHECK(c.step() == cycle_step::gather);
  CHECK(c.record().agents[1].status == "running");
  CHECK(c.record().failed == 0);
  CHECK(c.record().status == cycle_status::partial_success);
}

TEST_CASE("cycle: resumed where the last life left it") {
  const auto k = kernel_of({"a"});
  cycle_record left;
  left.cycle_id = "c1";
  left.kernel_id = "default";
  left.started_at = t0;
  CHECK(cycle_core::resume(k, left, {}, {}, t0).step() == cycle_step::perceive);
  auto c = cycle_core::resume(k, left, {"a"}, {}, t0);
  CHECK(c.step() == cycle_step::wait);
  c.wait(std::vector<dispatch>{row("a", dispatch_status::done)}, false, {t0 + 2s, 2s});
  CHECK(c.record().duration_ms == 2000);
  CHECK_FALSE(c.trouble_is_kept());
}

TEST_CASE("case 20 failover-loses-last-second: what nobody can enqueue again is no success") {
  const auto k = kernel_of({"a", "b"});
  cycle_record left;
  left.cycle_id = "c1";
  left.kernel_id = "default";
  left.started_at = t0;
  const std::vector<dispatch> both{row("a", dispatch_status::done),
                                   row("b", dispatch_status::pending)};
  const std::vector<dispatch> one{row("a", dispatch_status::done)};
  // A resumed cycle has its rows alone.
  auto resumed = cycle_core::resume(k, left, {"a"}, {}, t0);
  resumed.wait(both, false, {t0, 0s});
  REQUIRE(resumed.step() == cycle_step::wait);
  resumed.wait(one, false, {t0 + 1s, 1s});
  CHECK(resumed.record().status == cycle_status::error);
  CHECK(resumed.record().error.find("1 queued dispatches") != std::string::npos);
  // What the first loss had left is lost by the second.
  auto twice = waiting(k);
  twice.wait(std::vector<dispatch>{row("b", dispatch_status::pending)}, false, {t0, 0s});
  REQUIRE(twice.step() == cycle_step::act);
  twice.act({}, {t0, 0s});
  twice.wait(one, false, {t0 + 1s, 1s});
  CHECK(twice.record().status == cycle_status::error);
  // One that came back is not.
  auto back = cycle_core::resume(k, left, {"a"}, {}, t0);
  for (const auto& rows : {both, std::vector<dispatch>{row("a", dispatch_status::pending)}, both})
    back.wait(rows, false, {t0, 0s});
  back.wait(std::vector<dispatch>{row("a", dispatch_status::done), row("b", dispatch_status::done)},
            false, {t0 + 1s, 1s});
  CHECK(back.record().status == cycle_status::success);
}

TEST_CASE("cycle: one whose row stands is only recorded to its end") {
  const auto k = kernel_of({"a"});
  cycle_record left;
  left.cycle_id = "c1";
  left.kernel_id = "default";
  left.started_at = t0;
  left.status = cycle_status::partial_success;
  left.dispatched = 1;
  // Even a kernel without agents, and so without decisions, is not run again.
  auto c = cycle_core::resume(k, left, {}, {}, t0);
  CHECK(c.step() == cycle_step::wait);
  c.wait(std::vector<dispatch>{row("a", dispatch_status::running)}, false, {t0 + 2s, 2s});
  CHECK(c.step() == cycle_step::gather);
  CHECK(c.record() == left);
}

TEST_CASE("cycle: what went wrong before the decisions survives a crash after them") {
  const auto k = kernel_of({"a"});
  cycle_core c(k, "c1", "node-a", slot(), t0, t0);
  c.carry({"told by the cycle before"});
  c.begin({});
  CHECK_FALSE(c.trouble_is_kept());
  c.perceive(fail(broken("no state")), gathered_context{});
  c.orient(orientation{}, {}, {}, ids(), t0);
  c.decide(fail(broken("no plan \xff")));
  const auto kept = c.trouble();
  REQUIRE_FALSE(kept.empty());
  c.act(fail(broken("store")), {t0, 0s});
  CHECK_FALSE(c.trouble_is_kept());
  c.act({}, {t0, 0s});
  CHECK(c.trouble_is_kept());

  cycle_record left;
  left.cycle_id = "c1";
  left.kernel_id = "default";
  left.started_at = t0;
  auto resumed = cycle_core::resume(k, left, {"a"}, kept, t0);
  resumed.carry({});
  CHECK(resumed.trouble_is_kept());
  resumed.wait(std::vector<dispatch>{}, false, {t0 + 1s, 1s});
  CHECK(resumed.record().status == cycle_status::error);
  for (const char* part : {"told by the cycle before", "no state", "no plan"})
    CHECK(resumed.record().error.find(part) != std::string::npos);

  auto torn = cycle_core::resume(k, left, {"a"}, kept.substr(0, 9), t0);
  torn.wait(std::vector<dispatch>{}, false, {t0 + 1s, 1s});
  CHECK(torn.record().error.find("cannot read the problems") != std::string::npos);
}

TEST_CASE("cycle: the status by its counts") {
  CHECK(status_of(0, 0, false) == cycle_status::success);
  CHECK(status_of(2, 2, false) == cycle_status::success);
  CHECK(status_of(2, 1, false) == cycle_status::partial_success);
  CHECK(status_of(2, 0, false) == cycle_status::failed);
  CHECK(status_of(0, 0, true) == cycle_status::error);
}

} // namespace boyd::cycle_core_test
