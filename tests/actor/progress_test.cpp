#include "actors/node/root.hpp"
#include "boyd/ports/http_client.hpp"
#include "node_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

namespace boyd::progress_test {

using namespace boyd;
using boyd::test::simulated_node;
using nlohmann::json;

namespace {

/// A monitor that takes calls, or does not.
struct monitor final : http_client {
  std::vector<std::string> called;
  bool refuses = false;

  http_handle start(http_request request, http_events events) override {
    CHECK(request.method == "GET");
    called.push_back(request.url);
    if (refuses) {
      events.on_end(fail(errc::io_error, "connection refused"));
    } else {
      events.on_head({204, {}});
      events.on_end({});
    }
    return called.size();
  }
  void cancel(http_handle) override {}
  std::size_t running() const override { return 0; }
};

/// A node that follows its schedule; its agent's program takes `length`.
struct fixture : simulated_node {
  root_actor root;
  milliseconds length{0};
  std::shared_ptr<monitor> web = std::make_shared<monitor>();

  explicit fixture(const std::string& schedule, const std::string& heartbeat = {}) {
    context->ports.zones = adapters::make_time_zones();
    context->ports.http = web;
    context->ports.listen = [](const wake_function&) { return std::unique_ptr<wakeup_source>(); };
    processes->define("agent", [this](const process_spec&, std::size_t) {
      sim::sim_program p;
      p.duration = length;
      return p;
    });
    kernel().when.expression = schedule;
    kernel().cycle_deadline = 1h;
    kernel().ends_with_slot = false;
    kernel().heartbeat_url = heartbeat;
    auto& agent = kernel().agents.emplace_back();
    agent.agent_id = "agent";
    agent.timeout = 1h;
    agent.run.emplace<config::command_executor>().argv = {"agent"};
  }

  void start() {
    root = actors.own(spawn_root(actors.system(), context, configuration));
    caf::anon_send(root, start_claiming{});
  }

  api_response call(const std::string& method, const std::string& path,
                    const std::string& body = {}) {
    api_request r;
    r.method = method;
    r.path = path;
    r.body = body;
    const auto answer = actors.ask_now<api_response>(root, std::move(r));
    REQUIRE(answer.ok());
    return answer.value();
  }
  std::string problem() {
    return json::parse(call("GET", "/api/v1/status").body)
        .at("kernels")
        .at(0)
        .at("problem")
        .get<std::string>();
  }
  int ready() { return call("GET", "/readyz").status; }
};

} // namespace

TEST_CASE("health is progress: a cycle that outlives two slots is not ready, until it ends",
          "[progress]") {
  fixture f("@every 2s");
  f.start();
  f.actors.advance(5s);
  CHECK(f.ready() == 200);
  f.length = 40s;
  f.actors.advance(12s);
  const auto answer = f.call("GET", "/readyz");
  CHECK(answer.status == 503);
  CHECK(answer.body.find("kernel:default: no cycle has begun or ended since ") !=
        std::string::npos);
  CHECK(f.problem().find("is still in phase ") != std::string::npos);
  f.length = 0ms;
  f.actors.advance(40s);
  CHECK(f.ready() == 200);
  CHECK(f.problem().empty());
}

TEST_CASE("health is progress: a cycle that outlives one slot is well", "[progress]") {
  fixture f("@every 1m");
  f.length = 90s;
  f.start();
  for (int i = 0; i < 100; ++i) {
    f.actors.advance(10s);
    REQUIRE(f.ready() == 200);
  }
}

TEST_CASE("health is progress: a pause is no missed slot", "[progress]") {
  fixture f("@every 2s");
  f.start();
  f.actors.advance(5s);
  REQUIRE(f.call("POST", "/api/v1/pause", R"({"reason":"holidays"})").status == 200);
  f.actors.advance(1h);
  CHECK(f.ready() == 200);
  REQUIRE(f.call("POST", "/api/v1/resume", "{}").status == 200);
  for (int i = 0; i < 20; ++i) {
    f.actors.advance(1s);
    REQUIRE(f.ready() == 200);
  }
}

TEST_CASE("heartbeat: called after each recorded cycle, and a monitor that is away costs nothing",
          "[progress][heartbeat]") {
  fixture f("@every 1m", "https://monitor.example.org/beat");
  f.web->refuses = true;
  f.start();
  f.actors.advance(10min + 5s);
  const auto cycles = f.database->cycles();
  REQUIRE(cycles.size() >= 10);
  for (const auto& [id, c] : cycles)
    CHECK(c.status == cycle_status::success);
  CHECK(f.web->called ==
        std::vector<std::string>(cycles.size(), "https://monitor.example.org/beat"));
  CHECK(f.ready() == 200);
}

TEST_CASE("heartbeat: without an address nobody is called", "[progress][heartbeat]") {
  fixture f("@every 1m");
  f.start();
  f.actors.advance(5min);
  CHECK(f.web->called.empty());
}

} // namespace boyd::progress_test
