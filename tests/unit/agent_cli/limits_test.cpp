#include "attempt_bench.hpp"
#include "support.hpp"

#include <nlohmann/json.hpp>

/// Limits of use that end an attempt, whatever runs it.
namespace boyd::agent_cli_limits_test {

using namespace boyd;
using namespace boyd::agent_cli_testing;
using f = failure_class;
using nlohmann::json;

namespace {

const auto now = parse_rfc3339("2026-11-29T10:00:00Z").value();

exec::attempt_options dated(exec::attempt_options o) {
  o.time_of_day = [] { return now; };
  o.zones = adapters::make_time_zones();
  return o;
}

/// The end of a plain program.
run_outcome ended(const std::string& out, const std::string& err, int code,
                  const std::map<int, std::string>& classes = {}) {
  exec::attempt_options o;
  o.work = process_spec{};
  o.exit_classes = classes;
  exec::attempt_core core(dated(std::move(o)));
  const steady_time t{1h};
  core.begin(t);
  core.on_output(0, output_stream::out, out, t);
  core.on_output(0, output_stream::err, err, t);
  process_exit e;
  e.exit_code = code;
  auto effects = core.on_exit(0, e, t);
  return *std::get<exec::effect::finish>(effects.back()).outcome;
}

run_outcome ended(const std::string& adapter, const std::string& events, const std::string& err,
                  int code) {
  auto o = dated(attempt_bench::options_of(built_in(adapter).adapter, true, {}));
  exec::attempt_core core(std::move(o));
  const steady_time t{1h};
  core.begin(t);
  core.on_output(0, output_stream::out, events, t);
  core.on_output(0, output_stream::err, err, t);
  process_exit e;
  e.exit_code = code;
  auto effects = core.on_exit(0, e, t);
  return *std::get<exec::effect::finish>(effects.back()).outcome;
}

milliseconds wait_of(const run_outcome& o) {
  return milliseconds{o.usage.retry_after_ms.value_or(0)};
}

std::string claude(const std::string& result, const std::string& is_error) {
  return R"({"type":"result","subtype":"success","is_error":)" + is_error + R"(,"result":)" +
         json(result).dump() + "}\n";
}

} // namespace

TEST_CASE("field case 20: a limit told as the result of an agent CLI", "[agent_cli]") {
  for (const auto& [text, wait] : std::vector<std::pair<std::string, milliseconds>>{
           {"API Error: Rate limit reached", 0s},
           {"You've hit your limit · resets 3am (Europe/Berlin)", 16h},
           {"Claude AI usage limit reached|1732900000", 0s},
           {"Claude AI usage limit reached|1796083200", 38h},
           {"5-hour limit reached ∙ resets 3pm (UTC)", 5h}}) {
    for (const std::string is_error : {"true", "false"}) {
      for (const int code : {0, 1}) {
        INFO(text << ' ' << is_error << ' ' << code);
        const auto o = ended("claude", claude(text, is_error), {}, code);
        CHECK_FALSE(is_success(o));
        CHECK(o.execution == execution_verdict::failed);
        CHECK(o.failure == f::transient);
        CHECK(wait_of(o) == wait);
        CHECK_THAT(o.error, Catch::Matchers::StartsWith(text));
      }
    }
  }
  const auto codex = [](const std::string& message) {
    return ended("codex",
                 R"({"type":"turn.failed","error":{"message":)" + json(message).dump() + "}}\n", {},
                 1);
  };
  CHECK(wait_of(codex("You've hit your usage limit. Upgrade to Pro, or try again in 3 hours 5 "
                      "minutes.")) == 185min);
  CHECK(codex("You've hit your usage limit. Try again later.").failure == f::transient);
  CHECK(codex("Quota exceeded. Check your plan and billing details.").failure == f::environment);
  CHECK(codex("unexpected: no such tool").failure == f::deterministic);
  // Nothing but the standard error says so.
  const auto gemini =
      ended("gemini",
            R"({"type":"init","session_id":"s"})"
            "\n",
            "Error: You have exhausted your capacity on this model. Your quota will "
            "reset after 3h24m12s.\n    at main (file.js:1:1)\n",
            1);
  CHECK(gemini.failure == f::transient);
  CHECK(wait_of(gemini) == 3h + 24min + 12s);
  CHECK_THAT(gemini.error, Catch::Matchers::EndsWith("not before 2026-11-29T13:24:12Z"));
}

TEST_CASE("field case 20: a time too far away is waited for 8 days, and said", "[agent_cli]") {
  const auto o =
      ended("claude", claude("You've hit your limit · resets Dec 30, 3am (UTC)", "true"), {}, 1);
  CHECK(wait_of(o) == 8 * 24h);
  CHECK_THAT(o.error, Catch::Matchers::EndsWith("; not before 2026-12-07T10:00:00Z, for "
                                                "2026-12-30T03:00:00Z is further away than 8d"));
}

TEST_CASE("field case 20: a limit that a plain program tells", "[agent_cli]") {
  const std::string trace = "Traceback (most recent call last):\n  File \"a.py\", line 1\n"
                            "openai.RateLimitError: Error code: 429 - try again in 20s\n";
  CHECK(ended({}, trace, 1).failure == f::transient);
  CHECK(wait_of(ended({}, trace, 1)) == 20s);
  CHECK(wait_of(ended({}, "Error: Rate limit reached, try again in 20s\n    at x (y.js:1)\n", 1)) ==
        20s);
  CHECK(wait_of(ended("usage limit reached, try again at 5:30 PM UTC\n", {}, 1)) == 7h + 30min);
  CHECK(wait_of(ended(R"({"status":"failed","summary":"Rate limit reached, retry after 2 hours"})"
                      "\n",
                      {}, 0)) == 2h);
  // A notice in the place of all output is no success, and a mention among other words is none.
  const auto notice = ended("You've hit your limit · resets 3am (Europe/Berlin)\n", {}, 0);
  CHECK(notice.failure == f::transient);
  CHECK(wait_of(notice) == 16h);
  CHECK(is_success(ended("checked: Rate limit reached yesterday\nall is well\n", {}, 0)));
  // Somebody's own class stays; its time holds where it is tried again.
  CHECK(ended({}, trace, 3, {{3, "policy"}}).failure == f::policy);
  CHECK(ended({}, trace, 3, {{3, "deterministic"}}).failure == f::deterministic);
  CHECK(wait_of(ended({}, trace, 3, {{3, "flaky"}})) == 20s);
  CHECK(
      ended(R"({"status":"failed","failure_class":"deterministic","summary":"Rate limit reached"})"
            "\n",
            {}, 0)
          .failure == f::deterministic);
  CHECK(ended({}, "the rate limiter test failed\n", 1).failure == f::deterministic);
}

} // namespace boyd::agent_cli_limits_test
