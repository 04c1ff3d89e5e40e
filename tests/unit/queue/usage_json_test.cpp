#include "boyd/queue/usage_json.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

namespace boyd::usage_json_test {

using namespace boyd;
using queue::usage_from;
using queue::usage_json;

namespace {

run_usage any_usage() {
  const auto figure = [] {
    return *rc::gen::inRange(0, 2) == 0 ? usage_figure{}
                                        : usage_figure{*rc::gen::arbitrary<std::int64_t>()};
  };
  const auto text = [] {
    return *rc::gen::inRange(0, 2) == 0 ? std::string()
                                        : *rc::gen::element<std::string>("p", "a \"b\"\n", "ü");
  };
  run_usage u;
  for (auto* f : {&u.calls, &u.turns, &u.tool_calls, &u.denied, &u.input_tokens, &u.cached_tokens,
                  &u.output_tokens, &u.reasoning_tokens, &u.cost_microusd, &u.events,
                  &u.no_json_lines, &u.too_long_lines, &u.cut_events, &u.wall_ms, &u.user_ms,
                  &u.system_ms, &u.max_rss_kb, &u.output_bytes, &u.retry_after_ms})
    *f = figure();
  for (auto* t : {&u.provider, &u.model, &u.session_id, &u.context, &u.ended})
    *t = text();
  if (*rc::gen::inRange(0, 2) == 1)
    u.denials = {"Bash", text()};
  u.too_long = *rc::gen::inRange(0, 2) == 1;
  if (*rc::gen::inRange(0, 2) == 1)
    u.worktree = worktree_report{1, 2, 3, true, false, 4};
  if (*rc::gen::inRange(0, 2) == 1)
    u.sandbox = sandbox_report{"landlock", 7, {"sockets"}, false};
  if (*rc::gen::inRange(0, 2) == 1)
    u.reading = reading_report{
        {{"ctx_1", "a\nb", "file", "declared", "full", "high", "00ff", 12, true, false, true},
         {"ctx_2", text(), "generated", "memory", "summary", "low", {}, figure(), false, true}},
        *rc::gen::inRange(0, 2) == 1 ? std::optional(0.5) : std::nullopt,
        *rc::gen::inRange(0, 2) == 1,
        *rc::gen::inRange(0, 2) == 1,
        text()};
  return u;
}

} // namespace

TEST_CASE("a usage comes back from its JSON") {
  REQUIRE(rc::check("round trip", [] {
    const auto u = any_usage();
    RC_ASSERT(usage_from(usage_json(u)) == u);
  }));
  CHECK(usage_json({}).empty());
  run_usage program;
  program.wall_ms = 5;
  program.output_bytes = 0;
  CHECK(usage_json(program) == R"({"output_bytes":0,"wall_ms":5})");
  program.provider = "p";
  CHECK(usage_json(program) == R"({"output_bytes":0,"provider":"p","wall_ms":5})");
}

TEST_CASE("of a usage that is none nothing is read, and of an odd one what is sound") {
  for (const auto* const text : {"", "null", "[1]", "{", "7", "\"x\""})
    CHECK(usage_from(text) == run_usage{});
  const auto odd = usage_from(
      R"({"calls":"1","turns":2,"wall_ms":1e30,"user_ms":18446744073709551615,"provider":7,)"
      R"("denials":["a",1],"too_long":"yes","worktree":[],"sandbox":{"mode":1}})");
  CHECK_FALSE(odd.calls.has_value());
  CHECK(odd.turns == 2);
  CHECK_FALSE(odd.wall_ms.has_value());
  CHECK_FALSE(odd.user_ms.has_value());
  CHECK(odd.provider.empty());
  CHECK(odd.denials == std::vector<std::string>{"a"});
  CHECK_FALSE(odd.too_long);
  CHECK_FALSE(odd.worktree.has_value());
  CHECK(odd.sandbox == sandbox_report{});
}

TEST_CASE("earlier attempts are read from a row's column") {
  const auto all = queue::earlier_attempts(
      R"([{"execution":"timed_out"},7,{"execution":"failed","usage":{"too_long":true}}])");
  REQUIRE(all.size() == 2);
  CHECK(all[0].execution == execution_verdict::timed_out);
  CHECK(all[1].usage.too_long);
  for (const auto* const text : {"", "[]", "damaged", "{}"})
    CHECK(queue::earlier_attempts(text).empty());
}

} // namespace boyd::usage_json_test
