#include "actors/node/root.hpp"
#include "dispatching_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

/// How often a cycle goes to the store: each way costs a flush of the disk or a turn of the
/// network.
namespace boyd::cycle_requests_test {

using namespace boyd;
using boyd::test::recording_store;
using boyd::test::simulated_node;
using nlohmann::json;
using batch = std::vector<store::operation>;

namespace {

template <class Operation>
bool has(const batch& b) {
  return std::ranges::any_of(
      b, [](const store::operation& op) { return std::holds_alternative<Operation>(op); });
}

/// Rows of one cycle.
bool asks_for_cycle(const store::operation& op) {
  const auto* list = std::get_if<store::list_dispatches>(&op);
  return list != nullptr && !list->cycle_id.empty();
}

/// What a kernel asks when it was not told.
bool asks_alone(const batch& b) {
  return b.size() == 1 && asks_for_cycle(b.front());
}

/// What ended of earlier cycles.
bool asks_for_late(const batch& b) {
  return std::ranges::any_of(b, [](const store::operation& op) {
    const auto* list = std::get_if<store::list_dispatches>(&op);
    return list != nullptr && list->finished_since;
  });
}

/// That what followed the cycle is done.
bool tells_effects(const batch& b) {
  const auto* fact = std::get_if<store::put_fact>(&b.front());
  return fact != nullptr && fact->scope.starts_with("effects:");
}

/// Whether a cycle has asked for it: housekeeping goes on beside, and whoever wants to see a cycle
/// that has ended asks more than its rows.
bool is_of_cycle(const batch& b) {
  return has<store::open_occurrence>(b) || has<store::latest_per_agent>(b) ||
         has<store::enqueue_cycle>(b) || has<store::claim>(b) || has<store::settle>(b) ||
         has<store::finish_cycle>(b) || asks_for_late(b) || tells_effects(b) || asks_alone(b);
}

/// A node whose only agent answers at once.
struct fixture : simulated_node {
  std::shared_ptr<recording_store::list> transactions = std::make_shared<recording_store::list>();
  root_actor root;

  explicit fixture(std::size_t agents = 1) {
    context->ports.zones = adapters::make_time_zones();
    context->ports.listen = [](const wake_function&) { return std::unique_ptr<wakeup_source>(); };
    context->ports.make_store = [db = database, all = transactions] {
      return std::make_unique<recording_store>(sim::make_sim_store(db), all);
    };
    context->scheduled = false;
    for (std::size_t i = 0; i < agents; ++i) {
      auto& agent = kernel().agents.emplace_back();
      agent.agent_id = "agent-" + std::to_string(i);
      agent.run.emplace<config::script_executor>().answers.emplace_back().summary = "done";
    }
    root = actors.own(spawn_root(actors.system(), context, configuration));
    caf::anon_send(root, start_claiming{});
    actors.advance(1s);
  }

  test::asked<api_response> call(const std::string& method, const std::string& path,
                                 const std::string& body = {}) {
    api_request r;
    r.method = method;
    r.path = path;
    r.body = body;
    if (method == "GET")
      r.query["wait"] = "1";
    auto asked = actors.ask<api_response>(root, r);
    actors.advance(1s);
    return asked;
  }

  /// Runs one to its end; what it asked the store.
  std::vector<batch> cycle() {
    transactions->clear();
    const auto begun = call("POST", "/api/v1/cycles");
    REQUIRE(begun.ok());
    const auto id = json::parse(begun.value().body).at("cycle_id").get<std::string>();
    const auto ended = call("GET", "/api/v1/cycles/" + id);
    REQUIRE(ended.ok());
    const auto record = json::parse(ended.value().body);
    CHECK(record.at("status") == "success");
    CHECK(record.at("agents").at(0).at("dispatch_id").is_string());
    std::vector<batch> own;
    std::ranges::copy_if(*transactions, std::back_inserter(own), is_of_cycle);
    return own;
  }
};

} // namespace

TEST_CASE("a cycle that nothing delays goes to the store eight times, and writes in six",
          "[kernel]") {
  fixture f;
  f.cycle();
  const auto all = f.cycle();
  REQUIRE(all.size() == 8);
  // The slot with its cycle, and what that is judged by.
  CHECK(std::holds_alternative<store::open_occurrence>(all[0].front()));
  CHECK(has<store::latest_per_agent>(all[0]));
  CHECK(has<store::list_pauses>(all[0]));
  CHECK(has<store::enqueue_cycle>(all[1]));
  CHECK(has<store::claim>(all[2]));
  CHECK(has<store::settle>(all[3]));
  CHECK(asks_for_cycle(all[4].front()));
  CHECK(std::ranges::all_of(all[5], store::is_question));
  // The record with what is to follow and the end of its slot, and that it has followed.
  CHECK(has<store::finish_cycle>(all[6]));
  CHECK(has<store::close_occurrence>(all[6]));
  CHECK(has<store::put_fact>(all[6]));
  CHECK(tells_effects(all[7]));
}

TEST_CASE("triggers of one millisecond have a slot each", "[kernel]") {
  fixture f;
  api_request order;
  order.method = "POST";
  order.path = "/api/v1/cycles";
  const auto first = f.actors.ask<api_response>(f.root, order);
  const auto second = f.actors.ask<api_response>(f.root, order);
  f.actors.run_all(); // no time passes
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first.value().status + second.value().status == 202 + 409);
  CHECK(f.database->all_slots().size() == 2);
}

TEST_CASE("a trigger is refused while its kernel is paused, and begins no cycle", "[kernel]") {
  fixture f;
  f.cycle();
  REQUIRE(f.call("POST", "/api/v1/pause", R"({"reason":"holidays"})").ok());
  const auto cycles = f.database->all_cycles().size();
  f.transactions->clear();
  const auto refused = f.call("POST", "/api/v1/cycles");
  REQUIRE(refused.ok());
  const auto said = json::parse(refused.value().body);
  CHECK(said.at("admitted") == false);
  CHECK(said.at("reason").get<std::string>().find("holidays") != std::string::npos);
  CHECK(f.database->all_cycles().size() == cycles);
  for (const auto& [key, slot] : f.database->all_slots())
    CHECK(slot.state != occurrence_state::open);
  // The ledger has it, with the reason.
  const auto& last = f.transactions->back().front();
  REQUIRE(std::holds_alternative<store::open_occurrence>(last));
  CHECK(std::get<store::open_occurrence>(last).slot.state == occurrence_state::skipped);
}

} // namespace boyd::cycle_requests_test
