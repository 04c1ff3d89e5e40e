#include "boyd/faults/points.hpp"
#include "boyd/plan/single_run.hpp"
#include "lone_agent.hpp"

#include <nlohmann/json.hpp>

// `boyd run`: a cycle of one agent, outside of its schedule.

namespace boyd::single_run_test {

using namespace boyd;
using boyd::test::lone_agent_node;
using nlohmann::json;

namespace {

struct two_agents : lone_agent_node {
  two_agents() {
    auto other = kernel().agents.front();
    other.agent_id = "other";
    kernel().agents.push_back(other);
    kernel().agents.front().cooldown = 1h;
  }

  /// The trigger's answer.
  json run(const std::string& agent, const std::string& message = {}) {
    api_request request;
    request.method = "POST";
    request.path = "/api/v1/agents/" + agent + "/run";
    request.body = json{{"message", message}}.dump();
    auto answer = actors.ask<api_response>(root, request);
    actors.advance(1s);
    REQUIRE(answer.ok());
    return json::parse(answer.value().body);
  }

  std::vector<dispatch> rows_of(const std::string& cycle) const {
    std::vector<dispatch> all;
    for (const auto& [id, row] : database->all_rows())
      if (row.d.cycle_id == cycle)
        all.push_back(row.d);
    return all;
  }
};

} // namespace

TEST_CASE("boyd run: one agent runs, with its message, whatever its cooldown", "[kernel]") {
  two_agents n;
  n.kernel().agents.front().prompt = "Work.";
  n.start();
  for (const auto* message : {"first", "second {STATE}"}) {
    const auto asked = n.run("agent", message);
    REQUIRE(asked.at("admitted") == true);
    n.actors.advance(5s);
    const auto rows = n.rows_of(asked.at("cycle_id"));
    REQUIRE(rows.size() == 1);
    CHECK(rows.front().agent_id == "agent");
    CHECK(rows.front().status == dispatch_status::done);
    // The message is nobody's template.
    CHECK(rows.front().prompt == std::string("Work.\n\n") + message);
  }
  CHECK(n.run("nobody").contains("error"));
}

TEST_CASE("boyd run: it begins behind the cycle that runs, which makes way for it", "[kernel]") {
  two_agents n;
  n.processes->define("agent", sim::sim_program{.duration = 5min});
  n.start();
  const auto first = n.run("agent");
  const auto second = n.run("other");
  REQUIRE(second.at("admitted") == true);
  CHECK(second.at("reason") == "a cycle is running");
  n.actors.advance(5s);
  REQUIRE(n.rows_of(second.at("cycle_id")).size() == 1);
  CHECK(n.rows_of(first.at("cycle_id")).front().status == dispatch_status::running);
  // The agent that runs is not run twice.
  const auto third = n.run("agent");
  n.actors.advance(5s);
  CHECK(n.rows_of(third.at("cycle_id")).empty());
  n.actors.advance(6min);
  CHECK(n.rows_of(first.at("cycle_id")).front().status == dispatch_status::done);
}

TEST_CASE("boyd run: a node that ends before it began goes on with it as asked", "[kernel]") {
  two_agents n;
  n.start();
  // A kernel that does not get to its plan, and ends.
  REQUIRE(faults::arm({{"kernel.step", faults::action::error, -1}}, 1));
  const auto asked = n.run("agent", "once");
  REQUIRE(asked.at("admitted") == true);
  n.stop();
  faults::disarm();
  REQUIRE(n.rows_of(asked.at("cycle_id")).empty());
  n.start();
  n.actors.advance(10s);
  const auto rows = n.rows_of(asked.at("cycle_id"));
  REQUIRE(rows.size() == 1);
  CHECK(rows.front().agent_id == "agent");
  CHECK(rows.front().prompt.ends_with("once"));
}

TEST_CASE("boyd run: a pause refuses it, and it keeps no place", "[kernel]") {
  two_agents n;
  n.start();
  CHECK(n.call("POST", "/api/v1/pause").status == 200);
  const auto refused = n.run("agent");
  CHECK(refused.at("admitted") == false);
  CHECK(n.call("POST", "/api/v1/resume").status == 200);
  CHECK(n.run("agent").at("admitted") == true);
}

TEST_CASE("a single run is read as it was written", "[plan]") {
  const plan::single_run run{"agent", "a \"message\"\nof two lines"};
  CHECK(plan::read_single_run(plan::text_of(run)) == run);
  for (const auto* text :
       {"", "{}", "[]", "{\"agent\": 1, \"message\": \"\"}", "{\"agent\": \"a\""})
    CHECK_FALSE(plan::read_single_run(text));
}

} // namespace boyd::single_run_test
