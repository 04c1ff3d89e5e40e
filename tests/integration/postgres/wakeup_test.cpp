#include "src/adapters/postgres/wakeup.hpp"
#include "support/pch.hpp"

namespace boyd::wakeup_test {

using namespace boyd;
using adapters::postgres::payloads_of;
using adapters::postgres::rows_of;
using adapters::postgres::wakeup;

TEST_CASE("a wake-up tells what is new, each agent once, a word for each kernel") {
  wakeup w;
  w.add({"k", "a", 3, 1});
  w.add({"k", "b", 1, 2});
  w.add({"k", "a", 5, 4});
  w.add({"other", "a", -1, 1});
  const auto payloads = payloads_of(w, "node-1 ");
  REQUIRE(payloads.size() == 2);
  const auto rows = rows_of(payloads[0]);
  REQUIRE(rows);
  REQUIRE(rows->size() == 2);
  CHECK((*rows)[0].kernel_id == "k");
  CHECK((*rows)[0].agent_id == "a");
  CHECK((*rows)[0].priority == 5);
  CHECK((*rows)[0].count == 5);
  CHECK((*rows)[1].agent_id == "b");
  CHECK(rows_of(payloads[1])->front().priority == -1);
}

TEST_CASE("of what cannot be told, or is much, a wake-up says no more than the kernel") {
  wakeup w;
  SECTION("more has changed") {
    w.add({"k", "a", 0, 1});
    w.kernels.insert("k");
  }
  SECTION("an id that would be read as two") {
    w.add({"k", "a\tb", 0, 1});
  }
  SECTION("many agents") {
    for (int i = 0; i < 17; ++i)
      w.add({"k", "a" + std::to_string(i), 0, 1});
  }
  SECTION("longer than NOTIFY takes") {
    w.add({"k", std::string(8000, 'a'), 0, 1});
  }
  CHECK(payloads_of(w, "node-1 ") == std::vector<std::string>{"node-1 k"});
}

TEST_CASE("whatever else is said on the channel is a reason to ask the store") {
  for (const char* text : {"", "own", "node-1 k", "node-1 k\ta", "node-1 k\ta\t1",
                           "node-1 k\ta\tx\t1", "node-1 k\ta\t1\t0", "node-1 k\ta\t1\t-1",
                           "node-1 k\ta\t1\t99999999999999999999", "node-1 k\ta\t1\t1\t"})
    CHECK_FALSE(rows_of(text));
  const auto capped = rows_of("node-1 k\ta\t1\t4000000000");
  REQUIRE(capped);
  CHECK(capped->front().count == 1000);
}

} // namespace boyd::wakeup_test
