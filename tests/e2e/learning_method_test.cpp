#include "skills_lab.hpp"

#include <cmath>
#include <cstdint>
#include <map>
#include <string>

namespace boyd::learning_method_test {

using namespace boyd::test;
using namespace boyd::test::skills_lab;

namespace {

/// Of each run, the oldest first: how it ranked, and what the item was worth to it.
struct ranked_run {
  json executor;
  double score = 0;
};

std::vector<ranked_run> runs_of(const learning_home& h) {
  std::vector<ranked_run> all;
  auto rows = h.home.run({"dispatches", "ls", "--json"}).json()["items"];
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const std::string id = (*row)["dispatch_id"];
    const auto record = json::parse(read_file(h.home.file("executions/" + id + "/record.json")));
    const auto& attempt = record["attempts"][0];
    all.push_back(
        {attempt["executor"], attempt["turns"][0]["snapshot"]["items"][0]["score"].get<double>()});
    CHECK(h.home.run({"replay", id, "--strict"}).code == 0);
  }
  return all;
}

} // namespace

TEST_CASE("learning.method: a bandit draws what an item is worth, with a seed on record",
          "[e2e][skills]") {
  const learning_home h("    learning: {method: bandit}\n");
  h.cycles(4);
  const auto runs = runs_of(h);
  REQUIRE(runs.size() == 4);
  std::map<std::uint64_t, double> drawn;
  for (const auto& r : runs) {
    CHECK(r.executor["learning"] == "bandit");
    drawn[r.executor["seed"].get<std::uint64_t>()] = r.score;
    CHECK(r.score > 0);
  }
  CHECK(drawn.size() == 4);
  // By steps it would begin with 0.5·0.7 + 0.3·1/2 + 0.2.
  CHECK(std::abs(runs.front().score - 0.7) > 1e-6);
  CHECK(runs.front().score < 1);
}

TEST_CASE("learning.method: an average falls faster than steps when what helped fails",
          "[e2e][skills]") {
  std::map<std::string, double> worth;
  for (const std::string method : {"linear", "ema"}) {
    const learning_home h("    learning: {method: " + method + "}\n");
    h.cycles(6);
    h.code(1);
    h.cycles(4);
    const auto runs = runs_of(h);
    REQUIRE(runs.size() == 10);
    CHECK(runs.back().executor["learning"] == method);
    CHECK_FALSE(runs.back().executor.contains("seed"));
    worth[method] = runs.back().score;
  }
  CHECK(worth["ema"] < worth["linear"] - 0.01);
}

} // namespace boyd::learning_method_test
