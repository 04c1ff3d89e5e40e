#include "actors/node/root.hpp"
#include "node_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

// A node whose clock is set back by an hour, between its cycles or its lives.

namespace boyd::kernel_clock_back_test {

using namespace boyd;
using boyd::test::simulated_node;
using nlohmann::json;

namespace {

struct lone_node : simulated_node {
  root_actor root;

  lone_node() {
    context->ports.zones = adapters::make_time_zones();
    context->scheduled = false;
    config::agent agent;
    agent.agent_id = "agent";
    agent.run.emplace<config::command_executor>().argv = {"agent"};
    kernel().agents.push_back(agent);
    processes->define("agent", sim::sim_program{});
  }

  void start() {
    root = actors.own(spawn_root(actors.system(), context, configuration));
    caf::anon_send(root, start_claiming{});
    actors.advance(1s);
  }

  json call(const std::string& method, const std::string& path, bool wait = false) {
    api_request request;
    request.method = method;
    request.path = path;
    if (wait)
      request.query["wait"] = "1";
    auto answer = actors.ask<api_response>(root, request);
    actors.advance(10s);
    REQUIRE(answer.ok());
    INFO(answer.value().body);
    REQUIRE(answer.value().status < 300);
    return json::parse(answer.value().body);
  }

  /// Begins a cycle and lets it end.
  std::string run_cycle() {
    return call("POST", "/api/v1/cycles").at("cycle_id").get<std::string>();
  }

  /// A cycle that an earlier life began at this time and did not end.
  void leave(const std::string& id, utc_time at) {
    cycle_record cycle;
    cycle.cycle_id = id;
    cycle.kernel_id = "default";
    cycle.scheduled_at = at;
    cycle.started_at = at;
    cycle.node_id = context->node_id;
    occurrence slot;
    slot.kernel_id = cycle.kernel_id;
    slot.scheduled_at = at;
    slot.trigger = "manual";
    slot.cycle_id = id;
    slot.node_id = cycle.node_id;
    slot.created_at = at;
    const auto store = sim::make_sim_store(database);
    REQUIRE(store->open());
    REQUIRE(store->apply({store::open_occurrence{slot}, store::begin_cycle{cycle}}));
  }

  /// The cycles that have commits, oldest first.
  std::vector<std::string> committed() const {
    const std::string word = "cycle ";
    std::vector<std::string> ids;
    for (const auto& commit : repositories->commits(kernel_home)) {
      const auto& subject = commit.info.subject;
      const auto id = subject.substr(0, subject.find(':'));
      if (id.starts_with(word) && (ids.empty() || ids.back() != id.substr(word.size())))
        ids.push_back(id.substr(word.size()));
    }
    return ids;
  }
};

} // namespace

TEST_CASE("case 23 clock-step: set back by an hour, the cycle that began last is the latest, and "
          "who waits for it is answered") {
  lone_node n;
  n.start();
  const auto before = n.run_cycle();
  n.actors.clock()->jump(-1h);
  const auto after = n.run_cycle();
  REQUIRE(before != after);
  CHECK(n.call("GET", "/api/v1/cycles/" + after, true).at("cycle_id") == after);
  CHECK(n.call("GET", "/api/v1/status").dump().find(after) != std::string::npos);
}

TEST_CASE("case 23 clock-step: what ends after the clock was set back stands in the next record") {
  lone_node n;
  n.kernel().cycle_deadline = 1min;
  n.kernel().agents.front().timeout = 30min;
  n.processes->define("agent", sim::sim_program{.output = "late words\n", .duration = 5min});
  n.start();
  n.run_cycle();
  n.actors.advance(2min); // the cycle is recorded, its agent runs on
  n.actors.clock()->jump(-1h);
  n.actors.advance(10min);
  n.run_cycle();
  n.actors.advance(2min);
  CHECK(n.file("STATE.md").find("late words") != std::string::npos);
}

TEST_CASE("case 23 clock-step: cycles that were left over go on in the order in which they began") {
  lone_node n;
  n.leave("01900000-0000-7000-8000-00000000000a", n.actors.clock()->now() - 1min);
  n.leave("01900000-0000-7000-8000-00000000000b", n.actors.clock()->now() - 61min);
  n.start();
  n.actors.advance(1min);
  CHECK(n.committed() == std::vector<std::string>{"01900000-0000-7000-8000-00000000000a",
                                                  "01900000-0000-7000-8000-00000000000b"});
  CHECK(n.file("STATE.md").find("00000000000b") != std::string::npos);
  CHECK(n.call("GET", "/api/v1/cycles/01900000-0000-7000-8000-00000000000b", true).at("status") ==
        "success");
}

TEST_CASE(
    "case 23 clock-step: a slot of a clock that was years ahead stops no schedule, in this life "
    "and the next") {
  lone_node n;
  n.kernel().when.expression = "@every 1m";
  n.context->scheduled = true;
  const auto now = n.actors.clock()->now();
  occurrence wrong;
  wrong.kernel_id = "default";
  wrong.scheduled_at = now + 24h * 365 * 12;
  wrong.trigger = "schedule";
  wrong.node_id = n.context->node_id;
  wrong.state = occurrence_state::missed;
  wrong.created_at = now;
  const auto store = sim::make_sim_store(n.database);
  REQUIRE(store->open());
  REQUIRE(store->apply({store::open_occurrence{wrong}}));
  for (std::size_t life = 1; life <= 2; ++life) {
    n.start();
    n.actors.advance(10min);
    const auto& cycles = n.database->all_cycles();
    CHECK(cycles.size() >= 9 * life);
    CHECK(cycles.size() <= 12 * life);
    CHECK(std::ranges::all_of(
        cycles, [](const auto& each) { return each.second.status == cycle_status::success; }));
    caf::anon_send(n.root, shutdown_order{{}, 1s});
    n.actors.advance(1min);
    REQUIRE(n.actors.ended(n.root));
  }
}

} // namespace boyd::kernel_clock_back_test
