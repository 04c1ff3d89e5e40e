#include "program.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <csignal>

namespace boyd::cost_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

/// What `boyd cost` and `boyd status` say of calls that are on record.

namespace {

const char* with_budgets = R"(version: 1
node: {budget_day: {tokens: 1000000}}
providers:
  - {provider_id: p, preset: ollama, model: m}
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: a
        executor: {type: chat, provider: p}
        budget: {day: {tokens: 100, cost: 1.50}}
      - {agent_id: b, executor: {type: chat, provider: p}}
)";

/// Puts rows into the database as a node would: one call of each agent today, and an older one.
void record_calls(const home_of_boyd& home) {
  REQUIRE(home.run({"status"}).code == 0);
  const std::string today = "strftime('%Y-%m-%d', 'now')";
  const std::string sql =
      "INSERT INTO spend(call_id, day, created_at, settled_at, dispatch_id, kernel_id, agent_id, "
      "provider_id, model, input, cached, output, reasoning, cost, scopes) VALUES('d/1/1', " +
      today + ", 1, 2, 'd', 'default', 'a', 'p', 'm', 60, 10, 25, 5, 1234500, '[]'), ('d/1/2', " +
      today +
      ", 1, NULL, 'd', 'default', 'b', 'p', 'x,y', 5, 0, 5, 0, 20000, '[]'), ('c/1/1', "
      "'2026-01-31', 1, 2, 'c', 'default', 'a', 'p', 'm', 1, 0, 1, 0, 1, '[]');"
      "INSERT INTO spend_totals VALUES(" +
      today + ", 'agent:default/a', 85, 1234500), (" + today + ", 'agent:default/b', 10, 20000);";
  const auto done = program({"/usr/bin/env", "sqlite3", home.file("boyd.db"), sql}, {}).finish();
  INFO(done.err);
  REQUIRE(done.code == 0);
}

} // namespace

TEST_CASE("cost: who used up what, as a table, JSON and values separated by commas", "[e2e]") {
  const home_of_boyd home(with_budgets);
  const auto none = home.run({"cost"});
  CHECK(none.code == 0);
  CHECK_THAT(none.out, Contains("No model was called on "));
  record_calls(home);
  const auto table = home.run({"cost"});
  CHECK_THAT(table.out, Contains("default/a  1      0     60     10      25      5          85"));
  CHECK_THAT(table.out, Contains("1.2345\n"));
  CHECK_THAT(table.out, Contains("0.02 *\n"));
  CHECK_THAT(table.out, Contains("1.2545 *\n* 1 call is not finished"));
  const auto body = home.run({"cost", "--by", "model", "--json"}).json();
  CHECK(body["schema"] == "boyd.cost/1");
  REQUIRE(body["items"].size() == 2);
  CHECK(body["items"][0]["key"] == "p/m");
  CHECK(body["items"][0]["cost"] == "1.2345");
  CHECK(body["total"]["tokens"] == 95);
  CHECK(body["total"]["open_calls"] == 1);
  const auto csv = home.run({"cost", "--by", "model", "--csv"});
  CHECK_THAT(csv.out, Contains("\r\n\"p/x,y\",1,1,5,0,5,0,10,0.02\r\n"));
  const auto days = home.run({"cost", "--by", "day", "--from", "2026-01-31", "--json"}).json();
  CHECK(days["items"].size() == 2);
  CHECK(home.run({"cost", "--to", "2026-01-31", "--json"}).json()["total"]["calls"] == 1);
  CHECK(home.run({"cost", "--kernel", "other", "--json"}).json()["items"].empty());
  CHECK_THAT(home.run({"cost", "--from", "31.1."}).err, Contains("not a date"));
  CHECK_THAT(home.run({"cost", "--from", "2026-02-01", "--to", "2026-01-31"}).err,
             Contains("is after"));
  CHECK(home.run({"cost", "--json", "--csv"}).code != 0);
}

