#include "actors/keeper/core.hpp"
#include "boyd/faults/points.hpp"
#include "lone_agent.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

// Cycles that are asked for beside one that runs, and waits for cycles that have ended.

namespace boyd::triggers_test {

using namespace boyd;
using boyd::test::lone_agent_node;
using nlohmann::json;

namespace {

struct asked_node : lone_agent_node {
  explicit asked_node(config::overlap_policy overlap = config::overlap_policy::skip) {
    kernel().when.overlap = overlap;
    start();
  }

  ~asked_node() { faults::disarm(); }

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
  CHECK(refused.at("reason") == "a cycle is running and another one is waiting");
}

TEST_CASE("a wait that comes before the kernel has loaded is answered when it has", "[progress]") {
  asked_node n;
  n.stop();
  faults::arming refusal;
  refusal.point = "kernel.load";
  refusal.count = 3;
  REQUIRE(faults::arm({refusal}, 1));
  n.start();
  api_request request;
  request.method = "GET";
  request.path = "/api/v1/cycles/01900000-0000-7000-8000-000000000000";
  request.query["wait"] = "1";
  auto answer = n.actors.ask<api_response>(n.root, request);
  n.actors.advance(1min);
  REQUIRE(answer.ok());
  CHECK(answer.value().status == 404);
}

TEST_CASE("a trigger in doubt that is found to stand cancels the running cycle, too",
          "[progress]") {
  asked_node n(config::overlap_policy::cancel);
  n.processes->define("agent", sim::sim_program{.duration = 10min});
  REQUIRE(n.begin().at("admitted") == true);
  n.actors.advance(1s);
  // Written and not answered for; the store's worker ends when it is repeated.
  faults::arming lost;
  lost.point = "store.admit";
  lost.what = faults::action::drop;
  faults::arming crash = lost;
  crash.what = faults::action::crash;
  crash.after = 1;
  crash.count = keeper_poison_crashes;
  REQUIRE(faults::arm({lost, crash}, 1));
  CHECK(n.call("POST", "/api/v1/cycles").status == 202); // by the ledger
  n.actors.advance(1min);
  CHECK(n.database->all_cycles().size() == 2);
  CHECK(n.cancelled() == 1);
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
