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

  /// Asks for three cycles of the agent "a" in one request; what can be claimed is, with it.
  void ask_for_three() {
    transactions->clear();
    store_request three;
    for (int i = 0; i < 3; ++i)
      three.operations.emplace_back(enqueueing("a"));
    const auto asked = actors.ask<store_reply>(store, std::move(three));
    actors.run_all();
    REQUIRE(asked.answered());
    CHECK(claimed_at_once());
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
  const auto first = f.ask_for({"busy"});
  f.actors.run_all();
  REQUIRE(first.ok());
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
  const auto again = f.ask_for({"a"});
  f.actors.advance(5s);
  CHECK(again.ok());
  CHECK(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::running, 1}});
}

TEST_CASE("of more work than there are places one part is claimed with it", "[dispatching]") {
  fixture f({scripted("a", {1h})});
  f.enqueue("a", 7); // one of its eight places is left
  f.actors.run_all();
  f.ask_for_three();
  CHECK(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::running, 8},
                                                       {dispatch_status::pending, 2}});
}

TEST_CASE("of more work than there are permits one part is claimed with it", "[dispatching]") {
  auto greedy = scripted("greedy", {1h});
  greedy.max_concurrent = 16;
  fixture f({greedy, scripted("a", {1h})});
  f.enqueue("greedy", 15); // one of the node's sixteen permits is left
  f.actors.run_all();
  REQUIRE(f.permits_in_use() == 15);
  f.ask_for_three();
  CHECK(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::running, 16},
                                                       {dispatch_status::pending, 2}});
}

TEST_CASE("a claim that fails on its way does not hold the work up", "[dispatching]") {
  const faults::isolation of_this_test;
  fixture f({scripted("a", {1h})});
  REQUIRE(faults::arm({{"dispatcher.claim", faults::action::error, 1}}, 1));
  const auto asked = f.ask_for({"a"});
  f.actors.run_all(); // no time goes by
  CHECK(asked.ok());
  f.actors.advance(5s);
  CHECK(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::running, 1}});
}

// -- the store's side, with a taker that claims when the test does

namespace {

using taker_impl = work_taker_actor::extend_with<queue_listener_actor>;

struct held_fixture : boyd::test::simulated_node {
  std::shared_ptr<boyd::test::recording_store::list> transactions =
      std::make_shared<boyd::test::recording_store::list>();
  std::shared_ptr<std::vector<std::uint64_t>> numbers_told =
      std::make_shared<std::vector<std::uint64_t>>();
  std::shared_ptr<int> changes = std::make_shared<int>(0);
  store_actor store;
  taker_impl taker;

  held_fixture() {
    context->ports.make_store = [db = database, all = transactions] {
      return std::make_unique<boyd::test::recording_store>(sim::make_sim_store(db), all);
    };
    store = actors.own(spawn_store(actors.system(), context));
    taker = actors.own(actors.system().spawn(
        [told = numbers_told, n = changes](taker_impl::pointer) -> taker_impl::behavior_type {
          return {[told](const work_coming& m) { told->push_back(m.number); },
                  [n](const queue_changed&) { ++*n; },
                  [](const dispatches_settled&) {
                    // nop
                  }};
        }));
    caf::anon_send(store,
                   subscribe_queue{{}, queue_listener_actor(taker), work_taker_actor(taker)});
    actors.run_all();
  }
  ~held_fixture() { faults::disarm(); }

  test::asked<store_reply> ask(store::operation op, std::uint64_t with = 0) {
    return actors.ask<store_reply>(store, store_request{{}, {std::move(op)}, with});
  }

  test::asked<store_reply> enqueue(const std::string& id) {
    store::enqueue_cycle op;
    op.kernel_id = "default";
    op.cycle_id = "c" + id;
    dispatch_spec spec;
    spec.dispatch_id = id;
    spec.kernel_id = op.kernel_id;
    spec.cycle_id = op.cycle_id;
    spec.agent_id = "a";
    op.specs.push_back(spec);
    auto asked = ask(op);
    actors.run_all();
    return asked;
  }

  static store::claim claiming() { return {"node-1", "default", "a", 1, 30s}; }

  std::size_t running() {
    store::list_dispatches op;
    op.status = dispatch_status::running;
    const auto answer = ask(op);
    actors.run_all();
    REQUIRE(answer.ok());
    return std::get<std::vector<dispatch>>(answer.value().values.front()).size();
  }

