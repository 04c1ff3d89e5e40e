#include "boyd/core/limits.hpp"
#include "boyd/plan/slots.hpp"
#include "support/pch.hpp"
#include "unit/plan/fake_zones.hpp"

#include <rapidcheck.h>

#include <set>

namespace boyd::slots_test {

using namespace boyd;
using namespace boyd::test;
using boyd::config::misfire_policy;
using boyd::config::overlap_policy;

namespace {

config::schedule every_ten_minutes() {
  config::schedule s;
  s.expression = "*/10 * * * *";
  return s;
}

plan::slot_input input(const char* last, const char* now) {
  plan::slot_input in;
  in.kernel_id = "default";
  in.node_id = "node-1";
  in.last_slot = at(last);
  in.now = at(now);
  return in;
}

/// "10:10 open late" and so on, one word per fact.
std::vector<std::string> lines(const plan::slot_decision& d) {
  std::vector<std::string> out;
  for (const occurrence& row : d.rows)
    out.push_back(format_rfc3339(row.scheduled_at).substr(11, 5) + " " +
                  std::string{name_of(row.state)} + (row.late ? " late" : ""));
  return out;
}

using expected = std::vector<std::string>;

} // namespace

TEST_CASE("a slot in time is opened once, and the next look is at the next slot") {
  const auto rule = rule_of(every_ten_minutes());
  const auto d = decide_slots(rule, input("2026-02-13T10:00:00Z", "2026-02-13T10:10:00Z"));
  CHECK(lines(d) == expected{"10:10 open"});
  CHECK(d.rows[0].kernel_id == "default");
  CHECK(d.rows[0].node_id == "node-1");
  CHECK(d.rows[0].trigger == "schedule");
  CHECK_FALSE(d.rows[0].finished_at.has_value());
  CHECK(*d.next_slot == at("2026-02-13T10:20:00Z"));
  CHECK(d.look_again == at("2026-02-13T10:11:00Z")); // the clock is looked at every minute

  const auto quiet = decide_slots(rule, input("2026-02-13T10:10:00Z", "2026-02-13T10:19:30Z"));
  CHECK(quiet.rows.empty());
  CHECK(quiet.look_again == at("2026-02-13T10:20:00Z"));
}

TEST_CASE("at: opened once, late after a downtime, and never again") {
  config::schedule s;
  s.expression = "at 2026-02-13T10:05";
  const auto early =
      decide_slots(rule_of(s), input("2026-02-12T00:00:00Z", "2026-02-13T10:04:50Z"));
  CHECK(early.rows.empty());
  CHECK(early.look_again == at("2026-02-13T10:05:00Z"));
  const auto due = decide_slots(rule_of(s), input("2026-02-12T00:00:00Z", "2026-02-13T10:05:00Z"));
  CHECK(lines(due) == expected{"10:05 open"});
  CHECK_FALSE(due.next_slot.has_value());
  CHECK(lines(decide_slots(rule_of(s), input("2026-02-12T00:00:00Z", "2026-02-15T00:00:00Z"))) ==
        expected{"10:05 open late"});
  CHECK(
      decide_slots(rule_of(s), input("2026-02-13T10:05:00Z", "2026-02-15T00:00:00Z")).rows.empty());
  s.misfire = misfire_policy::skip;
  CHECK(lines(decide_slots(rule_of(s), input("2026-02-12T00:00:00Z", "2026-02-15T00:00:00Z"))) ==
        expected{"10:05 missed"});
}

TEST_CASE("without a ledger, slots before the kernel was first seen do not count") {
  auto in = input("2026-02-13T10:00:00Z", "2026-02-13T10:30:00Z");
  in.last_slot.reset();
  in.since = at("2026-02-13T10:25:00Z");
  CHECK(lines(decide_slots(rule_of(every_ten_minutes()), in)) == expected{"10:30 open"});
  in.since = in.now;
  CHECK(decide_slots(rule_of(every_ten_minutes()), in).rows.empty());
}

TEST_CASE("misfire run_once: one late run after downtime") {
  const auto rule = rule_of(every_ten_minutes());
  const auto d = decide_slots(rule, input("2026-02-13T10:00:00Z", "2026-02-13T10:35:00Z"));
  CHECK(lines(d) == expected{"10:10 coalesced", "10:20 coalesced", "10:30 open late"});
  CHECK(d.rows[0].reason == "merged into the slot 2026-02-13T10:30:00Z");
  CHECK(d.rows[0].finished_at == at("2026-02-13T10:35:00Z"));
  // Within its grace the newest is not late; at the very end of the grace neither.
  CHECK(lines(decide_slots(rule, input("2026-02-13T10:10:00Z", "2026-02-13T10:31:00Z"))) ==
        expected{"10:20 coalesced", "10:30 open"});
}

TEST_CASE("the late run after a downtime waits behind the cycle that the downtime cut off") {
  auto s = every_ten_minutes();
  auto in = input("2026-02-13T10:00:00Z", "2026-02-13T10:35:00Z");
  in.running_cycle = "c1";
  CHECK(lines(decide_slots(rule_of(s), in)) ==
        expected{"10:10 coalesced", "10:20 coalesced", "10:30 skipped"});
  in.running_is_resumed = true;
  CHECK(lines(decide_slots(rule_of(s), in)) ==
        expected{"10:10 coalesced", "10:20 coalesced", "10:30 open late"});
  // There is one; a slot that comes in time follows the overlap rule.
  in.waiting = 1;
  CHECK(lines(decide_slots(rule_of(s), in)).back() == "10:30 skipped");
  in.waiting = 0;
  CHECK(lines(decide_slots(rule_of(s), input("2026-02-13T10:20:00Z", "2026-02-13T10:30:10Z"))) ==
        expected{"10:30 open"});
  in = input("2026-02-13T10:20:00Z", "2026-02-13T10:30:10Z");
  in.running_cycle = "c1";
  in.running_is_resumed = true;
  CHECK(lines(decide_slots(rule_of(s), in)) == expected{"10:30 skipped"});
}

TEST_CASE("misfire skip: what is past its grace is missed") {
  auto s = every_ten_minutes();
  s.misfire = misfire_policy::skip;
  CHECK(lines(decide_slots(rule_of(s), input("2026-02-13T10:00:00Z", "2026-02-13T10:25:00Z"))) ==
        expected{"10:10 missed", "10:20 missed"});
  const auto d = decide_slots(rule_of(s), input("2026-02-13T10:00:00Z", "2026-02-13T10:20:59Z"));
  CHECK(lines(d) == expected{"10:10 missed", "10:20 open"});
  CHECK(d.rows[0].reason == "too late: grace period of 1m");
}

TEST_CASE("misfire all: every slot runs, in order") {
  auto s = every_ten_minutes();
  s.misfire = misfire_policy::all;
  auto in = input("2026-02-13T10:00:00Z", "2026-02-13T10:30:10Z");
  CHECK(lines(decide_slots(rule_of(s), in)) ==
        expected{"10:10 open late", "10:20 open late", "10:30 open"});
  in.running_cycle = "c1"; // what comes in time follows the overlap rule
  CHECK(lines(decide_slots(rule_of(s), in)) ==
        expected{"10:10 open late", "10:20 open late", "10:30 skipped"});
  in.waiting = limits::caught_up_slots - 1;
  CHECK(lines(decide_slots(rule_of(s), in)) ==
        expected{"10:10 open late", "10:20 missed", "10:30 skipped"});
}

TEST_CASE("a long downtime costs a bounded number of rows") {
  auto s = every_ten_minutes();
  s.expression = "@every 1s";
  for (const auto policy : {misfire_policy::run_once, misfire_policy::skip, misfire_policy::all}) {
    s.misfire = policy;
    const auto d = decide_slots(rule_of(s), input("2024-02-13T10:00:00Z", "2026-02-13T10:00:00Z"));
    REQUIRE(d.rows.size() == limits::caught_up_slots + 1);
    const auto& summary = d.rows.front();
    CHECK(summary.scheduled_at == at("2024-02-13T10:00:01Z"));
    CHECK(summary.state == (policy == misfire_policy::run_once ? occurrence_state::coalesced
                                                               : occurrence_state::missed));
    CHECK(plan::stands_until(summary) == d.rows[1].scheduled_at - 1s);
    CHECK_FALSE(plan::stands_until(d.rows[1]).has_value());
    CHECK(d.rows.back().scheduled_at == at("2026-02-13T10:00:00Z"));
    CHECK(d.rows.back().state == occurrence_state::open);
  }
}

TEST_CASE("overlap: skip, queue_one, cancel") {
  auto s = every_ten_minutes();
  auto in = input("2026-02-13T10:00:00Z", "2026-02-13T10:10:00Z");
  in.running_cycle = "c1";
  auto d = decide_slots(rule_of(s), in);
  CHECK(lines(d) == expected{"10:10 skipped"});
  CHECK(d.rows[0].reason == "running: cycle c1 is still running");
  CHECK_FALSE(d.cancel_running);

  s.overlap = overlap_policy::queue_one;
  CHECK(lines(decide_slots(rule_of(s), in)) == expected{"10:10 open"});
  in.waiting = 1;
  CHECK(lines(decide_slots(rule_of(s), in)) == expected{"10:10 coalesced"});

  s.overlap = overlap_policy::cancel;
  d = decide_slots(rule_of(s), in);
  CHECK(lines(d) == expected{"10:10 coalesced"});
  CHECK_FALSE(d.cancel_running); // asked for already
  in.waiting = 0;
  d = decide_slots(rule_of(s), in);
  CHECK(lines(d) == expected{"10:10 open"});
  CHECK(d.cancel_running);
  in.running_cycle.clear();
  CHECK_FALSE(decide_slots(rule_of(s), in).cancel_running);
}

TEST_CASE("a paused kernel records its slots as skipped") {
  auto in = input("2026-02-13T10:00:00Z", "2026-02-13T10:35:00Z");
  in.paused = "holiday";
  const auto d = decide_slots(rule_of(every_ten_minutes()), in);
  CHECK(lines(d) == expected{"10:10 skipped", "10:20 skipped", "10:30 skipped"});
  CHECK(d.rows[0].reason == "paused: holiday");
}

TEST_CASE("jitter delays the start, not the slot") {
  auto s = every_ten_minutes();
  s.jitter = 5min;
  const auto rule = rule_of(s);
  const auto slot = at("2026-02-13T10:10:00Z");
  const auto due = rule.due_at("default", slot);
  REQUIRE(due > slot);
  auto in = input("2026-02-13T10:00:00Z", "2026-02-13T10:10:00Z");
  in.now = due - 1ms;
  const auto before = decide_slots(rule, in);
  CHECK(before.rows.empty());
  CHECK(before.next_slot == slot);
  CHECK(before.look_again == due);
  in.now = due + s.grace;
  CHECK(lines(decide_slots(rule, in)) == expected{"10:10 open"});
}

TEST_CASE(
    "case 23 clock-step: an hour back fires nothing twice, an hour on makes up for it by policy") {
  const auto rule = rule_of(every_ten_minutes());
  const auto back = decide_slots(rule, input("2026-02-13T10:10:00Z", "2026-02-13T09:10:00Z"));
  CHECK(back.rows.empty());
  CHECK(*back.next_slot == at("2026-02-13T10:20:00Z"));
  CHECK(back.look_again == at("2026-02-13T09:11:00Z"));
  const auto on = decide_slots(rule, input("2026-02-13T10:10:00Z", "2026-02-13T11:10:00Z"));
  CHECK(on.rows.size() == 6);
  CHECK(lines(on).back() == "11:10 open");
}

TEST_CASE("clock-step: a ledger row from a clock that was years ahead stops nothing") {
  const auto rule = rule_of(every_ten_minutes());
  const auto d = decide_slots(rule, input("2038-01-01T00:00:00Z", "2026-02-13T10:10:30Z"));
  CHECK(lines(d) == expected{"10:10 open"});
  CHECK(*d.next_slot == at("2026-02-13T10:20:00Z"));
}

TEST_CASE("case 23 clock-step: under any clock each slot gets one row, and none is forgotten") {
  REQUIRE(rc::check("one row per slot", [] {
    auto s = every_ten_minutes();
    s.misfire =
        *rc::gen::element(misfire_policy::run_once, misfire_policy::skip, misfire_policy::all);
    s.overlap =
        *rc::gen::element(overlap_policy::skip, overlap_policy::queue_one, overlap_policy::cancel);
    s.jitter = milliseconds{*rc::gen::element(0, 240'000)};
    const auto rule = rule_of(s);
    auto in = input("2026-02-13T10:00:00Z", "2026-02-13T10:00:00Z");
    const auto first = *in.last_slot;
    std::set<utc_time> ledger;
    auto furthest = in.now;
    for (int i = 0; i < 60; ++i) {
      // Mostly a few minutes on, sometimes hours on or up to an hour back.
      const int minutes = *rc::gen::oneOf(rc::gen::inRange(0, 15), rc::gen::inRange(-60, 300));
      in.now += std::chrono::minutes{minutes};
      furthest = std::max(furthest, in.now);
      in.running_cycle = *rc::gen::element("", "c1");
      in.waiting = static_cast<std::size_t>(*rc::gen::inRange(0, 3));
      const auto d = decide_slots(rule, in);
      RC_ASSERT(d.look_again > in.now);
      RC_ASSERT(d.look_again <= in.now + limits::clock_check);
      for (const occurrence& row : d.rows) {
        RC_ASSERT(ledger.insert(row.scheduled_at).second);
        RC_ASSERT(row.scheduled_at <= in.now);
      }
      const auto last = plan::last_scheduled(d.rows);
      in.last_slot = last ? last : in.last_slot;
    }
    for (auto slot = rule.next_after(first); slot && rule.due_at("default", *slot) <= furthest;
         slot = rule.next_after(*slot))
      RC_ASSERT(ledger.contains(*slot));
  }));
}

} // namespace boyd::slots_test
