#include "boyd/faults/points.hpp"
#include "lone_agent.hpp"

#include <algorithm>

namespace boyd::held_act_test {

using namespace boyd;
using boyd::test::lone_agent_node;

namespace {

/// A node with one cycle behind it, to be started again on the same home; its one agent now never
/// ends by itself.
struct restarted_node : lone_agent_node {
  restarted_node() {
    start();
    begin_cycle();
    actors.advance(10s);
    REQUIRE(repositories->commits(kernel_home).back().info.subject.starts_with("cycle "));
    stop();
    processes->define("agent", sim::sim_program{.hang = true});
  }

  ~restarted_node() { faults::disarm(); }

  void begin_cycle() {
    const auto answer = call("POST", "/api/v1/cycles");
    INFO(answer.body);
    REQUIRE(answer.status < 300);
  }

  /// Agents begin late, with something else that is ten seconds late.
  void check_held() {
    start();
    begin_cycle();
    actors.advance(5s);
    CHECK(processes->alive() == 0);
    actors.advance(10s);
    CHECK(processes->alive() == 1);
  }

  /// A request comes this much later; so many go well before.
  static void delay(const char* point, milliseconds delay, std::int64_t after = 0) {
    faults::arming a;
    a.point = point;
    a.what = faults::action::delay;
    a.delay = delay;
    a.after = after;
    REQUIRE(faults::arm({a}, 1));
  }
};

} // namespace

TEST_CASE("agents begin when what was written before their cycle is committed", "[progress]") {
  // Else a start's look at the latest cycle's commits takes along half of what they write, as
  // `auto: pre-write snapshot`.
  restarted_node n;
  restarted_node::delay("git_committer.request", 10s);
  n.check_held();
}

TEST_CASE("agents begin when INIT.md of a changed configuration is written", "[progress]") {
  restarted_node n;
  n.configuration->redacted_yaml += "# changed\n";
  // The kernel's home is asked for first.
  restarted_node::delay("state_writer.request", 10s, 1);
  n.check_held();
}

TEST_CASE("agents do not wait for ever for commits of an earlier cycle", "[progress]") {
  restarted_node n;
  restarted_node::delay("git_committer.request", 10min);
  n.start();
  n.begin_cycle();
  n.actors.advance(1min);
  CHECK(n.processes->alive() == 1);
}

TEST_CASE("a cycle that the next slot cancels while its agents are held begins none of them",
          "[progress]") {
  restarted_node n;
  n.kernel().when.expression = "@every 20s";
  n.kernel().when.overlap = config::overlap_policy::cancel;
  n.context->scheduled = true;
  n.configuration->redacted_yaml += "# changed\n";
  restarted_node::delay("state_writer.request", 25s, 1);
  const auto before = n.database->all_cycles().size();
  n.start();
  n.begin_cycle();
  n.actors.advance(40s);
  const auto ended_without_any = [](const auto& cycle) {
    return cycle.second.status != cycle_status::running && cycle.second.dispatched == 0;
  };
  REQUIRE(n.database->all_cycles().size() >= before + 2);
  CHECK(std::ranges::any_of(n.database->all_cycles(), ended_without_any));
}

} // namespace boyd::held_act_test
