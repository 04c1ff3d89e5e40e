#include "lone_agent.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

// A node whose clock is set, between its cycles or its lives.

namespace boyd::kernel_clock_back_test {

using namespace boyd;
using boyd::test::lone_agent_node;
using nlohmann::json;

namespace {

struct lone_node : lone_agent_node {
  json ask(const std::string& method, const std::string& path, bool wait = false) {
    const auto answer = call(method, path, wait);
    INFO(answer.body);
    REQUIRE(answer.status < 300);
    return json::parse(answer.body);
  }

  /// Begins a cycle and lets it end.
  std::string run_cycle() {
    const auto begun = ask("POST", "/api/v1/cycles");
    actors.advance(10s);
    return begun.at("cycle_id").get<std::string>();
  }

  /// With cycles by the minute.
  void schedule() {
    kernel().when.expression = "@every 1m";
    context->scheduled = true;
  }

  /// A slot of the schedule in the ledger, as another clock has left it.
  void leave_slot(utc_time at) {
    occurrence slot;
    slot.kernel_id = "default";
    slot.scheduled_at = at;
    slot.trigger = "schedule";
    slot.node_id = context->node_id;
    slot.state = occurrence_state::missed;
    slot.created_at = actors.clock()->now();
    const auto store = sim::make_sim_store(database);
    REQUIRE(store->open());
    REQUIRE(store->apply({store::open_occurrence{slot}}));
  }

  bool all_well() const {
    return std::ranges::all_of(database->all_cycles(), [](const auto& each) {
      return each.second.status == cycle_status::success && each.second.dispatched == 1;
    });
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
  CHECK(n.ask("GET", "/api/v1/cycles/" + after, true).at("cycle_id") == after);
  CHECK(n.ask("GET", "/api/v1/status").dump().find(after) != std::string::npos);
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
  CHECK(n.ask("GET", "/api/v1/cycles/01900000-0000-7000-8000-00000000000b", true).at("status") ==
        "success");
}

TEST_CASE(
    "case 23 clock-step: a slot of a clock that was years ahead stops no schedule, in this life "
    "and the next") {
  lone_node n;
  n.schedule();
  n.leave_slot(n.actors.clock()->now() + 24h * 365 * 12);
  for (std::size_t life = 1; life <= 2; ++life) {
    n.start();
    n.actors.advance(10min);
    CHECK(n.database->all_cycles().size() >= 9 * life);
    CHECK(n.database->all_cycles().size() <= 12 * life);
    CHECK(n.all_well());
    n.stop();
  }
}

TEST_CASE("case 23 clock-step: when a clock that was years behind is set right, nothing of these "
          "years is made up for") {
  lone_node n;
  n.schedule();
  n.kernel().when.misfire = config::misfire_policy::all;
  n.start();
  n.actors.advance(10min);
  const auto before = n.database->all_cycles().size();
  n.actors.clock()->jump(-24h * 365 * 12);
  n.actors.advance(10min);
  n.actors.clock()->jump(24h * 365 * 12);
  n.actors.advance(10min);
  CHECK(n.database->all_cycles().size() >= before + 18);
  CHECK(n.database->all_cycles().size() <= before + 34); // the ten minutes behind are made up for
  CHECK(n.database->all_slots().size() < 100);
  CHECK(n.all_well());
}

TEST_CASE("case 23 clock-step: a time that comes again cancels nothing for slots that have run") {
  lone_node n;
  n.schedule();
  n.kernel().when.overlap = config::overlap_policy::cancel;
  n.kernel().cycle_deadline = 1h;
  n.kernel().ends_with_slot = false;
  n.kernel().agents.front().timeout = 30min;
  n.start();
  n.actors.advance(10min);
  n.leave_slot(n.actors.clock()->now() + 24h * 365);
  const auto now = std::chrono::floor<std::chrono::minutes>(n.actors.clock()->now());
  for (int later = 0; later < 15; ++later)
    n.leave_slot(now + later * 1min);
  n.stop();
  n.start();
  n.processes->define("agent", sim::sim_program{.duration = 5min});
  n.run_cycle();
  n.actors.advance(6min);
  CHECK(n.all_well());
}

TEST_CASE("case R8: while a schedule waits for a clock that was set back, it says until when") {
  lone_node n;
  n.schedule();
  n.start();
  n.actors.advance(10min); // from 10:00
  n.actors.clock()->jump(-1h);
  n.actors.advance(2min);
  const auto notice_of = [&] { return n.ask("GET", "/readyz").at("notices").dump(); };
  CHECK(notice_of().find("waits until 2026-02-13T10:11:00Z") != std::string::npos);
  CHECK(n.ask("GET", "/api/v1/status").dump().find("waits until") != std::string::npos);
  n.stop();
  n.start();
  n.actors.advance(2min);
  CHECK(notice_of().find("waits until 2026-02-13T10:11:00Z") != std::string::npos);
  const auto before = n.database->all_cycles().size();
  n.actors.advance(66min);
  CHECK(notice_of() == "[]");
  CHECK(n.database->all_cycles().size() > before);
  CHECK(n.all_well());
}

} // namespace boyd::kernel_clock_back_test
