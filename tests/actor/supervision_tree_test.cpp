#include "actors/node/root.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/state/restarts.hpp"
#include "node_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace boyd::supervision_tree_test {

using namespace boyd;
using boyd::test::simulated_node;
using nlohmann::json;

namespace {

/// The whole node on simulated ports, with scripted agents that are done at once.
struct fixture : simulated_node {
  root_actor root;

  explicit fixture(int agents = 1, milliseconds retention_every = 10min) {
    context->ports.zones = adapters::make_time_zones();
    context->ports.listen = [](const wake_function&) { return std::unique_ptr<wakeup_source>(); };
    context->scheduled = false;
    context->heartbeat = std::make_shared<pulse>();
    context->housekeeping.heartbeat = limits::heartbeat;
    context->housekeeping.retention = retention_every;
    configuration->node_settings.retention = 1h;
    for (int i = 0; i < agents; ++i) {
      auto& agent = kernel().agents.emplace_back();
      agent.agent_id = "agent-" + std::to_string(i);
      auto& answers = agent.run.emplace<config::script_executor>().answers;
      answers.emplace_back().summary = "done";
    }
    root = actors.own(spawn_root(actors.system(), context, configuration));
    caf::anon_send(root, start_claiming{});
    actors.advance(1s);
  }
  ~fixture() { faults::disarm(); }

  /// The answer, after `patience` of virtual time.
  api_response call(const std::string& method, const std::string& path,
                    milliseconds patience = 6s) {
    api_request r;
    r.method = method;
    r.path = path;
    auto answer = actors.ask<api_response>(root, std::move(r));
    actors.advance(patience);
    REQUIRE(answer.ok());
    return answer.value();
  }

  void trigger() {
    const auto answer = call("POST", "/api/v1/cycles", 1s);
    INFO(answer.body);
    CHECK(answer.status == 202);
  }

  static void crash(const std::string& point, int count = -1) {
    REQUIRE(faults::arm({{point, faults::action::crash, count}}, 1));
  }

  std::vector<child_status> tree() {
    auto answer = actors.ask_now<tree_reply>(root, tree_query{});
    REQUIRE(answer.ok());
    return answer.value().children;
  }

  child_status part(const std::string& name) {
    const auto all = tree();
    const auto it = std::ranges::find(all, name, &child_status::name);
    REQUIRE(it != all.end());
    return *it;
  }

  int restarts() {
    int n = 0;
    for (const auto& c : tree())
      n += c.restarts;
    return n;
  }

  std::size_t done() {
    const auto body = json::parse(call("GET", "/api/v1/status").body);
    return body.at("queue").at("done").get<std::size_t>();
  }

  bool ended() { return test::deterministic_system::ended(root); }
};

} // namespace

TEST_CASE("case 8 crash-loop: a vital part ends the node after exactly its restarts",
          "[supervision][tree]") {
  fixture f;
  const auto before = faults::triggered("planner.plan");
  fixture::crash("planner.plan");
  f.trigger();
  f.actors.advance(2min);
  CHECK(f.ended());
  // It ran once, and after each of its restarts.
  CHECK(faults::triggered("planner.plan") - before ==
        static_cast<std::uint64_t>(limits::root_restart_intensity) + 1);
  CHECK(f.context->heartbeat->read().giving_up.find("planner: ") != std::string::npos);
}

