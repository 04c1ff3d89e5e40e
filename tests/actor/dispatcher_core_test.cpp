#include "actors/dispatcher/core.hpp"
#include "boyd/queue/transitions.hpp"
#include "support/pch.hpp"

namespace boyd::dispatcher_core_test {

using namespace boyd;

namespace {

constexpr steady_time t0{milliseconds{1'000'000}};

claimed_dispatch claimed(const std::string& id, std::int64_t fence = 1) {
  claimed_dispatch c;
  c.row.dispatch_id = id;
  c.row.status = dispatch_status::running;
  c.row.fence = fence;
  c.row.attempt = 1;
  c.lease = 30s;
  return c;
}

run_outcome good() {
  run_outcome o;
  o.execution = execution_verdict::succeeded;
  return o;
}

dispatcher_limits two_at_once(bool shared = false) {
  dispatcher_limits l;
  l.max_concurrent = 2;
  l.shared_store = shared;
  return l;
}

/// A core that runs `ids`, permits and all.
dispatcher_core running(std::vector<std::string> ids, bool shared = false) {
  dispatcher_core core(two_at_once(shared));
  core.due(ids.size(), 10);
  (void)core.decide(t0);
  core.granted(static_cast<int>(ids.size()));
  (void)core.decide(t0);
  std::vector<claimed_dispatch> rows;
  for (const auto& id : ids)
    rows.push_back(claimed(id));
  core.claimed(std::move(rows), t0);
  (void)core.decide(t0);
  return core;
}

} // namespace

TEST_CASE("dispatcher: a permit first, then a claim, then a start") {
  dispatcher_core core(two_at_once());
  CHECK_FALSE(core.decide(t0).wish);
  core.due(5, 10);
  auto todo = core.decide(t0);
  REQUIRE(todo.wish);
  CHECK(*todo.wish == 2);
  CHECK(todo.claim == 0);
  core.granted(1);
  todo = core.decide(t0);
  CHECK(todo.claim == 1);
  CHECK(core.decide(t0).claim == 0); // one claim at a time
  core.claimed({claimed("a")}, t0);
  todo = core.decide(t0);
  REQUIRE(todo.start.size() == 1);
  CHECK(core.running() == 1);
}

TEST_CASE(
    "case 26 undecodable-job: a dispatcher settles it with its reason and starts the others") {
  dispatcher_core core(two_at_once());
  core.due(2, 10);
  (void)core.decide(t0);
  core.granted(2);
  (void)core.decide(t0);
  queue::queue_row broken;
  broken.d.dispatch_id = "broken";
  broken.d.metadata_json = "{\"v\":";
  queue::claim_row(broken, "n1", 30s, utc_time{});
  core.claimed({{broken.d, 30s}, claimed("whole")}, t0);
  const auto todo = core.decide(t0);
  REQUIRE(todo.start.size() == 1);
  CHECK(todo.start[0]->row.dispatch_id == "whole");
  REQUIRE(todo.settle.size() == 1);
  CHECK(todo.settle[0].dispatch_id == "broken");
  CHECK(todo.settle[0].to == settle_to::failed);
  CHECK(todo.settle[0].outcome.error.find("its metadata is not a JSON object") !=
        std::string::npos);
  CHECK(core.running() == 1);
}

TEST_CASE("dispatcher: permits that are of no use go back") {
  dispatcher_core core(two_at_once());
  core.due(1, 10);
  (void)core.decide(t0);
  core.granted(1);
  (void)core.decide(t0);
  core.claimed({}, t0); // somebody else was faster
  CHECK(core.decide(t0).permits_back == 1);
  core.due(1, 10);
  (void)core.decide(t0);
  core.granted(1);
  (void)core.decide(t0);
  core.claim_failed();
  CHECK(core.decide(t0).permits_back == 1);
}

TEST_CASE("dispatcher: an end is settled once, and its permit goes back to the broker") {
  auto core = running({"a"});
  core.finished("a", 1, good(), 0.5);
  core.finished("a", 1, good(), 0.5);
  auto todo = core.decide(t0);
  REQUIRE(todo.settle.size() == 1);
  CHECK(todo.settle[0].to == settle_to::done);
  CHECK(todo.permits_back == 1);
  CHECK(core.running() == 0);
}

TEST_CASE("dispatcher: an end under another fence is not ours") {
  auto core = running({"a"});
  core.finished("a", 7, good(), 0.5);
  CHECK(core.decide(t0).settle.empty());
  CHECK(core.running() == 1);
}

TEST_CASE("dispatcher: a settlement that the store could not take is offered again") {
  auto core = running({"a"});
  core.finished("a", 1, good(), 0.5);
  auto todo = core.decide(t0);
  core.settle_failed(todo.settle);
  CHECK(core.decide(t0 + 1s).settle.size() == 1);
}

TEST_CASE("dispatcher: unsettled results take the place of new work") {
  auto core = running({"a", "b"});
  core.finished("a", 1, good(), 0.5);
  core.finished("b", 1, good(), 0.5);
  (void)core.decide(t0); // both are with the store
  core.due(9, 10);
  CHECK_FALSE(core.decide(t0).wish);
}

TEST_CASE("dispatcher: a full claim means that there may be more, a short one that there is none") {
  auto limits = two_at_once();
  limits.max_concurrent = 100;
  for (const std::size_t count : {std::size_t{2}, std::size_t{20}}) {
    dispatcher_core core(limits);
    core.due(count, 10);
    (void)core.decide(t0);
    core.granted(static_cast<int>(count));
    REQUIRE(core.decide(t0).claim == count);
    std::vector<claimed_dispatch> rows;
    for (std::size_t i = 0; i < count; ++i)
      rows.push_back(claimed("row " + std::to_string(i)));
    core.claimed(std::move(rows), t0);
    // The count of a few is believed.
    CHECK(core.waiting() == (count == 2 ? 0 : 2 * count));
  }
  dispatcher_core other(two_at_once());
  other.due(5, 1);
  (void)other.decide(t0);
  other.granted(2);
  (void)other.decide(t0);
  other.claimed({claimed("a")}, t0);
  CHECK(other.waiting() == 0);
}

TEST_CASE("dispatcher: what is told beside the rest is added to it") {
  dispatcher_core core(two_at_once());
  core.more_due(1, 3);
  CHECK(core.waiting() == 1);
  CHECK(core.priority() == 3);
  core.more_due(2, 1);
  CHECK(core.waiting() == 3);
  CHECK(core.priority() == 3);
  core.due(1, 1);
  CHECK(core.waiting() == 1);
  CHECK(core.priority() == 1);
}

TEST_CASE("dispatcher: draining claims nothing, gives back what it just got, and says when empty") {
  dispatcher_core core(two_at_once());
  core.due(2, 10);
  (void)core.decide(t0);
  core.granted(2);
  (void)core.decide(t0);
  core.drain();
  core.claimed({claimed("a"), claimed("b")}, t0);
  auto todo = core.decide(t0);
  CHECK(todo.start.empty());
  REQUIRE(todo.settle.size() == 2);
  CHECK(todo.settle[0].to == settle_to::release);
  CHECK_FALSE(todo.drained);
  core.settled(todo.settle);
  CHECK(core.decide(t0).drained);
  CHECK_FALSE(core.decide(t0).drained); // said once
}

TEST_CASE("case 31 drain: dispatcher: work that is due while it drains is not claimed, with places "
          "free and places that become free") {
  auto core = running({"a"});
  core.drain();
  core.due(3, 10);
  auto todo = core.decide(t0);
  CHECK(todo.wish.value_or(0) == 0);
  CHECK(todo.claim == 0);
  core.granted(1); // asked for before the drain
  todo = core.decide(t0);
  CHECK(todo.claim == 0);
  CHECK(todo.permits_back == 1);
  core.finished("a", 1, good(), 0.5);
  todo = core.decide(t0);
  CHECK(todo.wish.value_or(0) == 0);
  CHECK(todo.claim == 0);
  CHECK(todo.settle.size() == 1);
}

TEST_CASE("dispatcher: shutdown gives attempts back, an operator's cancel ends them") {
  auto core = running({"a", "b"});
  core.cancel("a", cancel_cause::operator_request);
  core.drain();
  core.cancel_all(cancel_cause::shutdown);
  auto todo = core.decide(t0);
  CHECK(todo.cancel.size() == 2);
  run_outcome ended;
  ended.execution = execution_verdict::cancelled;
  core.finished("a", 1, ended, 0.5);
  core.finished("b", 1, ended, 0.5);
  todo = core.decide(t0);
  REQUIRE(todo.settle.size() == 2);
  CHECK(todo.settle[0].to == settle_to::cancelled);
  CHECK(todo.settle[1].to == settle_to::release);
}

TEST_CASE("dispatcher: leases are renewed in time") {
  auto core = running({"a"}, true);
  CHECK(core.decide(t0 + 5s).renew.empty());
  auto todo = core.decide(t0 + 11s);
  REQUIRE(todo.renew.size() == 1);
  core.renewed(todo.renew, {}, t0 + 11s);
  CHECK(core.decide(t0 + 35s).cancel.empty());
}

TEST_CASE("dispatcher: a renewal that failed is not asked for again in the same moment") {
  auto core = running({"a"}, true);
  REQUIRE(core.decide(t0 + 11s).renew.size() == 1);
  core.renew_failed(t0 + 11s);
  CHECK(core.decide(t0 + 11s).renew.empty());
  CHECK(core.decide(t0 + 12s).renew.size() == 1);
}

TEST_CASE("dispatcher: on a shared store an attempt ends when its lease does") {
  auto shared = running({"a"}, true);
  auto todo = shared.decide(t0 + 40s);
  REQUIRE(todo.cancel.size() == 1);
  CHECK(todo.cancel[0].second == cancel_cause::lease_lost);
  auto alone = running({"a"}, false);
  CHECK(alone.decide(t0 + 40s).cancel.empty());
}

TEST_CASE("dispatcher: a row that comes again begins when its older attempt has ended") {
  auto core = running({"a"}, true);
  core.due(1, 10);
  (void)core.decide(t0);
  core.granted(1);
  REQUIRE(core.decide(t0).claim == 1);
  core.claimed({claimed("a", 2)}, t0);
  auto todo = core.decide(t0);
  CHECK(todo.start.empty());
  CHECK(todo.permits_back == 0);
  REQUIRE(todo.cancel.size() == 1);
  CHECK(todo.cancel[0].second == cancel_cause::lease_lost);
  CHECK(core.has("a", 1));
  CHECK(core.has("a", 2));
  // It holds a place: with two at once there is none left.
  core.due(5, 10);
  CHECK_FALSE(core.decide(t0).wish.value_or(0) > 0);

  SECTION("the older one ends") {
    core.finished("a", 1, good(), 0);
    todo = core.decide(t0);
    REQUIRE(todo.start.size() == 1);
    CHECK(todo.start[0]->row.fence == 2);
    CHECK(todo.permits_back == 1);
    REQUIRE(todo.settle.size() == 1); // for the store to refuse, and to log
    CHECK(todo.settle[0].fence == 1);
    core.settled(todo.settle);
    // The lease of the new one is kept.
    todo = core.decide(t0 + 10s);
    REQUIRE(todo.renew.size() == 1);
    CHECK(todo.renew[0].fence == 2);
    core.finished("a", 2, good(), 0);
    todo = core.decide(t0 + 11s);
    CHECK(todo.permits_back == 1);
    CHECK(core.running() == 0);
  }
  SECTION("an operator's cancel ends both") {
    core.cancel("a", cancel_cause::operator_request);
    todo = core.decide(t0);
    REQUIRE(todo.settle.size() == 1);
    CHECK(todo.settle[0].fence == 2);
    CHECK(todo.settle[0].to == settle_to::cancelled);
    CHECK(todo.permits_back == 1);
    core.finished("a", 1, good(), 0);
    todo = core.decide(t0);
    CHECK(todo.start.empty());
    CHECK(todo.permits_back == 1);
  }
  SECTION("a drain gives it back unstarted") {
    core.drain();
    todo = core.decide(t0);
    REQUIRE(todo.settle.size() == 1);
    CHECK(todo.settle[0].fence == 2);
    CHECK(todo.settle[0].to == settle_to::release);
    CHECK(todo.permits_back == 1);
    CHECK_FALSE(todo.drained);
    core.settled(todo.settle);
    core.finished("a", 1, good(), 0);
    todo = core.decide(t0);
    CHECK(todo.start.empty());
    CHECK(todo.permits_back == 1);
    core.settled(todo.settle);
    CHECK(core.decide(t0).drained);
  }
  SECTION("its lease is lost, too, before the older one has ended") {
    todo = core.decide(t0 + 30s);
    REQUIRE(todo.settle.size() == 1);
    CHECK(todo.settle[0].fence == 2);
    CHECK(todo.settle[0].to == settle_to::release);
    CHECK(todo.permits_back == 1);
    CHECK_FALSE(core.has("a", 3));
  }
  SECTION("it comes a third time") {
    core.settled({});
    core.finished("a", 1, good(), 0);
    (void)core.decide(t0);
    core.claimed({claimed("a", 2)}, t0); // told again
    CHECK(core.decide(t0).cancel.empty());
    CHECK(core.running() == 1);
  }
}

TEST_CASE("dispatcher: an end belongs to it until the store has taken it") {
  auto core = running({"a"});
  CHECK(core.has("a", 1));
  CHECK_FALSE(core.has("a", 2));
  core.finished("a", 1, good(), 0);
  CHECK(core.has("a", 1));
  const auto todo = core.decide(t0);
  CHECK(core.has("a", 1));
  core.settle_failed(todo.settle);
  CHECK(core.has("a", 1));
  CHECK(core.decide(t0).settle.size() == 1);
  core.settled(todo.settle);
  CHECK_FALSE(core.has("a", 1));
}

TEST_CASE("dispatcher: what others' attempts came to takes part in places and in the drain") {
  auto core = running({"a"});
  settlement left;
  left.dispatch_id = "left";
  left.fence = 7;
  core.settle({left});
  CHECK(core.has("left", 7));
  core.finished("a", 1, good(), 0);
  core.drain();
  auto todo = core.decide(t0);
  REQUIRE(todo.settle.size() == 2);
  const std::vector<settlement> own{todo.settle.back()};
  core.settled(own);
  CHECK_FALSE(core.decide(t0).drained);
  core.settled({todo.settle.front()});
  CHECK(core.decide(t0).drained);
}

TEST_CASE("dispatcher: a lost lease is told of what has its grace already, and its cause stays") {
  auto core = running({"a"}, true);
  core.cancel("a", cancel_cause::operator_request);
  REQUIRE(core.decide(t0 + 26s).cancel.size() == 1);
  REQUIRE(core.next_loss() == t0 + 27s);
  auto todo = core.decide(t0 + 27s);
  REQUIRE(todo.cancel.size() == 1);
  CHECK(todo.cancel[0].second == cancel_cause::lease_lost);
  run_outcome ended;
  ended.execution = execution_verdict::cancelled;
  core.finished("a", 1, ended, 0.5);
  todo = core.decide(t0 + 27s);
  REQUIRE(todo.settle.size() == 1);
  CHECK(todo.settle[0].to == settle_to::cancelled);
  CHECK_FALSE(running({"a"}, false).next_loss());
}

TEST_CASE("dispatcher: the most that is counted is no count: small claims go on to the first short "
          "one") {
  dispatcher_core core(two_at_once());
  core.due(queue::due_count_cap, 10);
  int number = 0;
  // More rows than were counted, two at a time.
  for (std::uint64_t taken = 0; taken < 2 * queue::due_count_cap; taken += 2) {
    (void)core.decide(t0);
    core.granted(2);
    REQUIRE(core.decide(t0).claim == 2);
    const auto a = "r" + std::to_string(++number);
    const auto b = "r" + std::to_string(++number);
    core.claimed({claimed(a.c_str()), claimed(b.c_str())}, t0);
    (void)core.decide(t0);
    for (const auto& id : {a, b})
      core.finished(id, 1, {}, 0.5);
    core.settled(core.decide(t0).settle);
  }
  CHECK(core.waiting() > 0);
  (void)core.decide(t0);
  core.granted(2);
  REQUIRE(core.decide(t0).claim == 2);
  core.claimed({}, t0);
  CHECK(core.waiting() == 0);
}

TEST_CASE("dispatcher: what another node tells of during a claim is claimed after it") {
  for (const bool elsewhere : {false, true}) {
    dispatcher_core core(two_at_once());
    core.due(1, 10);
    (void)core.decide(t0);
    core.granted(1);
    REQUIRE(core.decide(t0).claim == 1);
    core.more_due(1, 10, elsewhere);
    // The claim was made before, and somebody else has taken what was known.
    core.claimed({}, t0);
    CHECK(core.waiting() == (elsewhere ? 1 : 0));
  }
}

TEST_CASE("dispatcher: a cancel that overtakes the claim's answer ends the row unstarted") {
  dispatcher_core core(two_at_once());
  core.cancel("a", cancel_cause::operator_request); // nothing is under way: not ours
  core.due(2, 10);
  (void)core.decide(t0);
  core.granted(2);
  REQUIRE(core.decide(t0).claim == 2);
  core.cancel("b", cancel_cause::operator_request);
  core.claimed({claimed("a"), claimed("b")}, t0);
  auto todo = core.decide(t0);
  REQUIRE(todo.start.size() == 1);
  CHECK(todo.start[0]->row.dispatch_id == "a");
  REQUIRE(todo.settle.size() == 1);
  CHECK(todo.settle[0].dispatch_id == "b");
  CHECK(todo.settle[0].to == settle_to::cancelled);
  CHECK(todo.permits_back == 1);
}

TEST_CASE("dispatcher: every drain order is answered") {
  dispatcher_core core(two_at_once());
  core.drain();
  CHECK(core.decide(t0).drained);
  CHECK_FALSE(core.decide(t0).drained);
  core.drain();
  CHECK(core.decide(t0).drained);
}

TEST_CASE("dispatcher: new lease times hold for the next lease when nothing is held") {
  auto core = running({"a"}, true);
  auto limits = two_at_once(true);
  limits.lease = 90s;
  limits.renewal = 60s;
  core.set_limits(limits);
  CHECK(core.decide(t0 + 11s).renew.size() == 1); // the old lease keeps its times
  core.finished("a", 1, good(), 0.5);
  core.settled(core.decide(t0 + 12s).settle);
  core.due(1, 10);
  (void)core.decide(t0 + 12s);
  core.granted(1);
  (void)core.decide(t0 + 12s);
  core.renew_failed(t0 + 12s);
  core.claimed({claimed("b")}, t0 + 12s);
  CHECK(core.decide(t0 + 30s).renew.empty());
}

} // namespace boyd::dispatcher_core_test
