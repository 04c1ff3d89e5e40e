#include "boyd/skills/policy_replay.hpp"
#include "src/adapters/yaml/yaml.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace boyd::policy_replay_test {

using namespace boyd;
using namespace boyd::skills;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

const utc_time t0 = *parse_rfc3339("2026-01-01T00:00:00Z");

/// A run each day that cites the item; it goes well, or not.
std::vector<graph::edge> days(const std::string& item, const std::string& outcomes, int first = 0) {
  std::vector<graph::edge> facts;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto at = t0 + std::chrono::hours{24} * (first + static_cast<int>(i));
    const auto run = item + "-" + std::to_string(first) + "-" + std::to_string(i);
    const bool good = outcomes[i] == '+';
    facts.push_back({"ctx_" + item, "exec_" + run, "used_in", at,
                     json{{"path", item},
                          {"cited", true},
                          {"used", true},
                          {"fence", 1},
                          {"type", "file"},
                          {"from", "declared"}}
                         .dump()});
    facts.push_back({"exec_" + run, "outcome_" + run, "resulted_in", at,
                     json{{"agent", "a"},
                          {"status", good ? "done" : "failed"},
                          {"class", good ? "none" : "deterministic"},
                          {"execution", good ? "succeeded" : "failed"},
                          {"claim", "none"},
                          {"verification", "none"},
                          {"fence", 1}}
                         .dump()});
  }
  return facts;
}

std::map<std::string, policy_outcome> replayed(const std::vector<graph::edge>& facts,
                                               const policy_numbers& numbers,
                                               std::optional<utc_time> since = {}) {
  policy_replay replay(numbers, since);
  std::uint64_t line = 0;
  for (const auto& f : facts)
    REQUIRE(replay.take(f, ++line));
  return replay.finish(t0 + std::chrono::hours{24} * 20);
}

result<policy_numbers> read(const std::string& text) {
  const auto parsed = adapters::parse_yaml("policy.yaml", text);
  REQUIRE(parsed.value);
  return read_policy_numbers(*parsed.value, "policy.yaml");
}

} // namespace

TEST_CASE("policy replay: the same numbers make no difference", "[policy_replay]") {
  auto facts = days("a", "+++++++");
  const auto more = days("b", "+-+--");
  facts.insert(facts.end(), more.begin(), more.end());
  CHECK(differences(replayed(facts, {}), replayed(facts, {})).empty());
  CHECK(differences(replayed(facts, {}), replayed(facts, {}, t0)).empty());
}

TEST_CASE("policy replay: other numbers promote later, and archive what was kept",
          "[policy_replay]") {
  const auto facts = days("a", "++++++++++");
  policy_numbers strict;
  strict.stages.bank_referenced = 6;
  strict.memory.archive_importance = 0.99;
  const auto usual = replayed(facts, {});
  const auto other = replayed(facts, strict);
  CHECK(usual.at("ctx_a").banked == t0 + std::chrono::hours{24} * 2);
  CHECK(usual.at("ctx_a").candidate == t0 + std::chrono::hours{24} * 4);
  CHECK(other.at("ctx_a").banked == t0 + std::chrono::hours{24} * 4); // as a candidate
  const auto found = differences(usual, other);
  REQUIRE(found.size() == 2);
  CHECK(found[0].what == "bank");
  CHECK(found[0].now == "2026-01-03T00:00:00Z");
  CHECK(found[1].what == "memory");
  CHECK(found[1].then == "archive");
}

TEST_CASE("policy replay: with `since` the past stays as it was", "[policy_replay]") {
  auto facts = days("a", "+++++");
  const auto late = days("a", "-----", 10);
  facts.insert(facts.end(), late.begin(), late.end());
  policy_numbers mild;
  mild.learning.success_step = 0;
  mild.learning.failure_step = 0;
  const auto all = replayed(facts, mild);
  const auto later = replayed(facts, mild, t0 + std::chrono::hours{24} * 10);
  CHECK(all.at("ctx_a").confidence == 0.7);
  CHECK(later.at("ctx_a").confidence > 0.9); // five successes counted, no failure
  CHECK(replayed(facts, {}).at("ctx_a").confidence < 0.6);
}

TEST_CASE("policy replay: a file of numbers is read, and a slip is named", "[policy_replay]") {
  const auto n = read("learning:\n  success_step: 0.1\nstages:\n  bank_referenced: 4\n"
                      "  archive_idle_days: 10\nmemory:\n  noisy_share: 0.2\n");
  REQUIRE(n);
  CHECK(n->learning.success_step == 0.1);
  CHECK(n->stages.bank_referenced == 4);
  CHECK(n->stages.archive_idle == std::chrono::hours{240});
  CHECK(n->memory.noisy_share == 0.2);
  CHECK(n->memory.promote_referenced == memory_rules{}.promote_referenced);
  const auto slip = [](const std::string& text) { return to_string(read(text).error()); };
  CHECK_THAT(slip("stages:\n  bank_refrenced: 4\n"),
             Contains("policy.yaml:2:3") && Contains("bank_referenced"));
  CHECK_THAT(slip("stage:\n  bank_referenced: 4\n"),
             Contains("policy.yaml:1:1") && Contains("stages"));
  CHECK_THAT(slip("stages:\n  bank_confidence: 2\n"), Contains("0 to 1"));
  CHECK_THAT(slip("stages:\n  bank_referenced: 1.5\n"), Contains("whole number"));
  CHECK_THAT(slip("stages: 4\n"), Contains("not a map"));
  CHECK_THAT(slip("- 1\n"), Contains("a policy is a map"));
}

} // namespace boyd::policy_replay_test
