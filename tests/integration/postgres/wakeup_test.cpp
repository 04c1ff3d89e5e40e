#include "src/adapters/postgres/wakeup.hpp"
#include "support/pch.hpp"

namespace boyd::wakeup_test {

using namespace boyd;
using adapters::postgres::payloads_of;
using adapters::postgres::rows_of;
using adapters::postgres::wakeup;

TEST_CASE("a wake-up tells what is new, each agent once, a word for each kernel") {
  wakeup w;
  queue::add_due(w.rows, {"k", "a", 3, 1});
  queue::add_due(w.rows, {"k", "b", 1, 2});
  queue::add_due(w.rows, {"k", "a", 5, 4});
  queue::add_due(w.rows, {"other", "a", -1, 1});
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
    queue::add_due(w.rows, {"k", "a", 0, 1});
    w.kernels.insert("k");
  }
  SECTION("an id that would be read as two") {
    queue::add_due(w.rows, {"k", "a\tb", 0, 1});
  }
  SECTION("many agents") {
    for (int i = 0; i < 17; ++i)
      queue::add_due(w.rows, {"k", "a" + std::to_string(i), 0, 1});
  }
  SECTION("longer than NOTIFY takes") {
    queue::add_due(w.rows, {"k", std::string(8000, 'a'), 0, 1});
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
