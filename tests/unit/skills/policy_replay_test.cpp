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

policy_results replayed(const std::vector<graph::edge>& facts, const policy_numbers& numbers,
                        std::optional<utc_time> since = {}) {
  policy_comparison replay(numbers, since);
  std::uint64_t line = 0;
  for (const auto& f : facts)
    REQUIRE(replay.take(f, ++line));
  return replay.finish(t0 + std::chrono::hours{24} * 20).then;
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
  CHECK(usual.items.at("ctx_a").banked == t0 + std::chrono::hours{24} * 2);
  CHECK(usual.items.at("ctx_a").candidate == t0 + std::chrono::hours{24} * 4);
  CHECK(other.items.at("ctx_a").banked == t0 + std::chrono::hours{24} * 4); // as a candidate
  const auto found = differences(usual, other);
  REQUIRE(found.size() == 2);
  CHECK(found[0].what == "bank");
  CHECK(found[0].now == "2026-01-03T00:00:00Z");
  CHECK(found[1].what == "memory");
  CHECK(found[1].then == "archive");
}

TEST_CASE("policy replay: a planner that wants fewer runs teaches less", "[policy_replay]") {
  std::vector<graph::edge> facts;
  for (int day = 0; day < 6; ++day) {
    for (const auto* item : {"a", "b"}) {
      auto run = days(item, "+", day);
      facts.push_back({run[0].to, "decision_" + std::to_string(day), "decided_by", run[0].timestamp,
                       json{{"agent", item}, {"planner", "static"}}.dump()});
      facts.insert(facts.end(), run.begin(), run.end());
    }
  }
  const auto usual = replayed(facts, {});
  CHECK(usual.runs == std::map<std::string, std::int64_t>{{"a", 6}, {"b", 6}});
  policy_numbers rules;
  rules.plan.most_runs = 1;
  const auto one = replayed(facts, rules);
  CHECK(one.runs == std::map<std::string, std::int64_t>{{"a", 6}, {"b", 0}});
  CHECK(one.items.at("ctx_a") == usual.items.at("ctx_a"));
  CHECK_FALSE(one.items.contains("ctx_b"));
  const auto found = differences(usual, one);
  REQUIRE_FALSE(found.empty());
  CHECK(found[0] == policy_difference{"agent:b", "b", "runs", "6", "0"});
  CHECK(found[1] == policy_difference{"ctx_b", "b", "given", "6", "0"});
  rules = {};
  rules.plan.least_pause = std::chrono::hours{48};
  CHECK(replayed(facts, rules).items.at("ctx_a").given == 3);
  // The past stays as it was.
  CHECK(replayed(facts, rules, t0 + std::chrono::hours{24} * 4).items.at("ctx_a").given == 5);
}

TEST_CASE("policy replay: agents of one name in two kernels are two", "[policy_replay]") {
  std::vector<graph::edge> facts;
  for (const auto* kernel : {"north", "south"}) {
    auto run = days(kernel, "+");
    facts.push_back({run[0].to, std::string("decision_") + kernel, "decided_by", run[0].timestamp,
                     json{{"agent", "a"}, {"kernel", kernel}, {"planner", "static"}}.dump()});
    facts.insert(facts.end(), run.begin(), run.end());
  }
  policy_numbers rules;
  rules.plan.least_pause = std::chrono::hours{1};
  CHECK(replayed(facts, rules).runs ==
        std::map<std::string, std::int64_t>{{"north/a", 1}, {"south/a", 1}});
  // The same kernel's: the second is too soon.
  for (auto& f : facts)
    if (const auto at = f.meta_json.find("south");
        f.type == "decided_by" && at != std::string::npos)
      f.meta_json.replace(at, 5, "north");
  CHECK(replayed(facts, rules).runs == std::map<std::string, std::int64_t>{{"north/a", 1}});
}

