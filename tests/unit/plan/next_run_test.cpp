#include "boyd/plan/next_run.hpp"
#include "support/pch.hpp"
#include "unit/plan/fake_zones.hpp"

namespace boyd::next_run_test {

using namespace boyd;
using namespace boyd::test;

namespace {

/// An agent of a kernel that has a cycle every ten minutes, at 10:03.
struct fixture {
  config::kernel kernel;
  config::agent agent;
  plan::plan_input in;
  std::vector<plan::quiet_rule> quiet;
  std::optional<utc_time> wake;

  fixture() {
    kernel.kernel_id = "k";
    agent.agent_id = "a";
    in.now = at("2026-02-13T10:03:00Z");
    in.since = at("2026-02-01T00:00:00Z");
  }

  std::string next() const {
    const auto t = plan::next_run(kernel, agent, in, rule_of("*/10 * * * *"), quiet, wake);
    return t ? format_rfc3339(*t) : "never";
  }
};

} // namespace

TEST_CASE("an agent that nothing holds back runs in the next cycle") {
  fixture f;
  CHECK(f.next() == "2026-02-13T10:10:00Z");
  f.in.now = at("2026-02-13T10:10:00Z");
  CHECK(f.next() == "2026-02-13T10:20:00Z");
}

TEST_CASE("an agent that is disabled or paused has no next run") {
  fixture f;
  f.agent.enabled = false;
  CHECK(f.next() == "never");
  f.agent.enabled = true;
  f.in.pauses = {{"k", "a", "", f.in.now}};
  CHECK(f.next() == "never");
  f.in.pauses = {{"k", "", "", f.in.now}};
  CHECK(f.next() == "never");
  f.in.pauses = {{"k", "other", "", f.in.now}};
  CHECK(f.next() == "2026-02-13T10:10:00Z");
}

TEST_CASE("a cooldown and a backed-off check are waited for, to the very slot") {
  fixture f;
  f.in.last_dispatched_at["a"] = at("2026-02-13T10:00:00Z");
  f.agent.cooldown = std::chrono::minutes{30};
  CHECK(f.next() == "2026-02-13T10:30:00Z");
  f.wake = at("2026-02-13T10:41:00Z");
  CHECK(f.next() == "2026-02-13T10:50:00Z");
  f.wake = at("2026-02-13T09:00:00Z");
  CHECK(f.next() == "2026-02-13T10:30:00Z");
}

TEST_CASE("an agent's own schedule and quiet hours are waited for") {
  fixture f;
  f.in.schedules.emplace("a", rule_of("15 * * * *"));
  f.in.agent_slots["a"] = at("2026-02-13T09:15:00Z");
  CHECK(f.next() == "2026-02-13T10:20:00Z");
  f.in.agent_slots["a"] = at("2026-02-13T08:15:00Z"); // a slot has passed and was not used
  CHECK(f.next() == "2026-02-13T10:10:00Z");
  f.quiet.push_back({rule_of("0 10 * * *"), std::chrono::hours{2}, "hush"});
  CHECK(f.next() == "2026-02-13T12:00:00Z");
  f.quiet.push_back({rule_of("* * * * *"), std::chrono::hours{2}, "for ever"});
  CHECK(f.next() == "never");
}

} // namespace boyd::next_run_test
