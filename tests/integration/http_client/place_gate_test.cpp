#include "src/adapters/curl/place_gate_internal.hpp"
#include "support/pch.hpp"

namespace boyd::place_gate_test {

using boyd::http_handle;
using boyd::adapters::curl_detail::place_gate;
using namespace std::chrono_literals;
using handles = std::vector<http_handle>;

namespace {
const place_gate::time t0{1000s};
const auto due = t0 + 10s;
} // namespace

TEST_CASE("place gate: one goes first, the others follow when it is connected", "[http_client]") {
  place_gate gate;
  CHECK(gate.enter("a", 1, due, t0));
  CHECK_FALSE(gate.enter("a", 2, due, t0));
  CHECK_FALSE(gate.enter("a", 3, due, t0));
  CHECK(gate.enter("b", 4, due, t0)); // another place
  CHECK(gate.waiting() == 2);
  CHECK(gate.connected("a", t0) == handles{2, 3});
  CHECK(gate.waiting() == 0);
  CHECK(gate.enter("a", 5, due, t0 + 1s)); // known to be good
  const auto later = t0 + place_gate::good_for;
  CHECK(gate.enter("a", 6, due, later)); // not any more: first again
  CHECK_FALSE(gate.enter("a", 7, due, later));
}

TEST_CASE("place gate: whom the first one's end concerns", "[http_client]") {
  place_gate gate;
  for (http_handle h = 1; h <= 4; ++h)
    gate.enter("a", h, due, t0);
  SECTION("a place that cannot be reached fails all who wait") {
    const auto after = gate.ended("a", 1, true);
    CHECK(after.failed == handles{2, 3, 4});
    CHECK_FALSE(after.next);
    CHECK(gate.enter("a", 5, due, t0)); // somebody tries again
  }
  SECTION("when the first one is cancelled the next goes first") {
    const auto after = gate.ended("a", 1, false);
    CHECK(after.failed.empty());
    CHECK(after.next == http_handle{2});
    CHECK(gate.waiting() == 2);
    CHECK(gate.connected("a", t0) == handles{3, 4});
  }
  SECTION("who waits may go") {
    CHECK_FALSE(gate.ended("a", 3, false).next);
    CHECK(gate.connected("a", t0) == handles{2, 4});
  }
  SECTION("the end of one that is connected concerns nobody") {
    (void)gate.connected("a", t0);
    const auto after = gate.ended("a", 1, true);
    CHECK(after.failed.empty());
    CHECK_FALSE(after.next);
  }
}

TEST_CASE("place gate: who waits too long is named", "[http_client]") {
  place_gate gate;
  gate.enter("a", 1, due, t0);
  gate.enter("a", 2, t0 + 3s, t0);
  gate.enter("a", 3, t0 + 2s, t0);
  CHECK(gate.next_due() == t0 + 2s);
  CHECK(gate.overdue(t0 + 1s).empty());
  CHECK(gate.overdue(t0 + 3s) == handles{3, 2});
  (void)gate.ended("a", 3, false);
  CHECK(gate.next_due() == t0 + 3s);
  (void)gate.ended("a", 2, false);
  CHECK_FALSE(gate.next_due());
}

} // namespace boyd::place_gate_test