TEST_CASE("policy replay: a text that would not have been banked is not given from there",
          "[policy_replay]") {
  auto facts = days("a", "++++");
  for (auto& f : facts)
    if (f.type == "used_in")
      f.meta_json.insert(1, R"("scope":"repo:1",)");
  // Runs that were given it from the bank, and one of the same project that was not.
  auto later = days("a", "+++", 10);
  for (auto& f : later)
    if (f.type == "used_in") {
      f.meta_json.insert(1, R"("scope":"repo:1",)");
      f.meta_json.replace(f.meta_json.find("declared"), 8, "bank");
    }
  auto other = days("other", "+", 15);
  other[0].meta_json.insert(1, R"("scope":"repo:1",)");
  facts.insert(facts.end(), later.begin(), later.end());
  facts.insert(facts.end(), other.begin(), other.end());
  const auto usual = replayed(facts, {});
  CHECK(usual.items.at("ctx_a").given == 7);
  CHECK(usual.items.at("ctx_a").open == 1);
  policy_numbers strict;
  strict.stages.bank_referenced = 5;
  strict.stages.candidate_referenced = 6;
  const auto never = replayed(facts, strict);
  CHECK(never.items.at("ctx_a").given == 4);
  CHECK(never.items.at("ctx_a").open == 0);
  CHECK_FALSE(never.items.at("ctx_a").banked);
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
  CHECK(all.items.at("ctx_a").confidence == 0.7);
  CHECK(later.items.at("ctx_a").confidence > 0.9); // five successes counted, no failure
  CHECK(replayed(facts, {}).items.at("ctx_a").confidence < 0.6);
}

TEST_CASE("policy replay: with `since` the bank of before stays as it was", "[policy_replay]") {
  const auto day = std::chrono::hours{24};
  auto facts = days("a", "++++");
  auto later = days("a", "+++", 10);
  for (auto& f : later)
    if (f.type == "used_in")
      f.meta_json.replace(f.meta_json.find("declared"), 8, "bank");
  facts.insert(facts.end(), later.begin(), later.end());
  for (auto& f : facts)
    if (f.type == "used_in")
      f.meta_json.insert(1, R"("scope":"repo:1",)");
  policy_numbers never;
  never.stages.bank_referenced = 100;
  never.stages.candidate_referenced = 100;
  const auto late = replayed(facts, never, t0 + day * 12).items.at("ctx_a");
  CHECK(late.given == 6); // two of the three that the bank gave
  CHECK(late.banked == t0 + day * 2);
  CHECK(late.where == stage::context);
  CHECK(replayed(facts, never).items.at("ctx_a").given == 4);
  // What the new numbers let in comes when they begin to hold.
  policy_numbers soon;
  soon.stages.bank_referenced = 1;
  auto few = days("a", "+");
  const auto other = days("b", "+", 6);
  few.insert(few.end(), other.begin(), other.end());
  CHECK(replayed(few, soon).items.at("ctx_a").banked == t0);
  CHECK(replayed(few, soon, t0 + day * 5).items.at("ctx_a").banked == t0 + day * 5);
}

TEST_CASE("policy replay: what the node's own policy has done is no input", "[policy_replay]") {
  const auto at = t0 + std::chrono::hours{24} * 6;
  const auto done = [&](const std::string& action) {
    return graph::edge{"ctx_a", "decision_1", "managed_by", at,
                       json{{"action", action}, {"decision", "decision_1"}, {"of", 1}}.dump()};
  };
  auto facts = days("a", "-----");
  const auto before = replayed(facts, {});
  REQUIRE(before.items.at("ctx_a").action == memory_action::archive);
  facts.push_back(done("archive"));
  CHECK(replayed(facts, {}) == before);
  policy_numbers mild;
  mild.memory.archive_importance = 0.1;
  const auto found = differences(replayed(facts, {}), replayed(facts, mild));
  REQUIRE(found.size() == 1);
  CHECK(found[0] == policy_difference{"ctx_a", "a", "memory", "archive", "keep"});
  // Forgotten by the one policy, it stands in the bank of the other.
  facts = days("a", "++++");
  facts.push_back(done("forget"));
  const auto other = days("other", "+", 15);
  facts.insert(facts.end(), other.begin(), other.end());
  for (auto& f : facts)
    if (f.type == "used_in")
      f.meta_json.insert(1, R"("scope":"repo:1",)");
  CHECK(replayed(facts, {}).items.at("ctx_a").open == 1);
}

TEST_CASE("policy replay: a file of numbers is read, and a slip is named", "[policy_replay]") {
  const auto n = read("planner: {most_runs: 3, least_minutes: 90}\nlearning:\n  success_step: "
                      "0.1\nstages:\n  bank_referenced: 4\n"
                      "  archive_idle_days: 10\nmemory:\n  noisy_share: 0.2\n");
  REQUIRE(n);
  CHECK(n->plan == plan_rules{3, std::chrono::minutes{90}});
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
