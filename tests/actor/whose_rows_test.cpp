#include "dispatching_fixture.hpp"
#include "support/pch.hpp"

#include <memory>

/// Rows that a supervisor of dispatchers finds: its predecessor's, and those of agents that it does
/// not have.
namespace boyd::whose_rows_test {

using namespace boyd;
using boyd::test::dispatching_fixture;
using boyd::test::scripted;
using counts = std::map<dispatch_status, int>;

namespace {

struct fixture : dispatching_fixture {
  using dispatching_fixture::dispatching_fixture;

  /// As its supervisor does it.
  void start_pool_anew() {
    caf::anon_send_exit(pool, caf::exit_reason::kill);
    actors.run_all();
    pool = actors.own(spawn_dispatcher_pool(actors.system(), context, configuration,
                                            {store, permits, workspace, governor}));
    caf::anon_send(pool, start_claiming{});
    actors.advance(5s);
  }

  void other_node_beats() { (void)database->run({store::beat{"node-2", "elsewhere", 1}}); }
};

} // namespace

TEST_CASE("what runs is not poisoned by restarts of the supervisor of dispatchers",
          "[dispatching]") {
  const bool shared = GENERATE(false, true);
  fixture f({scripted("slow", {5min})}, shared);
  f.enqueue("slow", 2);
  f.actors.run_all();
  REQUIRE(f.statuses() == counts{{dispatch_status::running, 2}});
  constexpr int restarts = limits::max_rescues + 2;
  for (int i = 1; i <= restarts; ++i) {
    f.start_pool_anew();
    REQUIRE(f.statuses() == counts{{dispatch_status::running, 2}});
    for (const auto& row : f.rows()) {
      CHECK(row.fence == i + 1);
      CHECK(row.rescues == 0);
      CHECK(row.attempt == 1);
    }
  }
  CHECK(f.permits_in_use() == 2);
  f.actors.advance(10min);
  CHECK(f.statuses() == counts{{dispatch_status::done, 2}});
  CHECK(f.permits_in_use() == 0);
}

TEST_CASE("what an earlier process left running counts as lost with its node", "[dispatching]") {
  fixture f({scripted("slow", {1h})});
  f.enqueue("slow", 1);
  f.actors.run_all();
  // Another process knows nothing of the first one.
  f.context->own_rows_recovered = std::make_shared<std::atomic<bool>>();
  f.start_pool_anew();
  const auto row = f.rows().front();
  CHECK(row.status == dispatch_status::running);
  CHECK(row.fence == 2);
  CHECK(row.rescues == 1);
}

TEST_CASE("work of an agent that is configured nowhere is cancelled, whenever it comes",
          "[dispatching]") {
  const bool shared = GENERATE(false, true);
  fixture f({scripted("here", {0ms})}, shared);
  f.enqueue("nowhere", 1);
  f.actors.advance(1s);
  CHECK(f.statuses() == counts{{dispatch_status::cancelled, 1}});
  CHECK(f.rows().front().outcome.error.find("no longer configured") != std::string::npos);
}

TEST_CASE("work of an agent that only other nodes have is theirs", "[dispatching]") {
  fixture f({scripted("here", {0ms})}, true);
  f.other_node_beats();
  f.enqueue("there", 300);
  f.enqueue("here", 1);
  f.actors.advance(1min);
  f.reload({scripted("here", {0ms}), scripted("new", {0ms})});
  f.start_pool_anew();
  f.actors.advance(1min);
  CHECK(f.statuses() == counts{{dispatch_status::pending, 300}, {dispatch_status::done, 1}});
}

TEST_CASE("work of an agent that is removed here stays for the nodes that have it",
          "[dispatching][reload]") {
  auto agent = scripted("moved", {8s});
  agent.max_concurrent = 1;
  fixture f({agent, scripted("here", {0ms})}, true);
  f.other_node_beats();
  f.enqueue("moved", 2);
  f.actors.advance(1s);
  f.reload({scripted("here", {0ms})});
  f.actors.advance(1min);
  CHECK(f.statuses() == counts{{dispatch_status::pending, 1}, {dispatch_status::done, 1}});
}

} // namespace boyd::whose_rows_test