TEST_CASE("case 8 crash-loop: a part that is not vital is parked, and the cycle goes on without",
          "[supervision][tree]") {
  fixture f;
  const auto before = faults::triggered("librarian.gather");
  fixture::crash("librarian.gather");
  f.trigger();
  f.actors.advance(2min);
  REQUIRE_FALSE(f.ended());
  const auto librarian = f.part("librarian");
  CHECK(librarian.state == "parked");
  CHECK(librarian.reason.find("failed 6 times within 30s: fault point librarian.gather") == 0);
  CHECK(faults::triggered("librarian.gather") - before ==
        static_cast<std::uint64_t>(limits::restart_intensity) + 1);
  CHECK(f.done() == 1);
  CHECK(f.part("root").state == "running");
  CHECK(f.context->heartbeat->read().parked == std::vector<std::string>{"librarian"});
  const auto ready = f.call("GET", "/readyz");
  CHECK(ready.status == 503);
  CHECK(ready.body.find("librarian: ") != std::string::npos);

  faults::disarm();
  const auto told = f.call("POST", "/api/v1/actors/librarian/unpark");
  CHECK(told.status == 200);
  CHECK(json::parse(told.body) ==
        json{{"schema", "boyd.actor_unpark/1"}, {"name", "librarian"}, {"was", "parked"}});
  CHECK(f.part("librarian").state == "running");
  CHECK(f.part("librarian").reason.empty());
  CHECK(f.call("GET", "/readyz").status == 200);
}

TEST_CASE("case 8 crash-loop: a worker that dies for ever ends the node when its part is vital",
          "[supervision][tree]") {
  fixture f;
  const auto before = faults::triggered("store.apply");
  fixture::crash("store.apply");
  f.actors.advance(2min);
  CHECK(f.ended());
  CHECK(faults::triggered("store.apply") - before ==
        static_cast<std::uint64_t>(limits::root_restart_intensity) + 1);
  CHECK(f.context->heartbeat->read().giving_up ==
        "too many restarts: store: its worker failed 4 times within 1m: fault point store.apply: "
        "crash");
}

TEST_CASE("case 8 crash-loop: a worker that dies for ever has its part parked when it is not",
          "[supervision][tree]") {
  fixture f;
  const auto before = faults::triggered("graph_recorder.append");
  fixture::crash("graph_recorder.append");
  for (int cycle = 0; cycle < 4; ++cycle)
    f.trigger();
  f.actors.advance(10s);
  REQUIRE_FALSE(f.ended());
  const auto parked = f.part("graph_recorder");
  CHECK(parked.state == "parked");
  CHECK(parked.reason.find("its worker failed 6 times within 30s: fault point") == 0);
  CHECK(faults::triggered("graph_recorder.append") - before ==
        static_cast<std::uint64_t>(limits::restart_intensity) + 1);
  const auto done = f.done();
  f.trigger();
  f.actors.advance(1min);
  CHECK(f.done() > done); // it goes on without
  CHECK(f.call("GET", "/readyz").body.find("graph_recorder: parked: its worker failed 6 times") !=
        std::string::npos);

  faults::disarm();
  CHECK(f.call("POST", "/api/v1/actors/graph_recorder/unpark").status == 200);
  CHECK(f.part("graph_recorder").state == "running");
  CHECK(f.call("GET", "/readyz").status == 200);
}

TEST_CASE("case 9 zero-children: a pool whose dispatchers all died says so, and goes on when told",
          "[supervision][tree]") {
  fixture f(3);
  fixture::crash("dispatcher.claim");
  f.trigger();
  f.actors.advance(5s);
  REQUIRE_FALSE(f.ended());
  const auto ready = f.call("GET", "/readyz", 1s);
  CHECK(ready.status == 503);
  CHECK(ready.body.find("dispatchers: no dispatcher runs; parked: dispatcher:default/agent-0") !=
        std::string::npos);
  CHECK(f.part("dispatchers").restarts == 0);
  CHECK(f.done() == 0);

  faults::disarm();
  for (const auto* id : {"agent-0", "agent-1", "agent-2"}) {
    CHECK(f.part(std::string("dispatcher:default/") + id).state == "parked");
    CHECK(
        f.call("POST", std::string("/api/v1/actors/dispatcher:default/") + id + "/unpark").status ==
        200);
  }
  f.actors.advance(1min);
  CHECK(f.done() == 3);
  CHECK(f.call("GET", "/readyz").status == 200);
}

TEST_CASE("case 9 zero-children: dispatchers that die once together are back at once",
          "[supervision][tree]") {
  fixture f(8);
  fixture::crash("dispatcher.claim", 8);
  f.trigger();
  f.actors.advance(5s);
  CHECK(f.done() == 8);
  CHECK(f.part("dispatchers").restarts == 0);
  CHECK(f.restarts() == 8);
}

