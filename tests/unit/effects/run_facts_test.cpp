#include "boyd/effects/run_facts.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace boyd::run_facts_test {

using namespace boyd;
using namespace boyd::effects;
using nlohmann::json;

namespace {

constexpr utc_time t0{milliseconds{1'770'976'800'000}};

dispatch run_with(boxed<reading_report> reading) {
  dispatch d;
  d.dispatch_id = "7";
  d.kernel_id = "default";
  d.agent_id = "reader";
  d.status = dispatch_status::done;
  d.attempt = 2;
  d.fence = 5;
  d.outcome.execution = execution_verdict::succeeded;
  d.outcome.verification = verification_verdict::passed;
  d.outcome.usage.input_tokens = 100;
  d.outcome.usage.output_tokens = 11;
  d.outcome.usage.cost_microusd = 42;
  d.outcome.usage.reading = std::move(reading);
  return d;
}

reading_report two_items() {
  reading_report r;
  r.items = {{"ctx_1", "a.md", "file", "declared", "full", "high", "0a", 12, true, true, false},
             {"ctx_2", "b.md", "file", "buffer", "summary", "low", "0b", 3, false, false, true}};
  r.accuracy = 2.0 / 3;
  r.enforced = r.weak = true;
  r.question = "what?";
  return r;
}

} // namespace

TEST_CASE("facts of a run: each item that its prompt showed, then how it ended") {
  const auto facts = facts_of(run_with(two_items()), t0);
  REQUIRE(facts.size() == 3);
  CHECK(facts[0].from == "ctx_1");
  CHECK(facts[0].to == "exec_7");
  CHECK(facts[0].type == "used_in");
  CHECK(facts[0].timestamp == t0);
  CHECK(json::parse(facts[0].meta_json) == json{{"as", "full"},
                                                {"cited", true},
                                                {"fence", 5},
                                                {"from", "declared"},
                                                {"hash", "0a"},
                                                {"kernel", "default"},
                                                {"path", "a.md"},
                                                {"section", "high"},
                                                {"type", "file"},
                                                {"used", true},
                                                {"accuracy", 0.6667},
                                                {"enforced", true}});
  CHECK(json::parse(facts[1].meta_json)["frozen"] == true);
  CHECK(facts[2].type == "resulted_in");
  CHECK(facts[2].from == "exec_7");
  CHECK(facts[2].to == "outcome_7");
  const auto end = json::parse(facts[2].meta_json);
  CHECK(end["agent"] == "reader");
  CHECK(end["status"] == "done");
  CHECK(end["verification"] == "passed");
  CHECK(end["class"] == "none");
  CHECK(end["tokens"] == 111);
  CHECK(end["cost_microusd"] == 42);
  CHECK(end["weak"] == true);
  CHECK(end["question"] == "what?");
  CHECK(end["fence"] == 5);
}

TEST_CASE("facts of a run without context: how it ended") {
  const auto facts = facts_of(run_with(std::nullopt), t0);
  REQUIRE(facts.size() == 1);
  CHECK_FALSE(json::parse(facts[0].meta_json).contains("weak"));
}

TEST_CASE("facts of a run are taken by the recorder's chain") {
  graph::edge_chain chain;
  for (const auto& fact : facts_of(run_with(two_items()), t0))
    CHECK(chain.append(fact).has_value());
  const auto decision = decision_of(run_with({}), "c", "static", "it failed", t0);
  CHECK(nlohmann::json::parse(decision.meta_json)["kernel"] == run_with({}).kernel_id);
  CHECK(chain.append(decision).has_value());
}

TEST_CASE("many facts are told in parts, each once and in order") {
  auto reading = two_items();
  reading.items.front().path = std::string(4000, 'p');
  reading.items.resize(1500, reading.items.front());
  auto facts = facts_of(run_with(reading), t0);
  const auto all = facts;
  const auto parts = in_parts(std::move(facts));
  CHECK(parts.size() > 5);
  std::vector<graph::edge> joined;
  for (const auto& part : parts) {
    std::size_t bytes = 0;
    for (const auto& f : part)
      bytes += f.meta_json.size();
    CHECK(bytes <= std::size_t{1} << 20);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  CHECK(joined == all);
  CHECK(in_parts({}).empty());
}

} // namespace boyd::run_facts_test
