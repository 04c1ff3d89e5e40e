#include "boyd/plan/static_planner.hpp"
#include "support/pch.hpp"
#include "unit/plan/fake_zones.hpp"

#include <rapidcheck.h>

#include <set>

namespace boyd::planner_test {

using namespace boyd;
using namespace boyd::test;

namespace {

config::agent agent_of(const char* id, int priority = 10) {
  config::agent a;
  a.agent_id = id;
  a.prompt = std::string{"do "} + id + " at {TIME}";
  a.priority = priority;
  return a;
}

config::kernel kernel_of(std::vector<config::agent> agents) {
  config::kernel k;
  k.agents = std::move(agents);
  return k;
}

plan::plan_input input() {
  plan::plan_input in;
  in.cycle_id = "c1";
  in.now = at("2026-02-13T10:00:00Z");
  in.since = at("2026-02-13T00:00:00Z");
  in.make_id = [n = 0]() mutable { return "d" + std::to_string(++n); };
  return in;
}

dispatch latest(const char* agent_id, dispatch_status status) {
  dispatch d;
  d.dispatch_id = "d0";
  d.cycle_id = "c0";
  d.agent_id = agent_id;
  d.status = status;
  return d;
}

/// The reason of the only agent, "" when it was dispatched.
std::string reason_of(const config::kernel& k, const plan::plan_input& in) {
  const auto out = plan_static(k, in);
  REQUIRE(out.decisions.size() == 1);
  CHECK(out.decisions[0].dispatched == (out.specs.size() == 1));
  CHECK(out.decisions[0].dispatched == out.decisions[0].reason.empty());
  return out.decisions[0].reason;
}

} // namespace

TEST_CASE("specs carry everything and are sorted by priority, then configuration") {
  auto b = agent_of("b", 20);
  b.retry.max_attempts = 7;
  b.metadata_json = R"({"user_id":"me"})";
  const auto k = kernel_of({agent_of("a"), b, agent_of("c"), agent_of("d", 20)});
  const auto out = plan_static(k, input());
  REQUIRE(out.specs.size() == 4);
  CHECK(out.specs[0].agent_id == "b");
  CHECK(out.specs[1].agent_id == "d");
  CHECK(out.specs[2].agent_id == "a");
  CHECK(out.specs[3].agent_id == "c");
  CHECK(out.specs[0].prompt == "do b at 2026-02-13T10:00:00Z");
  CHECK(out.specs[0].max_attempts == 7);
  CHECK(out.specs[0].metadata_json == R"({"user_id":"me"})");
  CHECK(out.specs[0].kernel_id == "default");
  CHECK(out.specs[0].cycle_id == "c1");
  CHECK(out.specs[0].dispatch_id == "d2");
  REQUIRE(out.decisions.size() == 4);
  CHECK(out.decisions[1].agent_id == "b"); // decisions keep the order of configuration
}

TEST_CASE("a spec says where the parts of its prompt stand that an attempt may do without") {
  auto program = agent_of("program");
  program.prompt = "At {TIME}: {STATE}, {MEMORY}";
  program.run = config::command_executor{};
  auto chat = program;
  chat.agent_id = "chat";
  chat.run = config::chat_executor{};
  auto script = program;
  script.agent_id = "script";
  script.run = config::script_executor{};
  auto in = input();
  in.values.state = "S";
  in.values.memory = "MM";
  const auto out = plan_static(kernel_of({program, chat, script}), in);
  REQUIRE(out.specs.size() == 3);
  const std::string places = R"({"boyd_sections":[["STATE",25,1],["MEMORY",28,2]]})";
  CHECK(out.specs[0].prompt == "At 2026-02-13T10:00:00Z: S, MM");
  CHECK(out.specs[0].metadata_json == places);
  CHECK(out.specs[1].metadata_json == places);
  CHECK(out.specs[2].metadata_json == "{}"); // fixed answers read no prompt
}

TEST_CASE("pending and running agents are skipped, ended ones run") {
  const auto k = kernel_of({agent_of("a")});
  auto in = input();
  for (const auto& [status, reason] : {std::pair{dispatch_status::pending, "running"},
                                       {dispatch_status::running, "running"},
                                       {dispatch_status::done, ""},
                                       {dispatch_status::failed, ""},
                                       {dispatch_status::cancelled, ""}}) {
    in.latest = {latest("a", status)};
    CHECK(reason_of(k, in) == reason);
    if (!is_final(status))
      CHECK(plan_static(k, in).decisions[0].detail.ends_with(
          status == dispatch_status::pending ? " has not started" : " is running"));
  }
  in.latest = {latest("other", dispatch_status::running)};
  CHECK(reason_of(k, in) == "");
  // Somebody has it repeated, or it is tried again.
  in.latest = {latest("a", dispatch_status::running)};
  in.latest[0].fence = 2;
  CHECK(plan_static(k, in).decisions[0].detail.ends_with(" is running again"));
}

TEST_CASE("pauses of the kernel or the agent and quiet hours hold an agent back") {
  const auto k = kernel_of({agent_of("a")});
  auto in = input();
  in.pauses = {{"default", "b", "x", in.now}, {"other", "", "x", in.now}};
  CHECK(reason_of(k, in) == "");
  in.pauses = {{"default", "a", "broken", in.now}};
  CHECK(reason_of(k, in) == "paused");
  CHECK(plan_static(k, in).decisions[0].detail == "since 2026-02-13T10:00:00Z: broken");
  in.pauses = {{"default", "a", "", in.now}};
  CHECK(plan_static(k, in).decisions[0].detail == "since 2026-02-13T10:00:00Z");
  in.pauses = {{"default", "", "holiday", in.now}};
  CHECK(reason_of(k, in) == "paused");
  in.pauses.clear();
  in.quiet = plan::quiet_now{"night", at("2026-02-13T12:00:00Z")};
  CHECK(plan_static(k, in).decisions[0].detail == "night until 2026-02-13T12:00:00Z");
}

TEST_CASE("a cooldown counts from the last dispatch") {
  auto a = agent_of("a");
  a.cooldown = 1h;
  const auto k = kernel_of({a});
  auto in = input();
  CHECK(reason_of(k, in) == "");
  in.last_dispatched_at["a"] = at("2026-02-13T09:00:00.001Z");
  CHECK(reason_of(k, in) == "cooldown");
  CHECK(plan_static(k, in).decisions[0].detail == "over at 2026-02-13T10:00:00Z");
  in.last_dispatched_at["a"] = at("2026-02-13T09:00:00Z");
  CHECK(reason_of(k, in) == "");
  in.last_dispatched_at["a"] = at("2038-01-01T00:00:00Z"); // from a wrong clock
  CHECK(reason_of(k, in) == "");
}

TEST_CASE("a clock that was set back holds no agent by a last run that is yet to come") {
  auto a = agent_of("a");
  auto in = input();
  for (const auto cooldown : {milliseconds{0}, milliseconds{1h}}) {
    a.cooldown = cooldown;
    in.last_dispatched_at["a"] = at("2026-02-13T11:00:00Z");
    CHECK(reason_of(kernel_of({a}), in) == "");
    CHECK(ready_at(kernel_of({a}), a, in) == in.now);
  }
  // Another node's clock may be a little ahead.
  in.last_dispatched_at["a"] = in.now + 5s;
  CHECK(reason_of(kernel_of({a}), in) == "cooldown");
}

TEST_CASE("an agent's own schedule: each slot once, and made up for once") {
  const auto k = kernel_of({agent_of("a")});
  auto in = input();
  in.schedules.emplace("a", rule_of("0 8 * * *"));
  in.since = at("2026-02-13T09:00:00Z"); // 08:00 passed before the kernel was there
  CHECK(reason_of(k, in) == "schedule");
  CHECK(plan_static(k, in).decisions[0].detail == "due at 2026-02-14T08:00:00Z");
  in.now = at("2026-02-14T08:10:00Z");
  auto out = plan_static(k, in);
  CHECK(out.decisions[0].dispatched);
  CHECK(out.agent_slots.at("a") == at("2026-02-14T08:00:00Z"));
  in.agent_slots = out.agent_slots;
  CHECK(reason_of(k, in) == "schedule");
  // Three days without a chance to run: once, not three times.
  in.now = at("2026-02-17T09:00:00Z");
  in.latest = {latest("a", dispatch_status::running)};
  out = plan_static(k, in);
  CHECK(out.decisions[0].reason == "running");
  CHECK(out.agent_slots.empty());
  in.latest.clear();
  out = plan_static(k, in);
  CHECK(out.decisions[0].dispatched);
  CHECK(out.agent_slots.at("a") == at("2026-02-17T08:00:00Z"));
}

TEST_CASE("clock-step: an agent's slot from a wrong clock stops nothing") {
  const auto k = kernel_of({agent_of("a")});
  auto in = input();
  in.schedules.emplace("a", rule_of("0 8 * * *"));
  in.agent_slots["a"] = at("2038-01-01T08:00:00Z");
  CHECK(reason_of(k, in) == "");
  in.agent_slots["a"] = at("2026-02-13T08:00:00Z");
  in.now = at("2026-02-13T07:30:00Z"); // half an hour back: not a second time
  CHECK(reason_of(k, in) == "schedule");
  in.now = at("2026-02-13T08:00:00Z");
  CHECK(reason_of(k, in) == "schedule");
}

TEST_CASE("an agent's jitter delays its slot") {
  config::schedule s;
  s.expression = "0 8 * * *";
  s.jitter = 1h;
  const auto rule = rule_of(s);
  const auto k = kernel_of({agent_of("a")});
  auto in = input();
  in.schedules.emplace("a", rule);
  const auto due = rule.due_at("default/a", at("2026-02-13T08:00:00Z"));
  REQUIRE(due > at("2026-02-13T08:00:00Z"));
  in.now = due - 1ms;
  CHECK(reason_of(k, in) == "schedule");
  in.now = due;
  CHECK(reason_of(k, in) == "");
}

TEST_CASE("wake: unchanged and waiting hold back, a broken check does not") {
  auto a = agent_of("a");
  a.wake = config::wake_policy{};
  const auto k = kernel_of({a});
  auto in = input();
  CHECK(reason_of(k, in) == "");
  in.wake["a"] = {plan::wake_kind::changed, {}};
  CHECK(reason_of(k, in) == "");
  in.wake["a"] = {plan::wake_kind::unchanged, {}};
  CHECK(reason_of(k, in) == "no_change");
  in.wake["a"] = {plan::wake_kind::waiting, "until 10:30"};
  CHECK(reason_of(k, in) == "no_change");
  CHECK(plan_static(k, in).decisions[0].detail == "until 10:30");
  in.wake["a"] = {plan::wake_kind::error, "exit 1"};
  CHECK(reason_of(k, in) == "");
  CHECK(plan_static(k, in).decisions[0].detail ==
        "dispatched because the wake check failed: exit 1");
  // No change uses the slot up.
  in.wake["a"] = {plan::wake_kind::unchanged, {}};
  in.schedules.emplace("a", rule_of("0 8 * * *"));
  CHECK(plan_static(k, in).agent_slots.at("a") == at("2026-02-13T08:00:00Z"));
}

TEST_CASE("only agents that nothing else holds back are worth a wake check") {
  std::vector<config::agent> agents;
  for (const char* id : {"off", "busy", "plain", "ready"}) {
    agents.push_back(agent_of(id));
    if (std::string{id} != "plain")
      agents.back().wake = config::wake_policy{};
  }
  agents[0].enabled = false;
  auto in = input();
  in.latest = {latest("busy", dispatch_status::running)};
  CHECK(wake_candidates(kernel_of(agents), in) == std::vector<std::string>{"ready"});
}

TEST_CASE("reasons are checked in the documented order") {
  auto a = agent_of("a");
  a.enabled = false;
  a.cooldown = 1h;
  a.wake = config::wake_policy{};
  auto in = input();
  in.pauses = {{"default", "a", "x", in.now}};
  in.latest = {latest("a", dispatch_status::running)};
  in.schedules.emplace("a", rule_of("0 8 * * *"));
  in.agent_slots["a"] = in.now;
  in.last_dispatched_at["a"] = in.now;
  in.wake["a"] = {plan::wake_kind::unchanged, {}};
  std::vector<std::string> seen;
  const auto note = [&] { seen.push_back(reason_of(kernel_of({a}), in)); };
  note();
  a.enabled = true;
  note();
  in.pauses.clear();
  note();
  in.latest.clear();
  note();
  in.schedules.clear();
  note();
  a.cooldown = 0ms;
  note();
  in.wake.clear();
  note();
  CHECK(seen == std::vector<std::string>{"disabled", "paused", "running", "schedule", "cooldown",
                                         "no_change", ""});
}

TEST_CASE("a prompt that would be too long skips its agent alone") {
  auto big = agent_of("big");
  big.prompt.clear();
  for (std::size_t i = 0; i <= limits::prompt_bytes / 1'000'000; ++i)
    big.prompt += "{STATE}";
  auto in = input();
  in.values.state = std::string(1'000'000, 's');
  const auto out = plan_static(kernel_of({big, agent_of("small")}), in);
  CHECK(out.decisions[0].reason == "planner");
  CHECK_THAT(out.decisions[0].detail, Catch::Matchers::Contains("longer than"));
  REQUIRE(out.specs.size() == 1);
  CHECK(out.specs[0].agent_id == "small");
}

TEST_CASE("every agent gets exactly one decision, and specs are those dispatched") {
  REQUIRE(rc::check("one decision each", [] {
    std::vector<config::agent> agents;
    auto in = input();
    const int count = *rc::gen::inRange(0, 12);
    for (int i = 0; i < count; ++i) {
      agents.push_back(agent_of(("a" + std::to_string(i)).c_str(), *rc::gen::inRange(-3, 3)));
      agents.back().enabled = *rc::gen::inRange(0, 4) != 0;
      if (*rc::gen::inRange(0, 3) == 0)
        in.latest.push_back(latest(agents.back().agent_id.c_str(), dispatch_status::running));
    }
    const auto out = plan_static(kernel_of(agents), in);
    RC_ASSERT(out.decisions.size() == agents.size());
    std::set<std::string> dispatched;
    for (std::size_t i = 0; i < agents.size(); ++i) {
      RC_ASSERT(out.decisions[i].agent_id == agents[i].agent_id);
      RC_ASSERT(out.decisions[i].dispatched == out.decisions[i].reason.empty());
      if (out.decisions[i].dispatched)
        dispatched.insert(agents[i].agent_id);
    }
    RC_ASSERT(out.specs.size() == dispatched.size());
    for (std::size_t i = 0; i < out.specs.size(); ++i) {
      RC_ASSERT(dispatched.contains(out.specs[i].agent_id));
      if (i > 0)
        RC_ASSERT(out.specs[i - 1].priority >= out.specs[i].priority);
    }
  }));
}

TEST_CASE("a single run decides on its agent alone, outside of its schedule and cooldown") {
  auto a = agent_of("a");
  a.cooldown = 1h;
  a.wake = config::wake_policy{};
  const auto k = kernel_of({a, agent_of("b")});
  auto in = input();
  in.only = plan::single_run{"a", "with {STATE}"};
  in.values.state = "a state";
  in.last_dispatched_at["a"] = in.now - 1min;
  in.wake["a"] = {plan::wake_kind::unchanged, "nothing new"};
  CHECK(plan::wake_candidates(k, in).empty());
  const auto out = plan_static(k, in);
  REQUIRE(out.decisions.size() == 1);
  REQUIRE(out.specs.size() == 1);
  CHECK(out.specs[0].prompt == "do a at 2026-02-13T10:00:00Z\n\nwith {STATE}");
  // A pause and a run that goes on hold it back as ever.
  in.latest = {latest("a", dispatch_status::running)};
  CHECK(reason_of(k, in) == "running");
  in.latest.clear();
  in.pauses = {{"", "a", "later", in.now}};
  in.pauses[0].kernel_id = k.kernel_id;
  CHECK(reason_of(k, in) == "paused");
  in.pauses.clear();
  in.only->message.assign(limits::prompt_bytes, 'x');
  CHECK(reason_of(k, in) == "planner");
}

} // namespace boyd::planner_test
