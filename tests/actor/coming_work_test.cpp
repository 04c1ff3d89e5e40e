#include "dispatching_fixture.hpp"

namespace boyd::coming_work_test {

// A little work waits a moment before it is enqueued, so that who can run it claims it in the same
// transaction.

using namespace boyd;
using boyd::test::scripted;

namespace {

struct fixture : boyd::test::dispatching_fixture {
  using boyd::test::dispatching_fixture::dispatching_fixture;

  /// Asks for one cycle with a dispatch for each agent; the answer is not waited for.
  test::asked<store_reply> ask_for(const std::vector<std::string>& agents) {
    auto op = enqueueing(agents.front());
    for (std::size_t i = 1; i < agents.size(); ++i)
      op.specs.push_back(enqueueing(agents[i]).specs.front());
    for (auto& spec : op.specs)
      spec.cycle_id = op.cycle_id;
    transactions->clear();
    return actors.ask<store_reply>(store, store_request{{}, {std::move(op)}});
  }

  /// How many operations of this kind each transaction that changed something had.
  template <class Operation>
  std::vector<int> each_with() const {
    std::vector<int> all;
    for (const auto& t : *transactions)
      if (const auto n = std::ranges::count_if(
              t, [](const auto& op) { return std::holds_alternative<Operation>(op); });
          n > 0)
        all.push_back(static_cast<int>(n));
    return all;
  }

  /// Whether a transaction has both.
  bool claimed_at_once() const {
    return std::ranges::any_of(*transactions, [](const auto& t) {
      return std::ranges::any_of(
                 t, [](const auto& op) { return std::holds_alternative<store::claim>(op); }) &&
             std::ranges::any_of(t, [](const auto& op) {
               return std::holds_alternative<store::enqueue_cycle>(op);
             });
    });
  }
};

using numbers = std::vector<int>;

} // namespace

TEST_CASE("work and the claims of all who are free for it are one transaction", "[dispatching]") {
  fixture f({scripted("a", {1h}), scripted("b", {1h})});
  const auto asked = f.ask_for({"a", "b"});
  f.actors.run_all();
  REQUIRE(asked.answered());
  CHECK(asked.ok());
  CHECK(f.claimed_at_once());
  CHECK(f.each_with<store::enqueue_cycle>() == numbers{1});
  CHECK(f.each_with<store::claim>() == numbers{2});
  CHECK(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::running, 2}});
  CHECK(f.permits_in_use() == 2);
}

TEST_CASE("work of an agent that has no place is enqueued at once", "[dispatching]") {
  auto busy = scripted("busy", {1h});
  busy.max_concurrent = 1;
  fixture f({busy});
  REQUIRE_FALSE(f.ask_for({"busy"}).answered());
  f.actors.run_all();
  const auto second = f.ask_for({"busy"});
  f.actors.run_all(); // no time goes by
  CHECK(second.answered());
  CHECK(f.each_with<store::enqueue_cycle>() == numbers{1});
  CHECK(f.each_with<store::claim>().empty());
  CHECK(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::running, 1},
                                                       {dispatch_status::pending, 1}});
}

TEST_CASE("work of an agent that nobody runs is enqueued at once", "[dispatching]") {
  fixture f({scripted("a", {1h})});
  const auto asked = f.ask_for({"stranger", "a"});
  f.actors.run_all();
  CHECK(asked.answered());
  CHECK(f.claimed_at_once());
}

TEST_CASE("work waits a moment and no longer for claims that never come", "[dispatching]") {
  const faults::isolation of_this_test;
  const auto* lost = GENERATE("queue.coming", "dispatcher.due");
  INFO(lost);
  fixture f({scripted("a", {1h})});
  REQUIRE(faults::arm({{lost, faults::action::drop}}, 1));
  const auto asked = f.ask_for({"a"});
  f.actors.run_all();
  CHECK_FALSE(asked.answered());
  f.actors.advance(limits::claim_patience);
  REQUIRE(asked.answered());
  CHECK(asked.ok());
  CHECK_FALSE(f.claimed_at_once());
  // Its agent is told when it is there.
  CHECK(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::running, 1}});
}

TEST_CASE("work does not wait for permits that are out", "[dispatching]") {
  auto greedy = scripted("greedy", {1h});
  greedy.max_concurrent = 16;
  fixture f({greedy, scripted("a", {1h})});
  f.enqueue("greedy", 16);
  f.actors.run_all();
  REQUIRE(f.permits_in_use() == 16);
  const auto one = f.rows().front().dispatch_id;
  const auto asked = f.ask_for({"a"});
  f.actors.run_all(); // no time goes by
  CHECK(asked.answered());
  caf::anon_send(f.pool, cancel_run{{}, one});
  f.actors.advance(10s);
  const auto all = f.rows();
  CHECK(std::ranges::any_of(all, [](const dispatch& d) {
    return d.agent_id == "a" && d.status == dispatch_status::running;
  }));
}

TEST_CASE("one piece of work is held back at a time", "[dispatching]") {
  const faults::isolation of_this_test;
  fixture f({scripted("a", {1h}), scripted("b", {1h})});
  REQUIRE(faults::arm({{"queue.coming", faults::action::drop}}, 1));
  const auto held = f.ask_for({"a"});
  f.actors.run_all();
  const auto other = f.ask_for({"b"});
  f.actors.run_all();
  CHECK_FALSE(held.answered());
  CHECK(other.answered());
  f.actors.advance(limits::claim_patience);
  CHECK(held.answered());
  CHECK(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::running, 2}});
}

TEST_CASE("much work, and work for later, is not held back", "[dispatching]") {
  const faults::isolation of_this_test;
  fixture f({scripted("a", {1h})});
  // Whatever is held back has to wait now.
  REQUIRE(faults::arm({{"queue.coming", faults::action::drop, -1}}, 1));
  auto later = f.enqueueing("a");
  later.specs.front().delay = 1s;
  const auto delayed = f.actors.ask<store_reply>(f.store, store_request{{}, {later}});
  store_request many;
  for (int i = 0; i < 17; ++i)
    many.operations.emplace_back(f.enqueueing("a"));
  const auto mass = f.actors.ask<store_reply>(f.store, std::move(many));
  f.actors.run_all();
  CHECK(delayed.answered());
  CHECK(mass.answered());
}

TEST_CASE("a store that ends answers for the work that it holds back", "[dispatching]") {
  const faults::isolation of_this_test;
  fixture f({scripted("a", {1h})});
  REQUIRE(faults::arm({{"queue.coming", faults::action::drop}}, 1));
  const auto asked = f.ask_for({"a"});
  f.actors.run_all();
  REQUIRE_FALSE(asked.answered());
  caf::anon_send_exit(f.store, caf::exit_reason::kill);
  f.actors.run_all();
  REQUIRE(asked.answered());
  CHECK(asked.why().code == errc::actor_down);
}

TEST_CASE("work whose claims cannot be written is not written either", "[dispatching]") {
  const faults::isolation of_this_test;
  fixture f({scripted("a", {1h})});
  REQUIRE(faults::arm({{"store.claim", faults::action::error, 2}}, 1)); // and its repeat
  const auto asked = f.ask_for({"a"});
  f.actors.run_all();
  REQUIRE(asked.answered());
  CHECK(asked.why().code == errc::store_unavailable);
  CHECK(f.permits_in_use() == 0);
  f.actors.advance(5s);
  CHECK(f.rows().empty());
  REQUIRE_FALSE(f.ask_for({"a"}).answered());
  f.actors.advance(5s);
  CHECK(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::running, 1}});
}

} // namespace boyd::coming_work_test
