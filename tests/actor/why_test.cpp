#include "boyd/core/time.hpp"
#include "lone_agent.hpp"

#include <nlohmann/json.hpp>

// `boyd why --at`: which cycle of a minute answers.

namespace boyd::why_answers_test {

using namespace boyd;
using boyd::test::lone_agent_node;
using nlohmann::json;

namespace {

struct two_agents : lone_agent_node {
  two_agents() {
    kernel().when.expression = "@every 1m";
    context->scheduled = true;
    auto other = kernel().agents.front();
    other.agent_id = "other";
    kernel().agents.push_back(other);
  }

  json ask(const std::string& method, const std::string& path,
           std::map<std::string, std::string> query = {}) {
    api_request request;
    request.method = method;
    request.path = path;
    request.query = std::move(query);
    if (method == "POST")
      request.body = "{}";
    auto answer = actors.ask<api_response>(root, request);
    actors.advance(1s);
    REQUIRE(answer.ok());
    return json::parse(answer.value().body);
  }

  void run(const std::string& agent) {
    REQUIRE(ask("POST", "/api/v1/agents/" + agent + "/run").at("admitted") == true);
    actors.advance(3s);
  }
};

} // namespace

TEST_CASE("why --at: runs by hand do not answer for the cycle of the schedule", "[kernel]") {
  using std::chrono::minutes;
  two_agents n;
  n.start();
  (void)n.database->run({store::set_pause{{"default", "agent", "holiday", {}}}});
  n.actors.advance(2min);
  const auto begun = n.actors.clock()->now() - std::chrono::floor<minutes>(n.actors.clock()->now());
  n.actors.advance(80s - begun); // twenty seconds into a minute
  const auto minute = std::chrono::floor<minutes>(n.actors.clock()->now());
  (void)n.database->run({store::clear_pause{"default", "agent"}});
  n.run("agent");
  n.run("other");
  const auto at = format_rfc3339(minute + minutes{1} - milliseconds{1}, true);

  const auto of_agent = n.ask("GET", "/api/v1/why", {{"agent", "agent"}, {"at", at}});
  INFO(of_agent.dump(2));
  CHECK(of_agent["slot"]["trigger"] == "schedule");
  REQUIRE(of_agent["decisions"].size() == 1);
  CHECK(of_agent["decisions"][0]["reason"] == "paused");
  REQUIRE(of_agent["same_minute"].size() == 1);
  CHECK(of_agent["same_minute"][0]["agent_id"] == "agent");
  CHECK(of_agent["same_minute"][0]["status"] == "done");

  const auto of_all = n.ask("GET", "/api/v1/why", {{"at", at}});
  INFO(of_all.dump(2));
  CHECK(of_all["slot"] == of_agent["slot"]);
  CHECK(of_all["decisions"].size() == 2);
  CHECK(of_all["same_minute"].size() == 2);
}

} // namespace boyd::why_answers_test
