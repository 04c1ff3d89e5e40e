#include "actors/librarian/actor.hpp"
#include "actors/librarian/core.hpp"
#include "actors/state_writer/actor.hpp"
#include "actors/store/actor.hpp"
#include "actors/workspace/actor.hpp"
#include "boyd/faults/points.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <csignal>

namespace boyd::librarian_test {

using namespace boyd;
using boyd::test::simulated_node;

namespace {

struct fixture : simulated_node {
  store_actor store = actors.own(spawn_store(actors.system(), context));
  state_writer_actor writer =
      actors.own(spawn_state_writer(actors.system(), context, configuration));
  workspace_actor workspace = actors.own(spawn_workspace(actors.system(), context));
  librarian_actor librarian;

  void start() {
    auto made = actors.ask_now<state_reply>(writer, state_request{{}, init_kernel_home{"default"}});
    REQUIRE(made.ok());
    librarian = actors.own(
        spawn_librarian(actors.system(), context, configuration, writer, workspace, store));
  }

  void add_sense(const std::string& name, milliseconds interval = 0s) {
    config::sense s;
    s.name = name;
    s.argv = {name};
    s.interval = interval;
    s.timeout = 10s;
    kernel().senses.push_back(s);
  }

  config::wake_policy& add_agent(const std::string& id) {
    config::agent a;
    a.agent_id = id;
    a.wake.emplace();
    kernel().agents.push_back(a);
    return *kernel().agents.back().wake;
  }

  test::asked<gathered_context> ask() {
    return actors.ask<gathered_context>(librarian, gather_context{{}, "default"});
  }

  gathered_context gather(milliseconds wait = 1s) {
    auto answer = ask();
    actors.advance(wait);
    REQUIRE(answer.ok());
    return answer.value();
  }

  plan::wake_answer wake(const std::string& id, milliseconds wait = 100ms, bool by_hand = false) {
    auto answer = actors.ask<wake_results>(librarian, check_wake{{}, "default", {id}, by_hand});
    actors.advance(wait);
    REQUIRE(answer.ok());
    return answer.value().agents.at(id);
  }

