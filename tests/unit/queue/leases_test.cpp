#include "boyd/queue/leases.hpp"
#include "support/pch.hpp"

namespace boyd::leases_test {

using namespace boyd;
using namespace boyd::queue;

namespace {

steady_time at(std::int64_t ms) {
  return steady_time{milliseconds{ms}};
}

} // namespace

TEST_CASE("a lease is renewed in time and counts from the start of the call") {
  held_leases l(10s, 2s);
  l.granted("d", 1, at(0), 30s);
  REQUIRE(l.due(at(9'999)).empty());
  REQUIRE(l.due(at(10'000)).size() == 1);
  REQUIRE(l.next_loss() == at(28'000));
  l.renewed({{"d", 1}}, {}, at(10'000), 30s);
  REQUIRE(l.due(at(15'000)).empty());
  REQUIRE(l.take_lost(at(37'999)).empty());
  REQUIRE(l.take_lost(at(38'000)).size() == 1);
  REQUIRE(l.size() == 0);
  REQUIRE(!l.next_loss());
}

TEST_CASE("a refused renewal is a lost lease, a late answer changes nothing") {
  held_leases l(10s, 2s);
  l.granted("d", 2, at(20'000), 30s);
  l.renewed({{"d", 1}}, {"d"}, at(0), 30s);
  l.renewed({{"d", 2}}, {}, at(1'000), 30s);
  REQUIRE(l.take_lost(at(40'000)).empty());
  l.renewed({{"d", 2}}, {"d"}, at(30'000), 30s);
  REQUIRE(l.due(at(40'000)).empty());
  const auto lost = l.take_lost(at(30'000));
  REQUIRE(lost.size() == 1);
  REQUIRE(lost[0].fence == 2);
}

TEST_CASE("a settled lease is forgotten under its own fence only") {
  held_leases l;
  l.granted("d", 2, at(0), 30s);
  l.released("d", 1);
  REQUIRE(l.size() == 1);
  l.released("d", 2);
  REQUIRE(l.size() == 0);
}

} // namespace boyd::leases_test