TEST_CASE("maintenance: finished rows go when they are old enough, and not before",
          "[supervision][tree]") {
  fixture f;
  f.trigger();
  f.actors.advance(55min);
  CHECK(f.done() == 1);
  f.actors.advance(20min);
  CHECK(f.done() == 0);
}

TEST_CASE("maintenance: one that fails for ever is parked, and the node goes on without",
          "[supervision][tree]") {
  fixture f(1, 1s);
  fixture::crash("retention.run");
  f.actors.advance(2min);
  REQUIRE_FALSE(f.ended());
  const auto parked = f.part("retention");
  CHECK(parked.state == "parked");
  CHECK(parked.reason.find("failed 6 times within 30s: fault point retention.run") == 0);
  f.trigger();
  CHECK(f.done() == 1);
  CHECK(f.restarts() == parked.restarts);

  faults::disarm();
  CHECK(f.call("POST", "/api/v1/actors/retention/unpark").status == 200);
  CHECK(f.part("retention").state == "running");
  f.actors.advance(70min);
  CHECK(f.done() == 0);
}

TEST_CASE("an outage of ten minutes is a state: nothing is restarted (promise: database outage)",
          "[supervision][tree]") {
  fixture f;
  f.database->faults.unavailable = true;
  f.files->take_away(simulated_node::kernel_home);
  for (int minute = 0; minute < 10; ++minute) {
    f.actors.advance(1min);
    const auto ready = f.call("GET", "/readyz");
    CHECK(ready.status == 503);
    CHECK(ready.body.find("store: ") != std::string::npos);
  }
  CHECK(f.restarts() == 0);
  CHECK(f.context->heartbeat->read().silent.empty());
  f.database->faults.unavailable = false;
  f.files->give_back();
  f.actors.advance(5s);
  CHECK(f.call("GET", "/readyz").status == 200);
  f.trigger();
  CHECK(f.done() == 1);
  CHECK(f.restarts() == 0);
}

TEST_CASE("the heart beats: every part answers, the pool for its dispatchers",
          "[supervision][tree]") {
  fixture f(2);
  const auto before = f.context->heartbeat->read().round;
  f.actors.advance(1min);
  const auto report = f.context->heartbeat->read();
  CHECK(report.round == before + 6);
  CHECK(report.silent.empty());
  CHECK(report.giving_up.empty());
}

TEST_CASE("case 10 stuck-actor: a part that does not answer makes the node not ready, by its name",
          "[supervision][tree]") {
  fixture f;
  REQUIRE(f.call("GET", "/readyz").status == 200);
  f.actors.advance_without("planner", 30s);
  // It has still not got its turn when this is answered.
  api_request r;
  r.method = "GET";
  r.path = "/readyz";
  auto ready = f.actors.ask<api_response>(f.root, std::move(r));
  f.actors.advance_without("planner", 3s);
  REQUIRE(ready.ok());
  INFO(ready.value().body);
  CHECK(ready.value().status == 503);
  CHECK(ready.value().body.find("planner: silent: has not answered ") != std::string::npos);
  f.actors.advance(20s);
  CHECK(f.call("GET", "/readyz").status == 200);
}

TEST_CASE("case 10 stuck-actor: a supervisor that does not answer hides no other part",
          "[supervision][tree]") {
  fixture f;
  auto asked = f.actors.ask<tree_reply>(f.root, tree_query{});
  // Whoever asks for the whole node's state waits two seconds (apps/boyd/live_node.cpp).
  f.actors.advance_without("dispatchers", 1500ms);
  REQUIRE(asked.ok());
  const auto& all = asked.value().children;
  for (const auto* name : {"store", "dispatchers", "kernel:default", "gateway"})
    CHECK(std::ranges::count(all, name, &child_status::name) == 1);
  CHECK(std::ranges::count(all, "dispatcher:default/agent-0", &child_status::name) == 0);
}

