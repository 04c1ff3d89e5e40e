#include "actors/governor/actor.hpp"
#include "actors/kernel/cycle_core.hpp"
#include "actors/planner/actor.hpp"
#include "actors/store/actor.hpp"
#include "actors/store/replies.hpp"
#include "actors/workspace/actor.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/plan/llm_planner.hpp"
#include "node_fixture.hpp"
#include "pch.hpp"
#include "support/sim/http.hpp"

#include <nlohmann/json.hpp>

#include <deque>

namespace boyd::llm_planner_test {

using namespace boyd;
using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

std::string completion_of(const std::string& text) {
  return json{{"choices",
               {{{"index", 0},
                 {"finish_reason", "stop"},
                 {"message", {{"role", "assistant"}, {"content", text}}}}}},
              {"usage", {{"prompt_tokens", 100}, {"completion_tokens", 10}}}}
      .dump();
}

sim::sim_http_answer saying(const std::string& text, milliseconds delay = 2s) {
  sim::sim_http_answer a;
  a.body = completion_of(text);
  a.delay = delay;
  return a;
}

sim::sim_http_answer choosing(const std::string& agent) {
  return saying(R"({"dispatches":[{"agent_id":")" + agent + R"(","priority":9,"reason":"r"}]})");
}

/// The planner with what it asks, on a model that answers as the test says; then never.
struct fixture : simulated_node {
  std::deque<sim::sim_http_answer> answers;
  std::shared_ptr<sim::sim_http_client> models;
  store_actor store;
  governor_actor governor;
  workspace_actor workspace;
  planner_actor planner;
  int ids = 0;

  fixture() {
    models = std::make_shared<sim::sim_http_client>(actors.clock(), [this](const http_request&) {
      sim::sim_http_answer never;
      never.silent = true;
      if (answers.empty())
        return never;
      auto next = answers.front();
      answers.pop_front();
      return next;
    });
    context->ports.http = models;
    actors.outside = [this] {
      const auto now = actors.clock()->steady();
      return processes->step(now) + models->step(now);
    };
    actors.next_outside = [this] { return models->next_event(); };
    auto& p = configuration->providers.emplace_back();
    p.provider_id = "local";
    p.model = "m";
    p.base_url = "http://127.0.0.1:1/v1";
    p.capabilities.stream = false;
    p.said = {true, true, true, true};
    p.max_retries = 1;
    auto spare = p;
    spare.provider_id = "spare";
    spare.model = "other";
    configuration->providers.push_back(std::move(spare));
    for (const char* id : {"a", "b"}) {
      config::agent agent;
      agent.agent_id = id;
      agent.prompt = "do";
      kernel().agents.push_back(agent);
    }
    kernel().plan.type = config::planner::type_t::llm;
    kernel().plan.ask.provider_id = "local";
    kernel().plan.ask.timeout = 1min;
    kernel().reduce.type = config::reducer::type_t::llm;
    kernel().reduce.ask = kernel().plan.ask;
    store = actors.own(spawn_store(actors.system(), context));
    governor = actors.own(spawn_governor(actors.system(), context, configuration));
    workspace = actors.own(spawn_workspace(actors.system(), context));
    start();
  }

  void start() {
    planner = actors.own(spawn_planner(actors.system(), {context, store, governor, workspace}));
    actors.run_all();
  }

  ~fixture() { actors.shut_down(); }

  asked<plan::plan_output> plan(const std::string& cycle, milliseconds time_left = 1h) {
    plan_request request;
    request.configuration = configuration;
    request.kernel_id = "default";
    request.input.cycle_id = cycle;
    request.input.now = actors.clock()->now();
    request.input.make_id = [this] { return "d" + std::to_string(++ids); };
    request.time_left = time_left;
    return actors.ask_now<plan::plan_output>(planner, request);
  }

  asked<reduction> reduce(const std::string& cycle) {
    reduce_request request;
    request.configuration = configuration;
    request.kernel_id = "default";
    request.cycle_id = cycle;
    request.outcomes = {{"d1", "a", "done", "fine"}};
    return actors.ask_now<reduction>(planner, request);
  }

