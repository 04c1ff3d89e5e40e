#include "actors/node/root.hpp"
#include "node_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

namespace boyd::final_block_test {

using namespace boyd;
using boyd::test::simulated_node;

TEST_CASE("a node that stops while its store is away leaves in STATE.md what was acknowledged",
          "[progress]") {
  simulated_node n;
  n.context->ports.zones = adapters::make_time_zones();
  n.context->scheduled = false;
  config::agent agent;
  agent.agent_id = "agent";
  agent.run.emplace<config::command_executor>().argv = {"agent"};
  n.kernel().agents.push_back(agent);
  n.processes->define("agent", sim::sim_program{});
  const auto root = n.actors.own(spawn_root(n.actors.system(), n.context, n.configuration));
  caf::anon_send(root, start_claiming{});
  n.actors.advance(1s);
  const auto begin = [&] {
    api_request request;
    request.method = "POST";
    request.path = "/api/v1/cycles";
    auto begun = n.actors.ask<api_response>(root, request);
    n.actors.advance(1s);
    REQUIRE(begun.ok());
    return nlohmann::json::parse(begun.value().body).at("cycle_id").get<std::string>();
  };
  const auto first = begin();
  n.actors.advance(10s);
  REQUIRE_THAT(n.file("STATE.md"), Catch::Matchers::Contains(first));
  n.processes->define("agent", sim::sim_program{.hang = true});
  (void)begin();
  REQUIRE(n.processes->alive() == 1);
  n.database->faults.unavailable = true;
  n.actors.advance(5s);
  caf::anon_send(root, shutdown_order{{}, 1s});
  n.actors.advance(2min);
  CHECK(n.actors.ended(root));
  CHECK_THAT(n.file("STATE.md"), Catch::Matchers::Contains(first));
}

} // namespace boyd::final_block_test