TEST_CASE("an operator restarts a part, and those that hold its handle with it",
          "[supervision][tree]") {
  fixture f;
  const auto told = f.call("POST", "/api/v1/actors/kernel:default/restart");
  CHECK(told.status == 200);
  CHECK(json::parse(told.body) ==
        json{{"schema", "boyd.actor_restart/1"}, {"name", "kernel:default"}, {"was", "running"}});
  f.actors.advance(1s);
  CHECK(f.restarts() == 0); // that was no failure
  f.trigger();
  CHECK(f.done() == 1);
  // Every other part depends on it.
  CHECK(f.call("POST", "/api/v1/actors/store/restart").status == 200);
  CHECK(f.call("POST", "/api/v1/actors/dispatcher:default/agent-0/restart").status == 200);
  f.trigger();
  CHECK(f.done() == 2);
}

TEST_CASE("what runs goes on while the servers of tools are started anew", "[supervision][tree]") {
  fixture f;
  auto slow = std::make_shared<config::configuration>(*f.configuration);
  slow->kernels.front()
      .agents.front()
      .run.emplace<config::script_executor>()
      .answers.emplace_back()
      .delay = 1min;
  caf::anon_send(f.root, reload_order{{}, slow});
  f.actors.advance(1s);
  f.trigger();
  const auto only = [&] { return f.database->all_rows().begin()->second.d; };
  REQUIRE(only().status == dispatch_status::running);
  for (int i = 1; i <= limits::max_rescues + 2; ++i) {
    CHECK(f.call("POST", "/api/v1/actors/mcp/restart", 1s).status == 200);
    CHECK(f.part("mcp").state == "running");
  }
  CHECK(only().status == dispatch_status::running);
  f.actors.advance(2min);
  CHECK(only().status == dispatch_status::done);
  CHECK(only().fence == 1);
  CHECK(f.part("dispatchers").restarts == 0);
}

TEST_CASE("orders about parts: what cannot be is refused with the way out", "[supervision][tree]") {
  fixture f;
  const auto unknown = f.call("POST", "/api/v1/actors/kernel:defalt/restart");
  CHECK(unknown.status == 404);
  CHECK(unknown.body.find("did you mean: kernel:default") != std::string::npos);
  CHECK(f.call("POST", "/api/v1/actors/root/restart").status == 403);
  CHECK(json::parse(f.call("POST", "/api/v1/actors/planner/unpark").body).at("was") == "running");
  fixture::crash("librarian.gather");
  f.trigger();
  f.actors.advance(2min);
  const auto parked = f.call("POST", "/api/v1/actors/librarian/restart");
  CHECK(parked.status == 409);
  CHECK(parked.body.find("boyd actors unpark librarian") != std::string::npos);
}

TEST_CASE("a fault on the way to a part ends no drain of the node", "[supervision][tree]") {
  fixture f;
  f.trigger();
  std::optional<caf::error> reason;
  caf::actor_cast<caf::actor>(f.root)->attach_functor([&](const caf::error& why) { reason = why; });
  REQUIRE(faults::arm({{"dispatchers.request", faults::action::crash, -1},
                       {"kernel.request", faults::action::crash, -1},
                       {"mcp.request", faults::action::crash, -1}},
                      1));
  CHECK(f.part("dispatchers").state == "running");
  caf::anon_send(f.root, shutdown_order{{}, 1s});
  f.actors.advance(1min);
  REQUIRE(reason);
  CHECK(*reason == caf::exit_reason::user_shutdown);
}

namespace {

/// The restarts as a person who asks is told of them, newest first.
json recorded(fixture& f) {
  f.actors.advance(20s); // two beats of the heart
  return json::parse(f.call("GET", "/api/v1/actors").body).at("restarts");
}

} // namespace

