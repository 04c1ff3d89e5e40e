#include "actors/node/root.hpp"
#include "node_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace boyd::orphans_test {

using namespace boyd;
using boyd::test::simulated_node;
using nlohmann::json;

namespace {

/// Who waits hears it at once: after the first back-off of a restart, and far from any time limit.
constexpr milliseconds patience = 200ms;
/// Messages after which a part is stopped: from before the cycle to behind its end.
constexpr int most_messages = 240;
constexpr int step = 20;

struct waiting_node : simulated_node {
  root_actor root;

  waiting_node() {
    context->ports.zones = adapters::make_time_zones();
    context->ports.listen = [](const wake_function&) { return std::unique_ptr<wakeup_source>(); };
    context->scheduled = false;
    auto& agent = kernel().agents.emplace_back();
    agent.agent_id = "agent";
    agent.run.emplace<config::script_executor>().answers.emplace_back().summary = "done";
    root = actors.own(spawn_root(actors.system(), context, configuration));
    caf::anon_send(root, start_claiming{});
    actors.advance(1s);
  }

  test::asked<api_response> ask(const std::string& method, const std::string& path,
                                const std::map<std::string, std::string>& query = {}) {
    api_request r;
    r.method = method;
    r.path = path;
    r.query = {query.begin(), query.end()};
    return actors.ask<api_response>(root, std::move(r));
  }

  std::vector<std::string> parts() {
    auto answer = actors.ask_now<tree_reply>(root, tree_query{});
    REQUIRE(answer.ok());
    std::vector<std::string> names;
    for (const auto& child : answer.value().children)
      if (child.name != "root")
        names.push_back(child.name);
    return names;
  }

  std::string begun() {
    auto answer = ask("POST", "/api/v1/cycles");
    for (int i = 0; i < most_messages && !answer.answered(); ++i)
      actors.run_one();
    REQUIRE(answer.ok());
    return json::parse(answer.value().body).at("cycle_id").get<std::string>();
  }
};

/// An answer, and not that there was none in time.
bool is_told(const test::asked<api_response>& question) {
  if (question.failed())
    return true;
  if (!question.answered())
    return false;
  if (!question.ok())
    return question.why().code != errc::timed_out;
  // As the code of an error, and as the reason of a part that a report had to do without.
  const auto& body = question.value().body;
  return body.find("timed_out") == std::string::npos &&
         body.find("no answer in time") == std::string::npos;
}

} // namespace

TEST_CASE("case 3 promise-orphan: whichever part ends with questions open, who waits is answered",
          "[supervision][tree]") {
  const auto names = waiting_node{}.parts();
  REQUIRE(names.size() > 10);
  for (const auto& name : names)
    for (int messages = 0; messages < most_messages; messages += step) {
      waiting_node n;
      const auto cycle = n.begun();
      std::vector<test::asked<api_response>> open;
      open.push_back(n.ask("GET", "/api/v1/cycles/" + cycle, {{"wait", "1"}}));
      for (const auto* path : {"/api/v1/status", "/api/v1/cycles", "/api/v1/dispatches"})
        open.push_back(n.ask("GET", path));
      for (int i = 0; i < messages; ++i)
        n.actors.run_one();
      const auto restarted = n.ask("POST", "/api/v1/actors/" + name + "/restart");
      n.actors.advance(patience);
      INFO(name << " is stopped after " << messages << " messages");
      for (const auto& question : open)
        CHECK(is_told(question));
      n.actors.advance(limits::request_timeout);
      CHECK((restarted.answered() || restarted.failed()));
      auto again = n.ask("GET", "/api/v1/cycles/" + cycle);
      n.actors.advance(1s);
      REQUIRE(again.ok());
      CHECK(json::parse(again.value().body).at("status") == "success");
    }
}

} // namespace boyd::orphans_test