  /// The agent gets a dispatch, as a plan after "changed" gives it.
  void dispatch(const std::string& agent_id, const std::string& id) {
    dispatch_spec spec;
    spec.dispatch_id = id;
    spec.kernel_id = "default";
    spec.cycle_id = "cycle-" + id;
    spec.agent_id = agent_id;
    store_request request;
    request.operations = {store::enqueue_cycle{"default", spec.cycle_id, {spec}, {}}};
    REQUIRE(actors.ask_now<store_reply>(store, request).ok());
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("context has goal, memory and what the senses say", "[librarian]") {
  fixture f;
  f.add_sense("disk");
  f.processes->define("disk", sim::sim_program{.output = "93 % full\n", .duration = 100ms});
  f.start();
  f.disk->put("/boyd/kernel/default/GOAL.md", "win\n");
  f.disk->put("/boyd/kernel/default/MEMORY.md", "facts\n");
  f.disk->put("/boyd/kernel/default/SOUL.md", "calm\n");
  const auto context = f.gather();
  CHECK(context.goal == "win\n");
  CHECK(context.memory == "calm\n\nfacts\n");
  CHECK(has(context.senses, "### disk (as of 2026-02-13T10:00:00Z, changed)\n93 % full\n"));
  CHECK(context.problems.empty());
}

TEST_CASE("an interval is respected, also by the next librarian, and no change is marked",
          "[librarian]") {
  fixture f;
  f.add_sense("disk", 1min);
  f.processes->define("disk", sim::sim_program{.output = "same\n"});
  f.start();
  f.gather();
  CHECK(f.processes->started() == 1);
  f.gather();
  CHECK(f.processes->started() == 1);
  f.actors.kill(f.librarian);
  f.actors.run_all();
  f.librarian = f.actors.own(spawn_librarian(f.actors.system(), f.context, f.configuration,
                                             f.writer, f.workspace, f.store));
  CHECK(has(f.gather().senses, "same\n"));
  CHECK(f.processes->started() == 1);
  f.actors.advance(1min);
  CHECK(has(f.gather().senses, "unchanged since 2026-02-13T10:00:00Z"));
  CHECK(f.processes->started() == 2);
}

TEST_CASE("broken senses become problems and lines, never a failed cycle", "[librarian]") {
  fixture f;
  for (const char* name : {"good", "bad", "hanging", "absent"})
    f.add_sense(name);
  f.processes->define("good", sim::sim_program{.output = "fine\n"});
  f.processes->define("bad", sim::sim_program{.errors = "no such host\n", .exit_code = 3});
  f.processes->define("hanging", sim::sim_program{.hang = true, .ignore_term = true});
  f.start();
  const auto context = f.gather(30s);
  CHECK(has(context.senses, "fine\n"));
  CHECK(has(context.senses, "### bad (failed at 2026-02-13T10:00:00Z: exit code 3: no such host)"));
  CHECK(has(context.senses, "### hanging (failed at 2026-02-13T10:00:00Z: timed out after 10s)"));
  CHECK(has(context.senses, "### absent (failed"));
  CHECK(context.problems.size() == 3);
  CHECK(f.processes->running() == 0);
}

TEST_CASE("a program that nothing ends does not hold the answer back", "[librarian]") {
  fixture f;
  f.add_sense("stuck");
  f.processes->define("stuck", sim::sim_program{.hang = true, .unkillable = true});
  f.start();
  auto answer = f.ask();
  f.actors.advance(gather_limit(f.kernel()));
  REQUIRE(answer.ok());
  CHECK(answer.value().problems.size() == 1);
}

TEST_CASE("helpers run a few at a time, and all get their turn", "[librarian]") {
  fixture f;
  const auto many = 3 * helpers_at_once;
  for (std::size_t i = 0; i < many; ++i) {
    f.add_sense("sense" + std::to_string(i));
    f.processes->define("sense" + std::to_string(i), {.output = "fine\n", .duration = 1s});
    const auto agent = "agent" + std::to_string(i);
    f.add_agent(agent).argv = {"sense" + std::to_string(i)};
  }
  f.start();
  auto context = f.ask();
  std::vector<std::string> agents;
  for (const auto& a : f.kernel().agents)
    agents.push_back(a.agent_id);
  auto woken =
      f.actors.ask<wake_results>(f.librarian, check_wake{{}, "default", std::move(agents)});
  f.actors.advance(10s);
  REQUIRE(context.ok());
  REQUIRE(woken.ok());
  CHECK(context.value().problems.empty());
  CHECK(woken.value().agents.size() == many);
  CHECK(f.processes->started() == 2 * many);
  CHECK(f.processes->peak_running() == helpers_at_once);
}

TEST_CASE("a helper that gets no place in time is a problem, not a wait without end",
          "[librarian]") {
  fixture f;
  for (std::size_t i = 0; i < helpers_at_once; ++i) {
    f.add_sense("long" + std::to_string(i));
    f.kernel().senses.back().timeout = 1h;
    f.processes->define("long" + std::to_string(i), {.hang = true});
  }
  config::kernel other = f.kernel();
  other.kernel_id = "other";
  other.senses.resize(1);
  other.senses.front().name = "late";
  other.senses.front().argv = {"late"};
  other.senses.front().timeout = 1s;
  f.processes->define("late", sim::sim_program{.output = "too late\n"});
  f.configuration->kernels.push_back(other);
  f.start();
  auto made = f.actors.ask_now<state_reply>(f.writer, state_request{{}, init_kernel_home{"other"}});
  REQUIRE(made.ok());
  auto first = f.ask();
  f.actors.advance(1s);
  auto second = f.actors.ask<gathered_context>(f.librarian, gather_context{{}, "other"});
  f.actors.advance(gather_limit(other));
  CHECK_FALSE(first.answered());
  REQUIRE(second.ok());
  REQUIRE(second.value().problems.size() == 1);
  CHECK(has(second.value().problems.front(), "no free slot within 2m"));
  CHECK(f.processes->started() == helpers_at_once);
}

TEST_CASE("output beyond the cap is cut, and it is said", "[librarian]") {
  fixture f;
  f.add_sense("loud");
  f.kernel().senses.back().output_bytes = 1000;
  f.processes->define("loud", sim::sim_program{.output = std::string(50'000, 'x')});
  f.start();
  const auto context = f.gather();
  CHECK(context.senses.size() < 1500);
  CHECK(has(context.senses, "bytes not stored"));
}

TEST_CASE("requests for one kernel share a gathering; parts that are away are problems",
          "[librarian]") {
  fixture f;
  f.add_sense("slow");
  f.processes->define("slow", sim::sim_program{.output = "x", .duration = 1s});
  f.start();
  f.database->faults.unavailable = true;
  auto first = f.ask();
  f.actors.advance(500ms);
  auto second = f.ask();
  f.actors.advance(2s);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(f.processes->started() == 1);
  CHECK_FALSE(first.value().problems.empty());
  auto nobody = f.actors.ask_now<gathered_context>(f.librarian, gather_context{{}, "nobody"});
  CHECK(nobody.why().code == errc::not_found);
}

TEST_CASE("a librarian that ends answers and leaves no program behind", "[librarian]") {
  fixture f;
  f.add_sense("slow");
  f.processes->define("slow", sim::sim_program{.hang = true});
  f.start();
  auto answer = f.ask();
  f.actors.advance(1s);
  CHECK(f.processes->running() == 1);
  f.actors.kill(f.librarian);
  f.actors.advance(1s);
  REQUIRE(answer.answered());
  CHECK(answer.why().code == errc::actor_down);
  CHECK(f.processes->running() == 0);
}

TEST_CASE("a helper that does not end is killed, and given up in its time", "[librarian]") {
  fixture f;
  f.add_sense("deaf");
  f.processes->define("deaf", sim::sim_program{.hang = true, .ignore_term = true});
  f.start();
  auto answer = f.ask();
  f.actors.advance(1s);
  CHECK(f.processes->running() == 1);
  f.actors.advance(gather_limit(f.kernel()));
  REQUIRE(answer.ok());
  CHECK(answer.value().problems.size() == 1);
  CHECK(f.processes->running() == 0);
}

TEST_CASE("a helper whose end nobody reports is not waited for until its time is over",
          "[librarian]") {
  const faults::isolation of_this_test;
  fixture f;
  f.add_sense("lost");
  f.kernel().senses.back().timeout = 1h;
  f.processes->define("lost", sim::sim_program{.output = "x"});
  f.start();
  REQUIRE(faults::arm({{"probe.exit", faults::action::drop, 1, 1.0, 0ms}}, 1));
  auto answer = f.ask();
  f.actors.advance(20s);
  REQUIRE(answer.ok());
  REQUIRE(answer.value().problems.size() == 1);
  CHECK(has(answer.value().problems.front(), "without an exit status"));
}

TEST_CASE("a new configuration is used by the next request", "[librarian]") {
  fixture f;
  f.processes->define("disk", sim::sim_program{.output = "x"});
  f.start();
  CHECK(f.gather().senses.empty());
  auto next = std::make_shared<config::configuration>(*f.configuration);
  config::sense s;
  s.name = "disk";
  s.argv = {"disk"};
  next->kernels.front().senses.push_back(s);
  caf::anon_send(f.librarian, reload_order{{}, next});
  CHECK(has(f.gather().senses, "### disk"));
}

TEST_CASE("unchanged inputs are no reason to run, and are checked less and less", "[librarian]") {
  fixture f;
  f.add_agent("a").inputs = {"/in"};
  f.disk->put("/in/x", "1");
  f.start();
  CHECK(f.wake("a").kind == plan::wake_kind::changed);
  f.dispatch("a", "d-000001");
  CHECK(f.wake("a").kind == plan::wake_kind::unchanged);
  CHECK(f.wake("a").kind == plan::wake_kind::waiting);
  f.actors.advance(limits::wake_base * 2);
  CHECK(f.wake("a").kind == plan::wake_kind::unchanged);
  f.disk->put("/in/x", "2");
  f.actors.advance(1h);
  CHECK(f.wake("a").kind == plan::wake_kind::changed);
}

TEST_CASE("case W10: a cycle by hand looks, and leaves the back-off of the schedule as it was",
          "[librarian]") {
  fixture f;
  f.add_agent("files").inputs = {"/in"};
  f.add_agent("command").argv = {"check"};
  std::string says = "1";
  f.processes->define(
      "check", [&](const process_spec&, std::size_t) { return sim::sim_program{.output = says}; });
  f.disk->put("/in/x", "1");
  f.start();
  for (const std::string id : {"files", "command"}) {
    INFO(id);
    CHECK(f.wake(id).kind == plan::wake_kind::changed);
    f.dispatch(id, "d-" + id);
    CHECK(f.wake(id).kind == plan::wake_kind::unchanged);
    const auto rests = f.wake(id);
    CHECK(rests.kind == plan::wake_kind::waiting);
    for (int looks = 0; looks < 5; ++looks)
      CHECK(f.wake(id, 100ms, true).kind == plan::wake_kind::unchanged);
    CHECK(f.wake(id) == rests);
    f.disk->put("/in/x", "2");
    says = "2";
    CHECK(f.wake(id, 100ms, true).kind == plan::wake_kind::changed);
    f.disk->put("/in/x", "1");
    says = "1";
  }
}

TEST_CASE("a change that led to no dispatch is not forgotten", "[librarian]") {
  fixture f;
  f.add_agent("a").inputs = {"/in"};
  f.disk->put("/in/x", "1");
  f.start();
  CHECK(f.wake("a").kind == plan::wake_kind::changed);
  CHECK(f.wake("a").kind == plan::wake_kind::changed); // the node crashed before it enqueued
  f.dispatch("a", "d-000001");
  CHECK(f.wake("a").kind == plan::wake_kind::unchanged);
}

TEST_CASE("a command's output wakes; a broken check does not silence", "[librarian]") {
  fixture f;
  f.add_agent("a").argv = {"check"};
  std::string says = "1";
  int code = 0;
  f.processes->define("check", [&](const process_spec&, std::size_t) {
    return sim::sim_program{.output = says, .exit_code = code};
  });
  f.start();
  CHECK(f.wake("a").kind == plan::wake_kind::changed);
  f.dispatch("a", "d-000001");
  CHECK(f.wake("a").kind == plan::wake_kind::unchanged);
  code = 1;
  f.actors.advance(1h);
  CHECK(f.wake("a").kind == plan::wake_kind::error);
  code = 0;
  says = "2";
  CHECK(f.wake("a").kind == plan::wake_kind::changed);
}

TEST_CASE("what is remembered of a sense reads back", "[librarian]") {
  const sense_memory m{utc_time{5s}, utc_time{3s}, "hash", "out \"put\"\n", "problem"};
  CHECK(read_sense_memory(write_sense_memory(m)) == m);
  CHECK_FALSE(read_sense_memory("nonsense"));
  CHECK_FALSE(read_sense_memory("{\"at\": 1}"));
  config::sense s;
  s.interval = 1min;
  CHECK(is_due(s, std::nullopt, utc_time{}));
  CHECK_FALSE(is_due(s, m, utc_time{64s}));
  CHECK(is_due(s, m, utc_time{65s}));
  CHECK(is_due(s, m, utc_time{4s})); // the clock went back
}

} // namespace boyd::librarian_test