  std::optional<plan::plan_record> record(const std::string& cycle) const {
    const auto& all = database->all_decisions();
    const auto at = all.find({"default", cycle, std::string(plan::planner_voice)});
    return at == all.end() ? std::nullopt : plan::read_plan_record(at->second.decision.detail);
  }
};

std::vector<std::string> agents_of(const asked<plan::plan_output>& p) {
  REQUIRE(p.ok());
  std::vector<std::string> ids;
  for (const auto& s : p.value().specs)
    ids.push_back(s.agent_id);
  return ids;
}

const std::vector<std::string> both{"a", "b"};
const std::vector<std::string> only_b{"b"};

} // namespace

TEST_CASE("llm planner: an answer is on record, and nobody is asked twice", "[llm]") {
  fixture f;
  f.answers = {choosing("b")};
  const auto first = f.plan("c1");
  // Who comes while the model thinks, for the same cycle, waits for the same answer.
  const auto beside = f.plan("c1");
  CHECK_FALSE(first.answered());
  f.actors.advance(3s);
  CHECK(agents_of(first) == only_b);
  CHECK(agents_of(beside) == only_b);
  REQUIRE(f.record("c1").has_value());
  CHECK(f.record("c1")->asked.latency == 2s);
  CHECK(f.record("c1")->asked.input_tokens == 100);
  // Another life of the planner, the same cycle.
  f.actors.kill(f.planner);
  f.start();
  const auto again = f.plan("c1");
  CHECK(agents_of(again) == only_b);
  CHECK(f.models->started() == 1);
}

TEST_CASE("llm planner: it answers in time whatever the model does", "[llm]") {
  fixture f;
  const auto silent = f.plan("c1");
  f.actors.advance(59s);
  CHECK_FALSE(silent.answered());
  f.actors.advance(2s);
  CHECK(agents_of(silent) == both);
  CHECK_THAT(silent.value().problem, Contains("(timeout): no answer within 1m"));
  CHECK(f.record("c1")->asked.fell_back == plan::fallback_reason::timeout);
  CHECK(f.models->running() == 0); // the call was cancelled
  // Half of what is left of the cycle.
  const auto late = f.plan("c2", 20s);
  f.actors.advance(10s);
  CHECK(agents_of(late) == both);
  const auto over = f.plan("c3", -5s);
  f.actors.advance(1s);
  CHECK(agents_of(over) == both);
}

TEST_CASE("llm planner: troubles that pass are tried again within the time", "[llm]") {
  fixture f;
  sim::sim_http_answer busy;
  busy.status = 429;
  busy.headers = {{"retry-after", "3"}};
  f.answers = {busy, choosing("b")};
  const auto planned = f.plan("c1");
  f.actors.advance(10s);
  CHECK(agents_of(planned) == only_b);
  CHECK(f.record("c1")->asked.calls == 2);
}

TEST_CASE("llm planner: an open breaker is not waited for", "[llm]") {
  fixture f;
  f.configuration->providers.front().max_retries = 0;
  sim::sim_http_answer down;
  down.no_connection = true;
  for (int i = 0; i < 5; ++i) {
    f.answers.push_back(down);
    const auto failed = f.plan("c" + std::to_string(i));
    f.actors.advance(1s);
    CHECK(agents_of(failed) == both);
    CHECK(f.record("c" + std::to_string(i))->asked.fell_back == plan::fallback_reason::provider);
  }
  const auto open = f.plan("c9");
  CHECK(agents_of(open) == both); // at once
  CHECK(f.record("c9")->asked.fell_back == plan::fallback_reason::breaker_open);
  CHECK(f.models->started() == 5);
}

TEST_CASE("llm planner: a provider that is not called at present leads to the fallback at once",
          "[llm]") {
  fixture f;
  f.configuration->providers.front().max_retries = 0;
  for (int i = 0; i < 5; ++i) {
    sim::sim_http_answer fails;
    fails.status = 500;
    fails.delay = 1s;
    f.answers.push_back(fails);
  }
  for (int i = 0; i < 5; ++i) {
    f.plan("c" + std::to_string(i));
    f.actors.advance(2s);
  }
  CHECK(f.record("c4")->asked.fell_back == plan::fallback_reason::provider);
  f.kernel().plan.ask.fallback = {{"spare", "", {}}};
  f.answers = {choosing("b")};
  const auto planned = f.plan("c5");
  f.actors.advance(3s);
  CHECK(agents_of(planned) == only_b);
  CHECK(f.record("c5")->asked.provider_id == "spare");
  CHECK(f.record("c5")->asked.model == "other");
  CHECK(f.record("c5")->asked.calls == 1);
}

