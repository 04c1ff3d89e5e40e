#include "boyd/faults/points.hpp"
#include "lone_agent.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

namespace boyd::final_block_test {

using namespace boyd;
using boyd::test::lone_agent_node;
using Catch::Matchers::Contains;

namespace {

struct stopping_node : lone_agent_node {
  stopping_node() {
    kernel().when.overlap = config::overlap_policy::queue_one;
    start();
  }
  ~stopping_node() { faults::disarm(); }

  std::string begin() {
    const auto answer = nlohmann::json::parse(call("POST", "/api/v1/cycles").body);
    REQUIRE(answer.at("admitted") == true);
    return answer.at("cycle_id").get<std::string>();
  }
};

} // namespace

TEST_CASE("a node that stops while its store is away leaves in STATE.md what was acknowledged",
          "[progress]") {
  stopping_node n;
  const auto first = n.begin();
  n.actors.advance(10s);
  REQUIRE_THAT(n.file("STATE.md"), Contains(first));
  n.processes->define("agent", sim::sim_program{.hang = true});
  (void)n.begin();
  REQUIRE(n.processes->alive() == 1);
  n.database->faults.unavailable = true;
  n.actors.advance(5s);
  n.stop();
  CHECK_THAT(n.file("STATE.md"), Contains(first));
}

TEST_CASE("a node that stops before its cycle's row is written tells nobody of that cycle",
          "[progress]") {
  stopping_node n;
  n.processes->define("agent", sim::sim_program{.duration = 10s});
  const auto first = n.begin();
  const auto second = n.begin();
  REQUIRE(faults::arm({{"store.begin", faults::action::error, -1}}, 1));
  n.actors.advance(20s);
  REQUIRE_THAT(n.file("STATE.md"), Contains(first));
  REQUIRE(faults::triggered("store.begin") > 0);
  n.stop();
  CHECK_FALSE(n.database->all_cycles().contains(second));
  CHECK_THAT(n.file("STATE.md"), !Contains(second));
  for (const auto& commit : n.repositories->commits(n.kernel_home))
    CHECK_THAT(commit.info.subject, !Contains(second));
}

} // namespace boyd::final_block_test