TEST_CASE("cost: a running node says the same, and status warns of a budget", "[e2e]") {
  const home_of_boyd home(with_budgets);
  record_calls(home);
  const auto before = home.run({"cost", "--json"});
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  CHECK(home.run({"cost", "--json"}).out == before.out);
  const auto status = home.run({"status", "--json"}).json();
  REQUIRE(status["budgets"].size() == 3);
  CHECK(status["budgets"][0]["scope"] == "node");
  CHECK(status["budgets"][0]["percent"] == 0);
  CHECK(status["budgets"][1]["agent_id"] == "a");
  CHECK(status["budgets"][1]["percent"] == 85);
  CHECK(status["budgets"][1]["cost"]["limit"] == "1.50");
  CHECK(status["budgets"][2]["tokens"]["limit"] == 5'000'000);
  REQUIRE(status["problems"].size() == 1);
  CHECK(status["problems"][0] ==
        "agent default/a has used 85 % of today's budget: 85 of 100 tokens");
  CHECK_THAT(home.run({"status"}).out, Contains("BUDGET TODAY"));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

namespace {

/// A run of agent a that was settled at $1.20 of its $1.50, and a reservation of agent b.
void record_estimate(const home_of_boyd& home) {
  REQUIRE(home.run({"status"}).code == 0);
  const std::string today = "strftime('%Y-%m-%d', 'now')";
  const std::string columns = "INSERT INTO spend(call_id, day, created_at, settled_at, "
                              "dispatch_id, kernel_id, agent_id, provider_id, model, input, "
                              "cached, output, reasoning, cost, scopes) VALUES";
  const std::string sql = columns + "('estimate/1/1', " + today +
                          ", 1, 2, 'estimate', 'default', 'a', 'p', 'm', 80, 0, 0, 0, 1200000, "
                          "'[\"agent:default/a\"]'), ('reserved/1/1', " +
                          today +
                          ", 3, NULL, 'reserved', 'default', 'b', 'p', 'm', 500, 0, 0, 0, 2000000, "
                          "'[\"agent:default/b\"]'); INSERT INTO spend_totals VALUES(" +
                          today + ", 'agent:default/a', 80, 1200000), (" + today +
                          ", 'agent:default/b', 500, 2000000);";
  const auto done = program({"/usr/bin/env", "sqlite3", home.file("boyd.db"), sql}, {}).finish();
  INFO(done.err);
  REQUIRE(done.code == 0);
}

std::string used_by_a(const home_of_boyd& home) {
  return home.run({"status", "--json"}).json()["budgets"][1]["cost"]["used"];
}

} // namespace

TEST_CASE("case W3: a person sees what a reservation holds and why, and releases it", "[e2e]") {
  const home_of_boyd home(with_budgets);
  record_estimate(home);
  std::unique_ptr<program> node;
  if (GENERATE(false, true)) {
    node = std::make_unique<program>(home.node());
    REQUIRE(node->wait_for_stderr("ready: node "));
  }
  CHECK_THAT(home.run({"status"}).out,
             Contains("1 reservation holds 500 tokens and 2.00 dollars of today"));
  const auto shown = home.run({"cost"});
  CHECK_THAT(shown.out, Contains("reserved/1/1") && Contains("default/b") &&
                            Contains("no longer has a record"));
  CHECK(home.run({"cost", "release", "reserved"}).code != 0); // no reason
  const auto released =
      home.run({"cost", "release", "reserved", "--reason", "the key was refused"});
  INFO(released.err);
  CHECK(released.code == 0);
  CHECK_THAT(released.out, Contains("500 tokens and 2.00 dollars returned"));
  const auto after = home.run({"cost", "--json"}).json();
  CHECK(after["reservations"].empty());
  CHECK(after["total"]["open_calls"] == 0);
  CHECK(after["total"]["cost"] == "1.20");
  CHECK(home.run({"status", "--json"}).json()["reservations"]["open"] == 0);
  // Of a settled estimate a part.
  CHECK(used_by_a(home) == "1.20");
  CHECK_THAT(home.run({"cost", "release", "estimate", "--used-dollars", "9", "--reason", "r"}).err,
             Contains("counts as only"));
  CHECK_THAT(home.run({"cost", "release", "nothing", "--reason", "r"}).err,
             Contains("no such call"));
  CHECK(home.run({"cost", "release", "estimate", "--used-dollars", "0.25", "--used-tokens", "7",
                  "--reason", "as the provider bills"})
            .code == 0);
  CHECK(used_by_a(home) == "0.25");
  const auto calls = home.run({"cost", "--by", "call", "--json"}).json()["items"];
  REQUIRE(calls.size() == 2);
  for (const auto& c : calls) {
    CHECK(c["release"]["by"].get<std::string>().find(", with ") != std::string::npos);
    CHECK(c["release"]["at"].is_string());
  }
  CHECK_THAT(home.run({"cost", "--by", "call"}).out, Contains("as the provider bills"));
  if (node) {
    node->signal(SIGTERM);
    CHECK(node->finish().code == 0);
  }
}

} // namespace boyd::cost_test