TEST_CASE("llm planner: a call that cannot be begun, and a conversation that fails", "[llm]") {
  const faults::isolation of_this_test;
  fixture f;
  f.configuration->providers.front().max_retries = 0;
  REQUIRE(faults::arm({{"models.call", faults::action::error, 1, 1.0, 0ms}}, 1));
  CHECK(agents_of(f.plan("c1")) == both); // at once, not at the end of its time
  CHECK(f.record("c1")->asked.fell_back == plan::fallback_reason::provider);
  REQUIRE(faults::arm({{"models.call", faults::action::crash, 1, 1.0, 0ms}}, 1));
  const auto failed = f.plan("c2");
  CHECK(agents_of(failed) == both);
  CHECK_THAT(f.record("c2")->asked.why, Contains("the question to the model failed"));
  CHECK(f.models->started() == 0);
}

TEST_CASE(
    "fault points: an answer that breaks off leads to the fallback, a damaged one is read again",
    "[llm]") {
  for (const auto what : {faults::action::error, faults::action::corrupt}) {
    const faults::isolation of_this_test;
    fixture f;
    f.configuration->providers.front().max_retries = 0;
    f.answers.push_back(choosing("b"));
    f.answers.push_back(choosing("b"));
    auto of_body = faults::arming{"models.answer", what, 1, 1.0, 0ms};
    of_body.after = 1;
    REQUIRE(faults::arm({of_body}, 1));
    const auto planned = f.plan("c1");
    f.actors.advance(5s);
    INFO(faults::name_of(what));
    const bool damaged = what == faults::action::corrupt;
    CHECK(agents_of(planned) == (damaged ? only_b : both));
    CHECK((f.record("c1")->asked.fell_back == plan::fallback_reason::none) == damaged);
    CHECK(f.models->started() == (damaged ? 2 : 1));
    CHECK(faults::triggered("models.answer") == 1);
  }
}

TEST_CASE("fault points: a planner that is not told to stop ends at its own limit", "[llm]") {
  const faults::isolation of_this_test;
  fixture f;
  const auto plan = f.plan("c1");
  f.actors.advance(5s);
  REQUIRE(faults::arm({{"planner.stop", faults::action::drop}}, 1));
  caf::anon_send(f.planner, stop_questions{{}, "default"});
  f.actors.run_all();
  CHECK(faults::triggered("planner.stop") == 1);
  CHECK_FALSE(plan.answered());
  CHECK(f.models->running() == 1);
  f.actors.advance(f.kernel().plan.ask.timeout + 2 * limits::request_timeout);
  CHECK(plan.answered());
  CHECK(f.models->running() == 0);
}

TEST_CASE("llm planner: whoever waits no longer takes the call with it", "[llm]") {
  fixture f;
  const auto stopped = f.plan("c1");
  const auto worded = f.reduce("c1");
  f.actors.advance(5s);
  CHECK(f.models->running() == 2);
  caf::anon_send(f.planner, stop_questions{{}, "another"});
  f.actors.run_all();
  CHECK_FALSE(stopped.answered());
  caf::anon_send(f.planner, stop_questions{{}, "default"});
  f.actors.run_all();
  REQUIRE(stopped.answered());
  CHECK(stopped.why().code == errc::cancelled);
  REQUIRE(worded.ok());
  CHECK(worded.value().lines.empty());
  CHECK(f.models->running() == 0);
  CHECK_FALSE(f.record("c1").has_value());
  // The planner dies: its conversation, and the call, with it.
  const auto lost = f.plan("c2");
  f.actors.advance(1s);
  CHECK(f.models->running() == 1);
  f.actors.kill(f.planner);
  f.actors.run_all();
  CHECK_FALSE(lost.ok());
  CHECK(f.models->running() == 0);
  // What it may have cost stays counted.
  std::int64_t tokens = 0;
  const auto spent = f.actors.ask_now<store_reply>(
      f.store, store_request{{}, {store::operation(store::sum_spend{})}});
  for (const auto& row :
       std::get<store::sum_spend::reply>(store_replies::of(spent.value()).front()))
    tokens += row.used.tokens();
  CHECK(tokens > 0);
}

TEST_CASE("llm planner: an answer waits for a store that is away, and is not lost", "[llm]") {
  fixture f;
  f.answers = {choosing("b")};
  const auto planned = f.plan("c1");
  f.database->faults.unavailable = true;
  f.actors.advance(20s);
  CHECK_FALSE(planned.answered());
  f.database->faults.unavailable = false;
  f.actors.advance(30s);
  CHECK(agents_of(planned) == only_b);
  CHECK(f.models->started() == 1);
}

