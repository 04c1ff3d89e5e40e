#include "lone_agent.hpp"

#include <algorithm>

// One slow agent does not hold up the others: its cycle is recorded when the next slot is due.

namespace boyd::next_slot_test {

using namespace boyd;
using boyd::test::lone_agent_node;

namespace {

struct two_agents : lone_agent_node {
  two_agents() {
    kernel().when.expression = "@every 1m";
    kernel().ends_with_slot = true;
    kernel().cycle_deadline = limits::longest_cycle;
    context->scheduled = true;
    config::agent slow = kernel().agents.front();
    slow.agent_id = "slow";
    slow.timeout = 30min;
    slow.run.emplace<config::command_executor>().argv = {"slow"};
    kernel().agents.push_back(slow);
    processes->define("slow", sim::sim_program{.duration = 10min + 30s});
  }

  std::vector<cycle_record> cycles() const {
    std::vector<cycle_record> all;
    for (const auto& [id, c] : database->all_cycles())
      if (c.status != cycle_status::running)
        all.push_back(c);
    std::ranges::sort(all, {}, &cycle_record::scheduled_at);
    return all;
  }
};

std::string status_in(const cycle_record& c, const std::string& agent) {
  const auto it = std::ranges::find(c.agents, agent, &agent_result::agent_id);
  return it == c.agents.end() ? "none" : it->status;
}

} // namespace

TEST_CASE("next_slot: a slow agent goes on while the others have their cycles", "[kernel]") {
  two_agents n;
  n.start();
  n.actors.advance(15min);
  const auto all = n.cycles();
  REQUIRE(all.size() >= 13);
  CHECK(status_in(all.front(), "slow") == "running");
  CHECK(all.front().status == cycle_status::partial_success);
  std::size_t slow = 0;
  for (const auto& c : all) {
    CHECK(status_in(c, "agent") == "done");
    slow += status_in(c, "slow") == "none" ? 0 : 1;
  }
  CHECK(slow == 2); // the first one, and the next after its end
  for (const auto& [key, slot] : n.database->all_slots())
    CHECK(slot.state != occurrence_state::skipped);
  // What came late stands in STATE.md once.
  const auto state = n.disk->snapshot().at(std::string(lone_agent_node::kernel_home) + "/STATE.md");
  const auto first = state.find(" slow: ");
  CHECK(first != std::string::npos);
}

TEST_CASE("next_slot: a cycle that ends in time is recorded at its end", "[kernel]") {
  two_agents n;
  n.processes->define("slow", sim::sim_program{.duration = 20s});
  n.start();
  n.actors.advance(5min);
  for (const auto& c : n.cycles())
    CHECK(c.status == cycle_status::success);
}

} // namespace boyd::next_slot_test
