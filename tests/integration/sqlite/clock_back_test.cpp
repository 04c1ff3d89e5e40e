#include "src/adapters/sqlite/store.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

namespace boyd::clock_back_test {

using namespace boyd;
using namespace boyd::test;

namespace {

class settable_clock final : public clock_port {
 public:
  utc_time now() const override { return time; }
  steady_time steady() const override { return {}; }

  utc_time time = from_unix_ms(1'770'976'800'000);
};

template <class Operation>
auto ask(dispatch_store& s, const Operation& op) {
  const auto replies = s.apply({op});
  REQUIRE(replies);
  return std::get<typename Operation::reply>(replies->front());
}

} // namespace

TEST_CASE("case 23 clock-step: set back, it keeps nothing waiting that asked for no delay") {
  const temp_dir dir;
  const auto clock = std::make_shared<settable_clock>();
  adapters::sqlite_options o;
  o.path = dir.file("boyd.db");
  o.clock = clock;
  const auto s = adapters::make_sqlite_store(o);
  REQUIRE(s->open());
  store::enqueue_cycle cycle{"k", "c", {}, {}};
  for (const auto* id : {"first", "second"}) {
    dispatch_spec d;
    d.dispatch_id = d.agent_id = id;
    d.kernel_id = "k";
    d.cycle_id = "c";
    cycle.specs.push_back(d);
  }
  ask(*s, cycle);
  const store::claim any{"n", "k", "", 2, 1min};
  const auto claim_all = [&] {
    clock->time -= 1h;
    return ask(*s, any);
  };
  CHECK(ask(*s, store::due_agents{}).due.size() == 2);
  auto held = claim_all();
  REQUIRE(held.size() == 2);
  // Given back, taken back and wanted again are due at once, too.
  std::vector<settlement> back;
  for (const auto& c : held)
    back.push_back({c.row.dispatch_id, c.row.fence, settle_to::release, 0ms, {}});
  ask(*s, store::settle{"n", back});
  held = claim_all();
  REQUIRE(held.size() == 2);
  REQUIRE(ask(*s, store::take_back{"n", 8, 10}).returned.size() == 2);
  held = claim_all();
  REQUIRE(held.size() == 2);
  // What asked for a delay has it, at the earliest when the time is as late again.
  std::vector<settlement> later;
  for (const auto& c : held)
    later.push_back({c.row.dispatch_id, c.row.fence, settle_to::retry, 5s, {}});
  ask(*s, store::settle{"n", later});
  CHECK(ask(*s, any).empty());
  CHECK(ask(*s, store::due_agents{}).next_in == 3h + 5s);
  clock->time += 3h + 5s;
  CHECK(ask(*s, any).size() == 2);
}

} // namespace boyd::clock_back_test
