#include "actor/store_session_fixture.hpp"
#include "support/sim/disk.hpp"

#include <filesystem>

namespace boyd::store_session_test {

TEST_CASE("a spooled result that somebody is in the way of keeps neither the others out nor the "
          "store closed, and is recorded later",
          "[store]") {
  fixture f;
  spool_results(f, 100, 10);
  f.plan->held = {"d37"};
  CHECK(ask_one(f));
  CHECK(f.plan->settled.size() == 99);
  CHECK(f.plan->opened == 1);
  const auto health = f.session.health();
  CHECK_FALSE(health.ok);
  CHECK_THAT(health.reason, Catch::Matchers::Contains("in the spool: 1") &&
                                Catch::Matchers::Contains("held a lock too long"));
  // Not again before it is time, and less and less often.
  const auto tries = [&] {
    const auto before = f.plan->seen.size();
    CHECK(ask_one(f));
    return f.plan->seen.size() - before;
  };
  CHECK(tries() == 1);
  f.clock->passed += 1s;
  CHECK(tries() == 2);
  f.clock->passed += 1s;
  CHECK(tries() == 1);
  // What comes after it does not overtake it.
  store_request late;
  settlement given_back;
  given_back.dispatch_id = "d37";
  given_back.fence = 1;
  given_back.to = settle_to::release;
  late.operations.emplace_back(store::settle{"n1", {given_back}});
  jobs one;
  one.emplace_back(late);
  f.plan->held.clear();
  f.session.perform(one);
  REQUIRE(one.front().reply);
  CHECK(f.plan->settled.size() == 99);
  f.clock->passed += 1s;
  f.session.probe();
  CHECK(f.plan->settled.size() == 100);
  CHECK(f.plan->settled.back() == "d37");
  CHECK(f.session.health().ok);
  CHECK_FALSE(std::filesystem::exists(f.directory.file("spool.jsonl")));
  f.session.perform(one);
  CHECK(f.plan->settled.size() == 101);
}

TEST_CASE("results that somebody is in the way of are worked off in turns beside other work",
          "[store]") {
  fixture f;
  spool_results(f, 1000, 10);
  f.plan->holds_all = true;
  f.plan->waits = [&] { f.clock->passed += 250ms; };
  jobs one;
  one.emplace_back(request_of({"a"}));
  f.session.perform(one);
  CHECK(one.front().reply.error().code == errc::timed_out);
  CHECK(f.clock->passed < 1'000'000ms + 60s);
  f.plan->holds_all = false;
  f.plan->settles = [&] { f.clock->passed += 1s; };
  int turns = 0;
  for (; !f.session.health().ok; ++turns) {
    REQUIRE(turns < 100);
    f.clock->passed += 1s;
    CHECK(ask_one(f));
  }
  CHECK(turns > 2);
  CHECK(f.plan->opened == 1);
  CHECK(f.plan->settled.size() == 1000);
  CHECK(std::set(f.plan->settled.begin(), f.plan->settled.end()).size() == 1000);
}

TEST_CASE("a full home keeps no store away that works: the spool is worked off, each result once",
          "[store]") {
  auto disk = std::make_shared<sim::sim_disk>();
  fixture f(disk);
  REQUIRE(disk->make_directories(f.directory.path()));
  constexpr std::size_t results = 1000;
  spool_results(f, results, 10'000);
  // What is left cannot be written anew, turn after turn.
  disk->fail_next(sim::disk_op::rename, sim::disk_fault::no_space, 1000);
  f.plan->settles = [&] { f.clock->passed += 2s; };
  f.plan->held = {"d999"};
  for (int turns = 0; f.plan->settled.size() < results - 1; ++turns) {
    REQUIRE(turns < 200);
    f.clock->passed += 1s;
    (void)ask_one(f);
  }
  f.plan->held.clear();
  for (int turns = 0; !f.session.health().ok; ++turns) {
    REQUIRE(turns < 200);
    f.clock->passed += 1s;
    CHECK(ask_one(f));
  }
  CHECK(f.plan->settled.size() == results);
  CHECK(std::set(f.plan->settled.begin(), f.plan->settled.end()).size() == results);
}

TEST_CASE("many results that somebody is in the way of hold other work up for a moment only, and "
          "the untried ones come first the next time",
          "[store]") {
  fixture f;
  spool_results(f, 200, 10);
  for (int i = 0; i < 100; ++i)
    f.plan->held.insert("d" + std::to_string(i));
  f.plan->waits = [&] { f.clock->passed += 250ms; };
  CHECK(ask_one(f)); // opened
  const auto at_once = f.plan->settled.size();
  for (int turns = 0; f.plan->settled.size() < 100; ++turns) {
    REQUIRE(turns < 60);
    f.clock->passed += 2s;
    const auto before = f.clock->passed;
    CHECK(ask_one(f));
    CHECK(f.clock->passed - before <= 1250ms);
  }
  CHECK(at_once < 100);
  CHECK(f.plan->opened == 1);
}

TEST_CASE("what has a result in the spool is not taken back to run again", "[store]") {
  fixture f;
  spool_results(f, 3, 10);
  f.plan->held = {"d1"};
  const auto take_back = [&] {
    store_request r;
    store::take_back op;
    op.node_id = "n1";
    r.operations.emplace_back(op);
    jobs one;
    one.emplace_back(std::move(r));
    f.session.perform(one);
    return one.front().reply;
  };
  const auto refused = take_back();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::timed_out);
  f.plan->held.clear();
  f.clock->passed += 2s;
  CHECK(take_back());
  CHECK(f.plan->settled.size() == 3);
}

TEST_CASE("results wait in the spool while another process holds the whole database", "[store]") {
  fixture f;
  CHECK(ask_one(f)); // opened
  using step = script::step;
  settlement item;
  item.dispatch_id = "d1";
  item.fence = 1;
  item.to = settle_to::done;
  jobs batch;
  batch.emplace_back(request_of({"a"}));
  store_request result;
  result.operations.emplace_back(store::settle{"n1", {item}});
  batch.emplace_back(std::move(result));
  f.plan->steps = {step::lock_it};
  f.session.perform(batch);
  REQUIRE_FALSE(batch[0].reply);
  CHECK(batch[0].reply.error().code == errc::locked);
  REQUIRE(batch[1].reply);
  CHECK(std::filesystem::exists(f.directory.file("spool.jsonl")));
  f.clock->passed += 2s;
  f.plan->steps = {step::lock_it};
  f.session.probe();
  CHECK(f.plan->settled.empty());
  f.clock->passed += 2s;
  f.session.probe();
  CHECK(f.plan->settled == std::vector<std::string>{"d1"});
  CHECK_FALSE(std::filesystem::exists(f.directory.file("spool.jsonl")));
  CHECK(f.plan->opened == 1);
}

TEST_CASE("a start beside another process that holds the database keeps its spool", "[store]") {
  fixture f;
  spool_results(f, 100, 10);
  f.plan->steps = {script::step::lock_it};
  CHECK(ask_one(f));
  CHECK(f.plan->settled.size() < 100); // the group that met the lock waits
  for (int i = 0; i < 10 && f.plan->settled.size() < 100; ++i) {
    f.clock->passed += 2s;
    CHECK(ask_one(f));
  }
  CHECK(f.plan->settled.size() == 100);
  CHECK(f.plan->opened == 1);
}

TEST_CASE("somebody's lock is in the way of the request that wants it, and of no other",
          "[store]") {
  fixture f;
  f.plan->held = {"b"};
  auto batch = three_jobs();
  settlement item;
  item.dispatch_id = "d1";
  item.fence = 1;
  item.to = settle_to::done;
  store_request free;
  free.operations.emplace_back(store::settle{"n1", {item}});
  item.dispatch_id = "held";
  store_request hindered;
  hindered.operations.emplace_back(store::settle{"n1", {item}});
  batch.emplace_back(std::move(free));
  batch.emplace_back(std::move(hindered));
  f.plan->held.insert("held");
  f.session.perform(batch);
  REQUIRE_FALSE(batch[0].reply);
  CHECK(batch[0].reply.error().code == errc::timed_out);
  CHECK(category_of(batch[0].reply.error()) == error_category::transient);
  CHECK(batch[1].reply);
  CHECK(batch[2].reply);
  CHECK(batch[3].reply);
  // A result is safe in the spool.
  CHECK(batch[4].reply);
  CHECK(f.plan->settled == std::vector<std::string>{"d1"});
  CHECK(f.plan->opened == 1);
  f.plan->held.clear();
  f.clock->passed += 1s;
  f.session.probe();
  CHECK(f.plan->settled == std::vector<std::string>{"d1", "held"});
  CHECK(f.session.health().ok);
}

TEST_CASE("what the store says of itself stands while results that wait are recorded", "[store]") {
  fixture f;
  f.plan->concerns = {"session 7 has kept a transaction open"};
  CHECK(ask_one(f));
  f.session.probe();
  REQUIRE_FALSE(f.session.health().ok);
  f.plan->held = {"held"};
  store_request late;
  settlement done;
  done.dispatch_id = "held";
  done.fence = 1;
  late.operations.emplace_back(store::settle{"n1", {done}});
  jobs one;
  one.emplace_back(late);
  f.session.perform(one);
  REQUIRE(one.front().reply);
  CHECK_THAT(f.session.health().reason, Catch::Matchers::Contains("session 7") &&
                                            Catch::Matchers::Contains("in the spool: 1"));
  f.plan->held.clear();
  f.clock->passed += 1s;
  CHECK(ask_one(f)); // records it
  CHECK(f.plan->settled == std::vector<std::string>{"held"});
  CHECK_FALSE(f.session.health().ok);
  CHECK(f.session.health().reason == "session 7 has kept a transaction open");
}

TEST_CASE("renewals come before the parts that somebody is in the way of", "[store]") {
  fixture f;
  f.plan->waits = [&] { f.clock->passed += 6s; };
  jobs batch;
  for (int i = 0; i < 64; ++i) {
    f.plan->held.insert(std::to_string(i));
    batch.emplace_back(request_of({std::to_string(i)}));
  }
  store_request renewal;
  renewal.operations.emplace_back(store::renew_leases{"n1", {{"d", 1}}, 30s});
  batch.emplace_back(std::move(renewal));
  f.session.perform(batch);
  CHECK(batch.back().reply);
  CHECK(batch.front().reply.error().code == errc::timed_out);
}

TEST_CASE("a database that answers nothing in time is asked in parts for a while only, and its "
          "health says so when that goes on",
          "[store]") {
  fixture f;
  f.plan->waits = [&] { f.clock->passed += 6s; };
  f.plan->holds_all = true;
  jobs batch;
  for (int i = 0; i < 64; ++i)
    batch.emplace_back(request_of({std::to_string(i)}));
  f.session.perform(batch);
  for (const auto& j : batch)
    CHECK(j.reply.error().code == errc::timed_out);
  CHECK(f.plan->seen.size() == 3); // the whole and its halves
  CHECK(f.plan->opened == 1);
  const auto health = f.session.health();
  CHECK_FALSE(health.ok);
  CHECK_THAT(health.reason, Catch::Matchers::Contains("held a lock too long"));
  f.session.probe();
  CHECK(f.session.health().since == health.since);
  f.plan->holds_all = false;
  f.session.probe();
  CHECK(f.session.health().ok);
  CHECK(f.plan->opened == 1);
}

} // namespace boyd::store_session_test
