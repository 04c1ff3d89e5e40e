#include "actors/permits/core.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <map>

namespace boyd::permits_core_test {

using namespace boyd;

TEST_CASE("permits: the best priority first, then who waited longest") {
  permit_core core;
  core.set_limits(2, {});
  core.wish(1, "low", "k", 2, 1);
  core.wish(2, "high", "k", 1, 9);
  auto grants = core.distribute();
  REQUIRE(grants.size() == 2);
  CHECK(grants[0].holder == 2);
  CHECK(grants[0].count == 1);
  CHECK(grants[1].holder == 1);
  CHECK(grants[1].count == 1);
  CHECK(core.distribute().empty());
  core.release(2, 1);
  grants = core.distribute();
  REQUIRE(grants.size() == 1);
  CHECK(grants[0].holder == 1);
}

TEST_CASE("permits: a kernel's limit holds beside the node's") {
  permit_core core;
  core.set_limits(8, {{"small", 1}});
  core.wish(1, "a", "small", 5, 10);
  core.wish(2, "b", "other", 5, 1);
  int small = 0;
  int other = 0;
  for (const auto& g : core.distribute())
    (g.holder == 1 ? small : other) += g.count;
  CHECK(small == 1);
  CHECK(other == 5);
}

TEST_CASE("permits: a holder that goes gives everything back") {
  permit_core core;
  core.set_limits(1, {});
  core.wish(1, "a", "k", 1, 1);
  (void)core.distribute();
  core.wish(2, "b", "k", 1, 1);
  CHECK(core.distribute().empty());
  core.gone(1);
  CHECK(core.in_use() == 0);
  REQUIRE(core.distribute().size() == 1);
  CHECK(core.holders().front().first == "b");
}

TEST_CASE("permits: after a crash the interrupted runs go one by one, then all may") {
  permit_core core;
  core.set_limits(8, {});
  core.wish(1, "a", "k", 3, 5);
  core.wish(2, "b", "k", 3, 1);
  core.pace(3);
  auto grants = core.distribute();
  REQUIRE(grants.size() == 1);
  CHECK(grants[0].holder == 1);
  CHECK(grants[0].count == 1);
  CHECK(core.on_probation());
  CHECK(core.distribute().empty());
  // It ended: the next one.
  core.release(1, 1);
  grants = core.distribute();
  REQUIRE(grants.size() == 1);
  CHECK(grants[0].count == 1);
  CHECK(core.distribute().empty());
  // It runs on: the last one beside it.
  core.outlived();
  REQUIRE(core.distribute().size() == 1);
  CHECK(core.distribute().empty());
  CHECK(core.in_use() == 2);
  // Its holder is gone: no care any more.
  core.gone(1);
  grants = core.distribute();
  REQUIRE(grants.size() == 1);
  CHECK(grants[0].holder == 2);
  CHECK(grants[0].count == 3);
  CHECK_FALSE(core.on_probation());
}

TEST_CASE("permits: no sequence of events exceeds a limit or leaks") {
  REQUIRE(rc::check("limits hold", [] {
    permit_core core;
    const int node = *rc::gen::inRange(1, 6);
    const int kernel = *rc::gen::inRange(1, 4);
    core.set_limits(node, {{"k", kernel}});
    std::map<permit_core::holder_id, int> held;
    const auto steps = *rc::gen::container<std::vector<std::tuple<int, int, int>>>(
        rc::gen::tuple(rc::gen::inRange(0, 4), rc::gen::inRange(1, 6), rc::gen::inRange(0, 5)));
    for (const auto& [what, who, n] : steps) {
      const auto id = static_cast<permit_core::holder_id>(who);
      const bool in_kernel = who % 2 == 0;
      if (what == 0)
        core.wish(id, std::to_string(who), in_kernel ? "k" : "free", n, who);
      if (what == 1) {
        const int back = std::min(n, held[id]);
        core.release(id, n);
        held[id] -= back;
      }
      if (what == 2) {
        core.gone(id);
        held[id] = 0;
      }
      for (const auto& g : core.distribute())
        held[g.holder] += g.count;
      int all = 0;
      int of_kernel = 0;
      for (const auto& [h, c] : held) {
        all += c;
        of_kernel += h % 2 == 0 ? c : 0;
      }
      RC_ASSERT(all == core.in_use());
      RC_ASSERT(all <= node);
      RC_ASSERT(of_kernel <= kernel);
    }
  }));
}

} // namespace boyd::permits_core_test
