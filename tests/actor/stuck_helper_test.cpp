#include "actors/gateway/actor.hpp"
#include "actors/governor/actor.hpp"
#include "actors/librarian/actor.hpp"
#include "actors/planner/actor.hpp"
#include "actors/state_writer/actor.hpp"
#include "actors/store/actor.hpp"
#include "actors/workspace/actor.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"
#include "support/sim/http.hpp"

#include <string_view>

namespace boyd::stuck_helper_test {

using namespace boyd;
using boyd::test::simulated_node;

namespace {

/// Parts that have work done by disposable actors, on programs and models that never answer.
struct fixture : simulated_node {
  std::shared_ptr<sim::sim_http_client> models;
  store_actor store;
  governor_actor governor;
  workspace_actor workspace;
  state_writer_actor writer;

  fixture() {
    models = std::make_shared<sim::sim_http_client>(actors.clock(), [](const http_request&) {
      sim::sim_http_answer never;
      never.silent = true;
      return never;
    });
    context->ports.http = models;
    actors.outside = [this] {
      const auto now = actors.clock()->steady();
      return processes->step(now) + models->step(now);
    };
    auto& p = configuration->providers.emplace_back();
    p.provider_id = "local";
    p.model = "m";
    p.base_url = "http://127.0.0.1:1/v1";
    p.capabilities.stream = false;
    p.said = {true, true, true, true};
    store = actors.own(spawn_store(actors.system(), context));
    governor = actors.own(spawn_governor(actors.system(), context, configuration));
    workspace = actors.own(spawn_workspace(actors.system(), context));
    writer = actors.own(spawn_state_writer(actors.system(), context, configuration));
    actors.run_all();
  }

  ~fixture() { actors.shut_down(); }

  /// The supervisor's ping: for how long the part says that a helper has not come back. `stuck`
  /// names helpers that get no turn; empty: all do.
  template <class Part>
  milliseconds busy(const Part& part, std::string_view stuck) {
    milliseconds told{-1};
    actors.system().spawn([&told, part](caf::event_based_actor* self) {
      self->request(caf::actor_cast<caf::actor>(part), std::chrono::minutes{60}, ping{})
          .then([&told](pong& p) { told = p.worker_busy; }, [](caf::error&) {});
    });
    actors.advance_without(stuck, 1s);
    return told;
  }

  /// A helper of that name works, hangs for longer than the watchdog allows, and comes back.
  template <class Part>
  void check(const Part& part, std::string_view helper) {
    CHECK(busy(part, {}) == 0ms);
    CHECK(busy(part, {}) == 0ms); // it has answered the first
    for (milliseconds stuck{0}; stuck <= limits::stuck_worker; stuck += limits::heartbeat) {
      REQUIRE(busy(part, helper) >= 0ms);
      actors.advance_without(helper, limits::heartbeat - 1s);
    }
    CHECK(busy(part, helper) >= limits::stuck_worker);
    actors.advance(1min); // it answers what it was asked, and ends
    CHECK(busy(part, {}) == 0ms);
  }
};

} // namespace

TEST_CASE("case 10 stuck-actor: the planner tells of a conversation that spins", "[supervision]") {
  fixture f;
  auto& agent = f.kernel().agents.emplace_back();
  agent.agent_id = "a";
  agent.prompt = "do";
  f.kernel().plan.type = config::planner::type_t::llm;
  f.kernel().plan.ask.provider_id = "local";
  f.kernel().plan.ask.timeout = 1min;
  const auto planner =
      f.actors.own(spawn_planner(f.actors.system(), {f.context, f.store, f.governor, f.workspace}));
  plan_request request;
  request.configuration = f.configuration;
  request.kernel_id = "default";
  request.input.cycle_id = "c1";
  request.input.now = f.actors.clock()->now();
  request.input.make_id = [] { return std::string("d1"); };
  request.time_left = 1h;
  const auto planned = f.actors.ask_now<plan::plan_output>(planner, request);
  f.actors.advance(1s);
  REQUIRE(f.models->running() == 1);
  f.check(planner, "conversation");
  CHECK(planned.answered());
}

TEST_CASE("case 10 stuck-actor: the gateway tells of a conversation that spins", "[supervision]") {
  fixture f;
  gateway_parts parts;
  parts.context = f.context;
  parts.configuration = f.configuration;
  parts.store = f.store;
  parts.workspace = f.workspace;
  const auto gateway = f.actors.own(spawn_gateway(f.actors.system(), parts));
  api_request call;
  call.method = "POST";
  call.path = "/api/v1/providers/local/probe";
  const auto answer = f.actors.ask_now<api_response>(gateway, std::move(call));
  REQUIRE(f.models->running() == 1);
  REQUIRE_FALSE(answer.answered());
  f.check(gateway, "conversation");
}

} // namespace boyd::stuck_helper_test
