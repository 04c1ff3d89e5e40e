#include "boyd/plan/next_run.hpp"
#include "support/pch.hpp"
#include "unit/plan/fake_zones.hpp"

namespace boyd::fire_times_test {

using namespace boyd;
using namespace boyd::test;

namespace {

std::string times(const char* cycles, const char* own, const char* now, std::size_t count,
                  milliseconds jitter = 0ms) {
  config::kernel kernel;
  kernel.kernel_id = "k";
  config::agent agent;
  agent.agent_id = "a";
  config::schedule when;
  when.expression = cycles;
  when.jitter = jitter;
  const auto rule = rule_of(when);
  const auto of_agent = rule_of(own == nullptr ? cycles : own);
  const auto shown = [](utc_time t) { return format_rfc3339(t).substr(5, 11); };
  std::string out;
  for (const auto& t :
       plan::fire_times(kernel, &agent, rule, own == nullptr ? nullptr : &of_agent, at(now), count))
    out += (out.empty() ? "" : " ") + shown(t.at) + (t.due == t.at ? "" : "<" + shown(t.due));
  return out;
}

} // namespace

TEST_CASE("an agent without a schedule is due in every cycle") {
  CHECK(times("*/10 * * * *", nullptr, "2026-02-13T10:03:00Z", 3) ==
        "02-13T10:10 02-13T10:20 02-13T10:30");
  CHECK(times("*/10 * * * *", nullptr, "2026-02-13T10:10:00Z", 1) == "02-13T10:20");
}

TEST_CASE("an agent with a schedule is due in the first cycle at its slot or behind it") {
  CHECK(times("*/10 * * * *", "0 7 * * *", "2026-02-13T10:03:00Z", 2) == "02-14T07:00 02-15T07:00");
  CHECK(times("*/10 * * * *", "5 * * * *", "2026-02-13T10:03:00Z", 2) ==
        "02-13T10:10<02-13T10:05 02-13T11:10<02-13T11:05");
  // Due since the last cycle.
  CHECK(times("*/10 * * * *", "5 * * * *", "2026-02-13T10:07:00Z", 2) ==
        "02-13T10:10<02-13T10:05 02-13T11:10<02-13T11:05");
  // Two slots of its own before one cycle are one run.
  CHECK(times("0 * * * *", "*/20 * * * *", "2026-02-13T10:03:00Z", 2) ==
        "02-13T11:00<02-13T10:20 02-13T12:00<02-13T11:20");
}

TEST_CASE("jitter counts: cycles are told when they start") {
  const auto told = times("0 * * * *", nullptr, "2026-02-13T10:30:00Z", 2, 10min);
  CHECK(told.size() == 23);
  CHECK(told.substr(0, 9) == "02-13T11:");
}

} // namespace boyd::fire_times_test