TEST_CASE("every restart is recorded: what, when and why, in the store", "[supervision][record]") {
  fixture f;
  fixture::crash("planner.plan", 1);
  fixture::crash("dispatcher.claim", 1);
  fixture::crash("graph_recorder.append", 1);
  const auto from = f.actors.clock()->now();
  f.trigger();
  f.actors.advance(1min);
  REQUIRE(f.done() == 1);
  const auto rows = recorded(f);
  INFO(rows.dump(1));
  REQUIRE(rows.size() == 4); // with whoever went with the planner
  const auto has = [&](const std::string& part, const std::string& cause) {
    return std::ranges::any_of(rows, [&](const json& row) {
      return row.at("name") == part && row.at("cause").get<std::string>().find(cause) == 0 &&
             row.at("at").get<std::string>() >= format_rfc3339(from, true);
    });
  };
  CHECK(has("planner", "fault point planner.plan"));
  CHECK(has("graph_recorder worker", "fault point graph_recorder.append"));
  CHECK(has("dispatcher:default/agent-0", "fault point dispatcher.claim"));
  CHECK(json::parse(f.call("GET", "/api/v1/status").body).at("restarts") == rows);
}

TEST_CASE("restarts without a failure are counted and recorded, too", "[supervision][record]") {
  fixture f;
  const auto has = [&](const std::string& part, const std::string& cause) {
    const auto rows = recorded(f);
    INFO(rows.dump(1));
    return std::ranges::count_if(rows, [&](const json& row) {
             return row.at("name") == part && row.at("cause") == cause;
           }) == 1;
  };
  REQUIRE(f.call("POST", "/api/v1/actors/kernel:default/restart").status == 200);
  f.actors.advance(1s);
  CHECK(has("kernel:default", "restarted by an operator"));
  CHECK(has("kernel:default", "restarted together with it: gateway"));
  CHECK(f.part("kernel:default").renewals == 1);
  CHECK(f.part("gateway").renewals == 1);
  CHECK(f.part("store").renewals == 0);
  // One row for all that go with a part that crashed.
  fixture::crash("planner.plan", 1);
  f.trigger();
  f.actors.advance(1min);
  REQUIRE(f.done() == 1);
  CHECK(has("planner", "restarted together with it: gateway, kernel:default"));
  CHECK(recorded(f).size() == 4);
  CHECK(f.part("kernel:default").renewals == 2);
  CHECK(f.part("planner").renewals == 0);
  CHECK(f.restarts() == 1);
}

TEST_CASE("recorded restarts outlive the node that gave itself up", "[supervision][record]") {
  std::shared_ptr<sim::sim_database> store;
  {
    fixture f;
    fixture::crash("planner.plan");
    f.trigger();
    f.actors.advance(2min);
    REQUIRE(f.ended());
    store = f.database;
  }
  faults::disarm();
  fixture next;
  next.database = store;
  next.context->ports.make_store = [store] { return sim::make_sim_store(store); };
  CHECK(next.call("POST", "/api/v1/actors/store/restart").status == 200);
  const auto rows = recorded(next);
  CHECK(std::ranges::count_if(rows, [](const json& r) {
          return r.at("name") == "planner" &&
                 r.at("cause").get<std::string>().find("fault point planner.plan") == 0;
        }) == limits::root_restart_intensity + 1);
}

TEST_CASE("recorded restarts are bounded, and a store that is away costs only the record",
          "[supervision][record]") {
  fixture f;
  f.database->faults.unavailable = true;
  for (std::size_t i = 0; i < 2 * restart_log::most; ++i)
    f.context->restarts->note({"part-" + std::to_string(i), "test", f.actors.clock()->now()});
  f.actors.advance(5min);
  REQUIRE_FALSE(f.ended());
  CHECK(f.restarts() == 0);
  f.database->faults.unavailable = false;
  f.actors.advance(1min);
  for (int i = 0; i < 10; ++i) {
    f.context->restarts->note({"late-" + std::to_string(i), "test", f.actors.clock()->now()});
    f.actors.advance(20s);
  }
  const auto rows = recorded(f);
  REQUIRE(rows.size() == state::kept_restarts);
  CHECK(rows.front().at("name") == "late-9");
  CHECK(rows.at(10).at("name") == "part-" + std::to_string(2 * restart_log::most - 1));
}

} // namespace boyd::supervision_tree_test
