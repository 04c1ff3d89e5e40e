#include "boyd/faults/points.hpp"
#include "lone_agent.hpp"

#include <algorithm>

// `after`: agents of one cycle that wait for others of it.

namespace boyd::after_test {

using namespace boyd;
using boyd::test::lone_agent_node;

namespace {

/// build, test after build, report after both, however they end; and one beside them.
struct pipeline : lone_agent_node {
  pipeline() {
    auto& agents = kernel().agents;
    const auto any = agents.front();
    agents.clear();
    for (const auto* id : {"report", "test", "build", "beside"}) {
      agents.push_back(any);
      agents.back().agent_id = id;
      agents.back().run.emplace<config::command_executor>().argv = {id};
      agents.back().retry.max_attempts = 1;
      processes->define(id, sim::sim_program{.output = std::string(id) + " says so\n"});
    }
    agent("test").after = {{"build"}, true};
    agent("report").after = {{"build", "test"}, false};
    agent("report").prompt = "{RECENT_RESULTS}";
  }

  config::agent& agent(const std::string& id) {
    return *std::ranges::find(kernel().agents, id, &config::agent::agent_id);
  }

  /// The row of an agent; null: it was not dispatched.
  const dispatch* row(const std::string& id) const {
    for (const auto& [key, row] : database->all_rows())
      if (row.d.agent_id == id)
        return &row.d;
    return nullptr;
  }

  void cycle(milliseconds patience = 30s) {
    REQUIRE(call("POST", "/api/v1/cycles").status == 202);
    actors.advance(patience);
  }
};

} // namespace

TEST_CASE("after: an agent begins when those before it have ended, and reads their results",
          "[kernel]") {
  pipeline n;
  n.processes->define("build", sim::sim_program{.output = "built\n", .duration = 10s});
  n.start();
  n.cycle(5s);
  REQUIRE(n.row("build") != nullptr);
  CHECK(n.row("beside")->status == dispatch_status::done);
  CHECK(n.row("test") == nullptr);
  n.actors.advance(20s);
  for (const auto* id : {"build", "test", "report"}) {
    INFO(id);
    REQUIRE(n.row(id) != nullptr);
    CHECK(n.row(id)->status == dispatch_status::done);
  }
  CHECK(n.row("test")->created_at >= *n.row("build")->finished_at);
  CHECK(n.row("report")->created_at >= *n.row("test")->finished_at);
  CHECK(n.row("report")->prompt.find("built") != std::string::npos);
  CHECK(n.database->all_cycles().size() == 1);
}

TEST_CASE("after: one that fails stops those that need its success, and no others", "[kernel]") {
  pipeline n;
  n.processes->define("build", sim::sim_program{.exit_code = 1});
  n.start();
  n.cycle();
  CHECK(n.row("build")->status == dispatch_status::failed);
  CHECK(n.row("test") == nullptr);
  REQUIRE(n.row("report") != nullptr);
  CHECK(n.row("report")->status == dispatch_status::done);
  const auto why = n.call("GET", "/api/v1/why").body;
  CHECK(why.find("build is failed") != std::string::npos);
}

TEST_CASE("after: one that takes no part in the cycle is not waited for", "[kernel]") {
  pipeline n;
  n.agent("build").enabled = false;
  n.start();
  n.cycle();
  CHECK(n.row("build") == nullptr);
  REQUIRE(n.row("test") != nullptr);
  CHECK(n.row("test")->status == dispatch_status::done);
  CHECK(n.row("report") != nullptr);
}

TEST_CASE("after: a cycle that is over skips who still waited", "[kernel]") {
  pipeline n;
  n.kernel().cycle_deadline = 10s;
  n.processes->define("build", sim::sim_program{.duration = 1min});
  n.start();
  n.cycle();
  CHECK(n.row("test") == nullptr);
  CHECK(n.row("report") == nullptr);
  const auto& record = n.database->all_cycles().begin()->second;
  CHECK(record.status == cycle_status::partial_success);
  CHECK(n.call("GET", "/api/v1/why").body.find("build had not ended") != std::string::npos);
}

TEST_CASE("after: a node that ends in between goes on where it was", "[kernel]") {
  pipeline n;
  n.processes->define("build", sim::sim_program{.duration = 20s});
  n.start();
  n.cycle(5s);
  REQUIRE(n.row("test") == nullptr);
  n.stop();
  n.start();
  n.actors.advance(2min);
  for (const auto* id : {"build", "test", "report"}) {
    INFO(id);
    REQUIRE(n.row(id) != nullptr);
    CHECK(n.row(id)->status == dispatch_status::done);
  }
  CHECK(n.row("test")->created_at >= *n.row("build")->finished_at);
  CHECK(n.database->all_cycles().size() == 1);
}

TEST_CASE("after: a run of one agent that a restart cuts brings no other with it", "[kernel]") {
  pipeline n;
  n.processes->define("build", sim::sim_program{.duration = 20s});
  n.start();
  api_request order;
  order.method = "POST";
  order.path = "/api/v1/agents/build/run";
  auto asked = n.actors.ask<api_response>(n.root, order);
  n.actors.advance(5s);
  REQUIRE(asked.ok());
  REQUIRE(n.row("build") != nullptr);
  n.stop();
  n.start();
  n.actors.advance(2min);
  CHECK(n.row("build")->status == dispatch_status::done);
  CHECK(n.row("test") == nullptr);
  CHECK(n.row("report") == nullptr);
}

} // namespace boyd::after_test
