#include "actors/keeper/core.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

namespace boyd::keeper_core_test {

using namespace boyd;

namespace {

using core_type = keeper_core<std::string, int, int>; // the ticket is the request's number

std::vector<std::string> requests_of(const core_type::batch_type& batch) {
  std::vector<std::string> all;
  for (const auto& j : batch)
    all.push_back(j.request);
  return all;
}

} // namespace

TEST_CASE("a keeper joins what waits into one batch", "[keeper]") {
  core_type core({.queue = 10, .group = 3, .reserve = 0});
  for (int i = 0; i < 5; ++i)
    REQUIRE(core.accept(std::to_string(i), i));
  auto batch = core.next_batch();
  REQUIRE(batch);
  CHECK(requests_of(*batch) == std::vector<std::string>{"0", "1", "2"});
  CHECK(core.busy());
  CHECK_FALSE(core.next_batch());

  (*batch)[1].reply = 42;
  auto answers = core.complete(core.sequence());
  REQUIRE(answers.size() == 3);
  CHECK(answers[1].ticket == 1);
  CHECK(answers[1].reply == 42);
  CHECK(answers[0].reply.error().code == errc::bug); // left unanswered by the worker
  CHECK(requests_of(*core.next_batch()) == std::vector<std::string>{"3", "4"});
}

TEST_CASE("a keeper whose worker loses a request of its batch says so", "[keeper]") {
  core_type core({.queue = 10, .group = 3, .reserve = 0});
  for (int i = 0; i < 2; ++i)
    REQUIRE(core.accept(std::to_string(i), i));
  core.next_batch()->pop_back();
  CHECK_THROWS_AS(core.complete(core.sequence()), broken_invariant);
}

TEST_CASE("a full keeper refuses, but for what must not be refused", "[keeper]") {
  core_type core({.queue = 2, .group = 1, .reserve = 1});
  CHECK(core.accept("a", 0));
  CHECK(core.accept("b", 1));
  CHECK_FALSE(core.accept("c", 2));
  CHECK(core.accept("d", 3, true));
  CHECK_FALSE(core.accept("e", 4, true));
}

TEST_CASE("a dead worker's batch comes back in order, one request at a time", "[keeper]") {
  core_type core({.queue = 10, .group = 3, .reserve = 0});
  for (int i = 0; i < 4; ++i)
    core.accept(std::to_string(i), i);
  core.next_batch();
  const auto late = core.sequence();
  CHECK(core.worker_died("boom").empty());
  CHECK(core.complete(late).empty()); // the dead worker's last word
  for (int i = 0; i < 3; ++i) {
    auto batch = core.next_batch();
    REQUIRE(batch);
    CHECK(requests_of(*batch) == std::vector<std::string>{std::to_string(i)});
    core.complete(core.sequence());
  }
  CHECK(requests_of(*core.next_batch()) == std::vector<std::string>{"3"});
}

TEST_CASE("a request that ends every worker is answered", "[keeper]") {
  core_type core({.queue = 10, .group = 8, .reserve = 0});
  core.accept("poison", 0);
  core.accept("good", 1);
  core.next_batch();
  CHECK(core.worker_died("boom").empty());
  core.next_batch();
  auto answers = core.worker_died("boom again");
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].ticket == 0);
  CHECK(answers[0].reply.error().what.find("boom again") != std::string::npos);
  CHECK(requests_of(*core.next_batch()) == std::vector<std::string>{"good"});
}

TEST_CASE("every ticket is answered once, whatever workers do", "[keeper]") {
  REQUIRE(rc::check("once", [] {
    core_type core({.queue = 16, .group = 4, .reserve = 4});
    std::map<int, int> answered;
    std::map<int, int> accepted;
    int next = 0;
    const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4));
    const auto count = [&](const auto& answers) {
      for (const auto& a : answers)
        ++answered[a.ticket];
    };
    for (const int step : steps) {
      if (step == 0 && core.accept("r", next))
        ++accepted[next++];
      if (step == 1)
        core.next_batch();
      if (step == 2)
        count(core.complete(core.sequence()));
      if (step == 3)
        count(core.worker_died("x"));
    }
    for (const int ticket : core.drain())
      ++answered[ticket];
    RC_ASSERT(answered == accepted);
    RC_ASSERT(core.waiting() == 0u);
  }));
}

} // namespace boyd::keeper_core_test