TEST_CASE("llm planner: a dry run and a cycle in which nobody can run ask no model", "[llm]") {
  fixture f;
  plan_request dry;
  dry.configuration = f.configuration;
  dry.kernel_id = "default";
  dry.input.cycle_id = "dry-run";
  dry.input.make_id = [] { return "d"; };
  dry.dry = true;
  CHECK(agents_of(f.actors.ask_now<plan::plan_output>(f.planner, dry)) == both);
  for (auto& a : f.kernel().agents)
    a.enabled = false;
  CHECK(agents_of(f.plan("c1")).empty());
  CHECK(f.models->started() == 0);
}

TEST_CASE("llm reducer: words are on record, and asked for once", "[llm]") {
  fixture f;
  f.answers = {saying(R"({"lines":[{"dispatch_id":"d1","text":"All went well."}]})")};
  const auto first = f.reduce("c1");
  f.actors.advance(3s);
  REQUIRE(first.ok());
  CHECK(first.value().lines == std::map<std::string, std::string>{{"d1", "All went well."}});
  f.actors.kill(f.planner);
  f.start();
  const auto again = f.reduce("c1");
  REQUIRE(again.ok());
  CHECK(again.value().lines == first.value().lines);
  CHECK(f.models->started() == 1);
  const auto silent = f.reduce("c2");
  f.actors.advance(61s);
  REQUIRE(silent.ok());
  CHECK(silent.value().lines.empty());
  CHECK_THAT(silent.value().problem, Contains("(timeout)"));
}

TEST_CASE("case W4: usage that a planner or reducer cannot have used is capped", "[llm]") {
  fixture f;
  const auto claiming = [](const std::string& text) {
    auto a = saying(text);
    auto body = json::parse(a.body);
    body["usage"] = {{"prompt_tokens", 1e30}, {"completion_tokens", 1e12}};
    a.body = body.dump();
    return a;
  };
  f.answers = {claiming(R"({"dispatches":[{"agent_id":"b","priority":9,"reason":"r"}]})"),
               claiming(R"({"lines":[{"dispatch_id":"d1","text":"All went well."}]})")};
  const auto planned = f.plan("c1");
  f.actors.advance(3s);
  CHECK(agents_of(planned) == only_b);
  const auto worded = f.reduce("c1");
  f.actors.advance(3s);
  REQUIRE(worded.ok());
  REQUIRE(f.database->all_spend().size() == 2);
  for (const auto& [id, call] : f.database->all_spend()) {
    INFO(id);
    CHECK(call.settled);
    CHECK(call.counts.input < 100'000);
    CHECK(call.counts.output <= 1'000'000);
  }
}

TEST_CASE("cycle: a model words the outcomes before they are rendered", "[llm]") {
  config::kernel k;
  config::agent a;
  a.agent_id = "a";
  k.agents = {a};
  k.reduce.type = config::reducer::type_t::llm;
  dispatch d;
  d.dispatch_id = "d1";
  d.agent_id = "a";
  d.cycle_id = "c1";
  d.status = dispatch_status::done;
  d.outcome.summary = "fine";
  cycle_record row;
  row.cycle_id = "c1";
  auto c = cycle_core::resume(k, row, {"a"}, {}, {});
  c.wait(std::vector<dispatch>{d}, false, {});
  c.gather({});
  REQUIRE(c.step() == cycle_step::reduce);
  CHECK(c.told_outcomes().front().dispatch_id == "d1");
  c.reduce(reduction{{{"d1", "Well done."}, {"d7", "forged"}}, {}});
  CHECK(c.step() == cycle_step::record);
  const auto history = c.effects().back();
  REQUIRE(history.outcomes.size() == 1);
  CHECK(history.outcomes.front().text == "Well done.");
  CHECK(c.problems().empty());
  // Without it the rules do, and nothing is missing.
  auto without = cycle_core::resume(k, row, {"a"}, {}, {});
  without.wait(std::vector<dispatch>{d}, false, {});
  without.gather({});
  without.reduce(fail(errc::timed_out, "no answer"));
  CHECK(without.effects().back().outcomes.front().text == "fine");
  CHECK(without.problems().empty());
}

} // namespace boyd::llm_planner_test
