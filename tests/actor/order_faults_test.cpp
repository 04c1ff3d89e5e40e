#include "boyd/faults/points.hpp"
#include "lone_agent.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace boyd::order_faults_test {

using namespace boyd;
using boyd::test::lone_agent_node;
using nlohmann::json;

namespace {

struct fixture : lone_agent_node {
  faults::isolation of_this_test;

  static void arm(const std::string& point, faults::action what, int count = 1) {
    REQUIRE(faults::arm({{point, what, count}}, 1));
  }

  void begin_cycle() { CHECK(call("POST", "/api/v1/cycles").status == 202); }

  json status() { return json::parse(call("GET", "/api/v1/status").body); }

  /// How many restarts a part has behind it.
  int restarts_of(const std::string& name) {
    const auto tree = actors.ask_now<tree_reply>(root, tree_query{});
    REQUIRE(tree.ok());
    const auto& all = tree.value().children;
    const auto it = std::ranges::find(all, name, &child_status::name);
    REQUIRE(it != all.end());
    return it->restarts;
  }

  /// Every row there is.
  std::vector<dispatch> rows() {
    store::list_dispatches op;
    op.limit = 1000;
    return std::get<std::vector<dispatch>>(database->run({op}).front());
  }
};

} // namespace

TEST_CASE("fault points: a broker that dies at a wish, or when permits come back, loses none",
          "[faults]") {
  const std::string point = GENERATE("permits.ask", "permits.release");
  INFO(point);
  fixture f;
  f.start();
  f.arm(point, faults::action::crash);
  f.begin_cycle();
  f.actors.advance(2min);
  CHECK(faults::triggered(point) == 1);
  CHECK(f.restarts_of("permits") == 1);
  f.begin_cycle();
  f.actors.advance(1min);
  CHECK(f.status().at("queue").at("done") == 2);
  CHECK(f.status().at("permits").at("in_use") == 0);
}

TEST_CASE("fault points: what a crash has ended runs again when the broker dies as it hears of it",
          "[faults]") {
  fixture f;
  f.context->after_crash = true;
  f.leave_running("agent");
  REQUIRE(f.rows().front().status == dispatch_status::running);
  f.arm("permits.pace", faults::action::crash);
  f.start();
  f.actors.advance(2min);
  CHECK(faults::triggered("permits.pace") == 1);
  REQUIRE(f.rows().size() == 1);
  CHECK(f.rows().front().status == dispatch_status::done);
}

TEST_CASE("fault points: a part that dies at an order to stop ends no stop, and its work goes on",
          "[faults]") {
  const std::string point = GENERATE("kernel.stop", "dispatcher.drain", "dispatchers.drained");
  INFO(point);
  fixture f;
  f.kernel().agents.front().timeout = 1h;
  f.processes->define("agent", sim::sim_program{.duration = 10min});
  f.start();
  f.begin_cycle();
  f.actors.advance(1s);
  REQUIRE(f.rows().front().status == dispatch_status::running);
  f.arm(point, faults::action::crash);
  f.stop();
  CHECK(faults::triggered(point) == 1);
  CHECK(f.processes->running() == 0);
  f.context->own_rows_recovered->store(false); // the next process is another one
  f.start();
  f.actors.advance(30min);
  REQUIRE(f.rows().size() == 1);
  CHECK(f.rows().front().status == dispatch_status::done);
}

TEST_CASE("fault points: a lost order to hurry leaves the drain its grace", "[faults]") {
  fixture f;
  f.kernel().agents.front().timeout = 1h;
  f.processes->define("agent", sim::sim_program{.duration = 30min});
  f.start();
  f.begin_cycle();
  f.arm("dispatcher.hurry", faults::action::drop);
  caf::anon_send(f.root, shutdown_order{{}, 5min});
  f.actors.advance(1s);
  caf::anon_send(f.root, hurry_order{});
  f.actors.advance(1min);
  CHECK(faults::triggered("dispatcher.hurry") == 1);
  CHECK_FALSE(f.actors.ended(f.root));
  SECTION("it is said again") {
    caf::anon_send(f.root, hurry_order{});
    f.actors.advance(10s);
  }
  SECTION("the grace is over") {
    f.actors.advance(5min);
  }
  CHECK(f.actors.ended(f.root));
  CHECK(f.processes->running() == 0);
}

TEST_CASE("fault points: a part that dies when it is asked for news is asked again", "[faults]") {
  fixture f;
  f.start();
  f.arm("parts.subscribe", faults::action::crash, 2);
  // It is started anew and asks the store; the gateway asks it. Both die.
  CHECK(f.call("POST", "/api/v1/actors/kernel:default/restart").status == 200);
  f.actors.advance(1min);
  CHECK(faults::triggered("parts.subscribe") == 2);
  CHECK(f.restarts_of("kernel:default") == 1);
  CHECK(f.restarts_of("store") == 1);
  f.begin_cycle();
  f.actors.advance(1min);
  CHECK(f.status().at("queue").at("done") == 1);
}

} // namespace boyd::order_faults_test
