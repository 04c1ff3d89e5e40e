#include "boyd/core/text.hpp"
#include "boyd/queue/dispatch_json.hpp"
#include "boyd/queue/spool.hpp"
#include "boyd/queue/transitions.hpp"
#include "support/pch.hpp"
#include "support/sim/disk.hpp"
#include "support/sim/seeded_entropy.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

namespace boyd::json_test {

using namespace boyd;
using namespace boyd::queue;

namespace {

settlement any_settlement() {
  settlement s;
  s.dispatch_id = *rc::gen::string<std::string>();
  s.dispatch_id = sanitize_utf8(s.dispatch_id);
  s.fence = *rc::gen::arbitrary<std::int64_t>();
  s.to = static_cast<settle_to>(*rc::gen::inRange(0, 5));
  s.delay = milliseconds{*rc::gen::inRange<std::int64_t>(0, 1'000'000)};
  auto& o = s.outcome;
  o.execution = static_cast<execution_verdict>(*rc::gen::inRange(0, 7));
  o.claim = static_cast<claim_verdict>(*rc::gen::inRange(0, 3));
  o.verification = static_cast<verification_verdict>(*rc::gen::inRange(0, 3));
  o.failure = static_cast<failure_class>(*rc::gen::inRange(0, 6));
  o.exit_code = *rc::gen::arbitrary<int>();
  o.summary = sanitize_utf8(*rc::gen::string<std::string>());
  o.output = sanitize_utf8(*rc::gen::string<std::string>());
  o.output_cut = *rc::gen::arbitrary<std::uint64_t>();
  o.error = sanitize_utf8(*rc::gen::string<std::string>());
  o.usage.wall_ms = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
  o.usage.provider = sanitize_utf8(*rc::gen::string<std::string>());
  return s;
}

bool same(const settlement& a, const settlement& b) {
  return a.dispatch_id == b.dispatch_id && a.fence == b.fence && a.to == b.to &&
         a.delay == b.delay && a.outcome == b.outcome;
}

} // namespace

TEST_CASE("a settlement comes back from its line of JSON") {
  REQUIRE(rc::check("round trip", [] {
    const auto s = any_settlement();
    const auto line = settlement_to_json("n1", s);
    RC_ASSERT(line.find('\n') == std::string::npos);
    const auto back = settlement_from_json(line);
    RC_ASSERT(back.has_value());
    RC_ASSERT(back->node_id == "n1");
    RC_ASSERT(same(back->item, s));
  }));
  for (const char* text : {"", "{}", "[]", "{\"node_id\":1}", "nonsense"})
    REQUIRE(settlement_from_json(text).error().code == errc::parse_error);
}

TEST_CASE("a number that a settlement cannot hold is refused") {
  const auto line = settlement_to_json("n1", {});
  REQUIRE(settlement_from_json(line).has_value());
  const auto with = [&](const char* key, const char* value) {
    auto j = nlohmann::json::parse(line);
    (j.contains(key) ? j : j["outcome"])[key] = nlohmann::json::parse(value);
    return settlement_from_json(j.dump());
  };
  CHECK(with("fence", "9223372036854775807").has_value());
  for (const char* value : {"1e30", "0.5", "9223372036854775808", "\"7\"", "null"}) {
    INFO(value);
    CHECK_FALSE(with("fence", value).has_value());
    CHECK_FALSE(with("delay_ms", value).has_value());
  }
  CHECK_FALSE(with("exit_code", "4294967296").has_value());
  CHECK_FALSE(with("output_cut", "-1").has_value());
}

TEST_CASE("a dispatch in JSON has the columns of the queue") {
  dispatch d;
  d.dispatch_id = "x";
  d.prompt = "bad \xff byte";
  const auto j = nlohmann::json::parse(dispatch_to_json(d, true));
  for (const char* key :
       {"dispatch_id",      "kernel_id", "cycle_id",   "agent_id",     "prompt",      "priority",
        "status",           "metadata",  "attempt",    "max_attempts", "not_before",  "lease_owner",
        "lease_expires_at", "fence",     "created_at", "started_at",   "finished_at", "session_id",
        "summary",          "error",     "usage",      "output",       "attempts"})
    REQUIRE(j.contains(key));
  REQUIRE(j["finished_at"].is_null());
  REQUIRE(!nlohmann::json::parse(dispatch_to_json(d, false)).contains("prompt"));
}

TEST_CASE("the spool keeps results in order and survives its node") {
  auto disk = std::make_shared<sim::sim_disk>();
  REQUIRE(disk->make_directories("/home/run"));
  settlement a;
  a.dispatch_id = "a";
  a.fence = 1;
  auto b = a;
  b.dispatch_id = "b";
  {
    settlement_spool spool(disk, "/home/run/spool.jsonl");
    REQUIRE(spool.load()->items.empty());
    REQUIRE(spool.append("n1", {a, b}));
  }
  sim::seeded_entropy random(1);
  disk->crash(random);
  settlement_spool spool(disk, "/home/run/spool.jsonl");
  auto kept = spool.load();
  REQUIRE(kept);
  REQUIRE(kept->items.size() == 2);
  REQUIRE(same(kept->items[0].item, a));
  REQUIRE(same(kept->items[1].item, b));
  REQUIRE(spool.rewrite({kept->items[1]}));
  REQUIRE(spool.append("n1", {a}));
  kept = spool.load();
  REQUIRE(kept->items.size() == 2);
  REQUIRE(same(kept->items[0].item, b));
  REQUIRE(spool.rewrite({}));
  REQUIRE(spool.load()->items.empty());
}

TEST_CASE("hostile metadata is refused before a parser recurses into it") {
  dispatch_spec s;
  s.dispatch_id = "x";
  s.kernel_id = "k";
  s.cycle_id = "c";
  s.agent_id = "a";
  const auto refused = [&](std::string metadata) {
    s.metadata_json = std::move(metadata);
    return check_operation(store::enqueue_cycle{"k", "c", {s}, {}}).has_value();
  };
  REQUIRE(!refused("{}"));
  REQUIRE(!refused(R"( {"a":{"b":[1]}})"));
  REQUIRE(refused(""));
  REQUIRE(refused("[]"));
  REQUIRE(refused("{"));
  REQUIRE(refused(R"({"a":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}"));
  REQUIRE(refused("{\"a\":\"\xff\"}"));
}

TEST_CASE("what did not exit by itself has no exit code") {
  dispatch d;
  d.attempts_json = R"([{"fence":1,"exit_code":-1},{"fence":2,"exit_code":3}])";
  const auto none = nlohmann::json::parse(dispatch_to_json(d, true));
  CHECK(none["exit_code"].is_null());
  CHECK(none["attempts"][0]["exit_code"].is_null());
  CHECK(none["attempts"][1]["exit_code"] == 3);
  d.outcome.exit_code = 0;
  CHECK(nlohmann::json::parse(dispatch_to_json(d, false))["exit_code"] == 0);
}

} // namespace boyd::json_test
