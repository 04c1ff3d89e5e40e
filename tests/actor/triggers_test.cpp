#include "actors/node/root.hpp"
#include "boyd/core/fault_points.hpp"
#include "node_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

// Cycles that are asked for beside one that runs, and waits for cycles that have ended.

namespace boyd::triggers_test {

using namespace boyd;
using boyd::test::simulated_node;
using nlohmann::json;

namespace {

struct asked_node : simulated_node {
  root_actor root;

  explicit asked_node(config::overlap_policy overlap = config::overlap_policy::skip) {
    context->ports.zones = adapters::make_time_zones();
    context->scheduled = false;
    config::agent agent;
    agent.agent_id = "agent";
    agent.run.emplace<config::command_executor>().argv = {"agent"};
    kernel().agents.push_back(agent);
    kernel().when.overlap = overlap;
    processes->define("agent", sim::sim_program{});
    root = actors.own(spawn_root(actors.system(), context, configuration));
    caf::anon_send(root, start_claiming{});
    actors.advance(1s);
  }

  ~asked_node() { faults::disarm(); }

  api_response call(const std::string& method, const std::string& path, bool wait = false) {
    api_request request;
    request.method = method;
    request.path = path;
    if (wait)
      request.query["wait"] = "1";
    auto answer = actors.ask<api_response>(root, request);
    actors.advance(1s);
    REQUIRE(answer.ok());
    return answer.value();
  }

  json begin() { return json::parse(call("POST", "/api/v1/cycles").body); }

  std::size_t cancelled() const {
    return static_cast<std::size_t>(std::ranges::count_if(database->all_rows(), [](const auto& r) {
      return r.second.d.status == dispatch_status::cancelled;
    }));
  }
};

} // namespace

TEST_CASE(
    "who waits for a cycle is answered at once when it ended long ago, and when there is none",
    "[progress]") {
  asked_node n;
  const auto first = n.begin().at("cycle_id").get<std::string>();
  n.actors.advance(5s);
  n.begin();
  n.actors.advance(5s);
  const auto waited = n.call("GET", "/api/v1/cycles/" + first, true);
  CHECK(waited.status == 200);
  CHECK(json::parse(waited.body).at("status") == "success");
  CHECK(n.call("GET", "/api/v1/cycles/01900000-0000-7000-8000-000000000000", true).status == 404);
}

TEST_CASE("while a cycle is being cancelled one trigger waits, and the next is refused",
          "[progress]") {
  asked_node n(config::overlap_policy::cancel);
  n.processes->define("agent", sim::sim_program{.hang = true, .ignore_term = true});
  REQUIRE(n.begin().at("admitted") == true);
  n.actors.advance(1s);
  CHECK(n.begin().at("admitted") == true);
  const auto refused = n.begin();
  CHECK(refused.at("admitted") == false);
  CHECK(refused.at("reason") == "a cycle is running and another one waits");
}

TEST_CASE("a trigger whose slot the store does not take cancels nothing", "[progress]") {
  asked_node n(config::overlap_policy::cancel);
  n.processes->define("agent", sim::sim_program{.duration = 1min});
  REQUIRE(n.begin().at("admitted") == true);
  faults::arming refusal;
  refusal.point = "store.admit";
  refusal.what = faults::action::error;
  refusal.count = -1;
  REQUIRE(faults::arm({refusal}, 1));
  CHECK(n.call("POST", "/api/v1/cycles").status >= 500);
  faults::disarm();
  n.actors.advance(2min);
  CHECK(n.cancelled() == 0);
}

} // namespace boyd::triggers_test