  static std::size_t taken_by(const test::asked<store_reply>& claim) {
    REQUIRE(claim.ok());
    return std::get<store::claim::reply>(claim.value().values.front()).size();
  }
};

} // namespace

TEST_CASE("who looks for running rows sees what a claim that is held back takes", "[dispatching]") {
  held_fixture f;
  store_request two;
  for (const auto* agent : {"a", "b"}) {
    store::enqueue_cycle op{"default", std::string("c") + agent, {}, {}};
    dispatch_spec spec;
    spec.dispatch_id = std::string("d") + agent;
    spec.kernel_id = "default";
    spec.cycle_id = op.cycle_id;
    spec.agent_id = agent;
    op.specs.push_back(spec);
    two.operations.emplace_back(op);
  }
  const auto work = f.actors.ask<store_reply>(f.store, std::move(two));
  f.actors.run_all();
  REQUIRE(f.numbers_told->size() == 1);
  // The first of two answers: the other one is waited for.
  const auto claim = f.ask(held_fixture::claiming(), f.numbers_told->front());
  f.actors.run_all();
  REQUIRE_FALSE(claim.answered());
  SECTION("a dispatcher that is started anew") {
    CHECK(f.running() == 1);
  }
  SECTION("a kernel that is started anew") {
    const auto decisions = f.ask(store::list_decisions{"default", {}, "ca", {}, 1});
    f.actors.run_all();
    CHECK(decisions.ok());
  }
  SECTION("a pool that is started anew") {
    store::take_back op;
    op.node_id = "node-1";
    const auto back = f.ask(op);
    f.actors.run_all();
    REQUIRE(back.ok());
    CHECK(std::get<store::take_back::reply>(back.value().values.front()).returned ==
          std::vector<std::string>{"da"});
  }
  CHECK(work.answered());
  CHECK(held_fixture::taken_by(claim) == 1);
}

TEST_CASE("work does not wait for a taker that has ended", "[dispatching]") {
  held_fixture f;
  const auto work = f.enqueue("1");
  REQUIRE_FALSE(work.answered());
  caf::anon_send_exit(f.taker, caf::exit_reason::kill);
  f.actors.run_all(); // no time goes by
  CHECK(work.ok());
  CHECK(f.enqueue("2").ok());
}

TEST_CASE("a claim that comes late is carried out by itself", "[dispatching]") {
  held_fixture f;
  const auto work = f.enqueue("1");
  f.actors.advance(limits::claim_patience);
  REQUIRE(work.ok());
  CHECK(*f.changes == 1);
  const auto next = f.enqueue("2");
  REQUIRE(f.numbers_told->size() == 2);
  const auto late = f.ask(held_fixture::claiming(), f.numbers_told->front());
  f.actors.run_all();
  CHECK(held_fixture::taken_by(late) == 1);
  // It is no answer to what is held back now.
  CHECK_FALSE(next.answered());
  f.actors.advance(limits::claim_patience);
  CHECK(next.ok());
}

TEST_CASE("a claim that always fails does not keep work out", "[dispatching]") {
  const faults::isolation of_this_test;
  held_fixture f;
  REQUIRE(faults::arm({{"store.claim", faults::action::error, -1}}, 1));
  const auto first = f.enqueue("1");
  const auto claim = f.ask(held_fixture::claiming(), f.numbers_told->back());
  f.actors.run_all();
  REQUIRE(first.answered());
  CHECK_FALSE(first.ok());
  CHECK_FALSE(claim.ok());
  f.actors.advance(5s); // until the store is opened anew
  // The kernel asks again: this time nobody is waited for.
  CHECK(f.enqueue("1").ok());
  CHECK(*f.changes == 1);
  // And then again as ever.
  CHECK_FALSE(f.enqueue("2").answered());
}

TEST_CASE("a worker that dies of a claim leaves the work in place", "[dispatching]") {
  const faults::isolation of_this_test;
  held_fixture f;
  REQUIRE(faults::arm({{"store.claim", faults::action::crash, 1}}, 1));
  const auto work = f.enqueue("1");
  const auto claim = f.ask(held_fixture::claiming(), f.numbers_told->back());
  f.actors.run_all();
  f.actors.advance(5s);
  CHECK(work.ok());
  CHECK(held_fixture::taken_by(claim) == 1);
  CHECK(f.running() == 1);
}

} // namespace boyd::coming_work_test
