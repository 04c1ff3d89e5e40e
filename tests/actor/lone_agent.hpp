#pragma once

#include "actors/node/root.hpp"
#include "node_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <string>

namespace boyd::test {

/// A whole simulated node with one agent, which runs the program "agent": it ends at once, until a
/// test defines it anew. Cycles run when they are asked for.
struct lone_agent_node : simulated_node {
  root_actor root;

  lone_agent_node() {
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

  void stop() {
    caf::anon_send(root, shutdown_order{{}, 1s});
    actors.advance(1min);
    REQUIRE(actors.ended(root));
  }

  /// What the API says within a second. `wait`: asked with wait=1.
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
};

} // namespace boyd::test
