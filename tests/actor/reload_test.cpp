#include "actors/node/root.hpp"
#include "boyd/config/reload.hpp"
#include "boyd/faults/points.hpp"
#include "node_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <tuple>

namespace boyd::reload_test {

using namespace boyd;
using boyd::test::simulated_node;
using nlohmann::json;
using names = std::vector<std::string>;

namespace {

/// The whole node on simulated ports.
struct fixture : simulated_node {
  int reloads = 0;
  std::shared_ptr<const config::configuration> file_says;
  root_actor root;
  wake_function wake; ///< the database's

  fixture() {
    context->ports.zones = adapters::make_time_zones();
    context->ports.listen = [this](wake_function woken) {
      wake = std::move(woken);
      return std::unique_ptr<wakeup_source>();
    };
    context->scheduled = false;
    configuration->path = "/boyd/boyd.yaml";
    disk->put(configuration->path, "as the test says");
    context->parse_configuration = [this](const std::string&, const std::string&) {
      return result<std::shared_ptr<const config::configuration>>(file_says);
    };
    root = actors.own(spawn_root(actors.system(), context, configuration,
                                 [this](const config::configuration&) { ++reloads; }));
    caf::anon_send(root, start_claiming{});
    actors.advance(1s);
  }

  test::asked<api_response> ask(const std::string& path,
                                std::map<std::string, std::string> query = {}) {
    api_request r;
    r.method = "GET";
    r.path = path;
    r.query = std::move(query);
    return actors.ask<api_response>(root, std::move(r));
  }

  json node_now() {
    auto answer = ask("/api/v1/status");
    actors.advance(5s);
    REQUIRE(answer.ok());
    return json::parse(answer.value().body).at("node");
  }

  std::shared_ptr<config::configuration> changed() const {
    return std::make_shared<config::configuration>(*configuration);
  }

  void reload(std::shared_ptr<const config::configuration> next) {
    caf::anon_send(root, reload_order{{}, std::move(next)});
    actors.advance(1s);
  }

  /// The file says `next` from now on, and is read again.
  test::asked<api_response> post_reload(std::shared_ptr<const config::configuration> next) {
    file_says = std::move(next);
    api_request r;
    r.method = "POST";
    r.path = "/api/v1/reload";
    return actors.ask<api_response>(root, std::move(r));
  }

  int permits_limit() {
    auto answer = ask("/api/v1/status");
    actors.advance(5s);
    REQUIRE(answer.ok());
    return json::parse(answer.value().body).at("permits").at("limit").get<int>();
  }

  std::optional<child_status> part(const std::string& name) {
    auto tree = actors.ask_now<tree_reply>(root, tree_query{});
    REQUIRE(tree.ok());
    for (auto& c : tree.value().children)
      if (c.name == name)
        return c;
    return std::nullopt;
  }

  int restarts_of(const std::string& name) {
    const auto found = part(name);
    return found ? found->restarts : -1;
  }

  std::string state_of(const std::string& name) {
    const auto found = part(name);
    return found ? found->state : "";
  }
};

} // namespace

TEST_CASE("what only a restart changes is named, everything else is not", "[reload]") {
  config::configuration before;
  before.kernels.emplace_back();
  auto after = before;
  after.node_settings.max_concurrent = 99;
  after.node_settings.log_level = "debug";
  after.node_settings.drain_grace = 1s;
  after.node_settings.lease = 1min;
  after.kernels.front().cycle_deadline = 5min;
  CHECK(config::waiting_for_restart(before, after).empty());
  after.node_settings.store = "postgres://db/boyd";
  after.node_settings.store_password_file = "/secret";
  CHECK(config::waiting_for_restart(before, after) ==
        names{"node.store", "node.store_password_file"});
}

TEST_CASE("keepers of homes are renewed for a new author, not for a new agent", "[reload]") {
  config::configuration before;
  before.kernels.emplace_back();
  auto after = before;
  after.kernels.front().agents.emplace_back();
  after.kernels.emplace_back();
  after.kernels.back().kernel_id = "plain";
  CHECK_FALSE(config::home_settings_differ(before, after));
  after.kernels.back().auto_commit = false;
  CHECK(config::home_settings_differ(before, after));
  after = before;
  after.kernels.front().author_name = "somebody";
  CHECK(config::home_settings_differ(before, after));
  after = before;
  after.secrets.emplace_back("a token that no commit may hold");
  CHECK(config::home_settings_differ(before, after));
}

TEST_CASE("status shows the store in force and what waits for a restart", "[reload]") {
  fixture f;
  CHECK(f.node_now().at("restart_needed").empty());
  auto next = f.changed();
  next->node_settings.store = "postgres://db/boyd";
  f.reload(next);
  CHECK(f.reloads == 1);
  const auto node = f.node_now();
  CHECK(node.at("restart_needed") == json{"node.store"});
  CHECK(node.at("store") == "sqlite");
  f.reload(f.changed()); // back again: nothing waits any more
  CHECK(f.node_now().at("restart_needed").empty());
}

TEST_CASE("a reload is answered when every part has it, dispatchers too", "[reload]") {
  fixture f;
  auto with_agent = f.changed();
  with_agent->kernels.front().agents.emplace_back().agent_id = "a";
  f.reload(with_agent);
  auto stricter = std::make_shared<config::configuration>(*with_agent);
  stricter->kernels.front().agents.front().policy.rules.emplace_back(); // denies everything
  auto heard = f.actors.ask<reload_reply>(f.root, reload_order{{}, stricter});
  f.actors.advance_without("dispatcher", 2s);
  CHECK_FALSE(heard.answered());
  f.actors.advance(1s);
  CHECK(heard.ok());
}

TEST_CASE("a reload that renews the gateway is answered when everything runs anew", "[reload]") {
  fixture f;
  auto with_agent = f.changed();
  with_agent->kernels.front().agents.emplace_back().agent_id = "a";
  f.reload(with_agent);
  auto next = std::make_shared<config::configuration>(*with_agent);
  next->kernels.front().author_name = "Somebody Else";
  next->kernels.emplace_back().kernel_id = "second";
  auto asked = f.post_reload(next);
  f.actors.advance_without("dispatcher", 2s);
  CHECK_FALSE(asked.answered());
  CHECK(f.state_of("kernel:second") == "running"); // all that is left is the dispatcher
  f.actors.advance(1s);
  REQUIRE(asked.ok());
  CHECK(asked.value().status == 200);
  CHECK(json::parse(asked.value().body) ==
        json{{"schema", "boyd.reload/1"},
             {"reloaded", true},
             {"changes", {"kernel default changed: author", "kernel second added"}},
             {"restart_needed", json::array()}});
}

TEST_CASE("a reload waits for the end of what it removes", "[reload]") {
  fixture f;
  auto with_more = f.changed();
  with_more->kernels.front().agents.emplace_back().agent_id = "a";
  with_more->kernels.emplace_back().kernel_id = "second";
  f.reload(with_more);
  REQUIRE(f.state_of("kernel:second") == "running");
  auto heard = f.actors.ask<reload_reply>(f.root, reload_order{{}, f.changed()});
  SECTION("an agent's dispatcher has heard of it") {
    f.actors.advance_without("dispatcher", 2s);
  }
  SECTION("the permits are those of the new limits") {
    f.actors.advance_without("permits", 2s);
  }
  CHECK_FALSE(heard.answered());
  f.actors.advance(10s);
  CHECK(heard.ok());
  CHECK(f.state_of("kernel:second").empty());
}

TEST_CASE("fault points: a part that dies as it takes a reload starts with the new configuration",
          "[reload][faults]") {
  const faults::isolation of_this_test;
  fixture f;
  auto with_agent = f.changed();
  with_agent->kernels.front().agents.emplace_back().agent_id = "a";
  f.reload(with_agent);
  // One part after the other, until a reload meets none any more.
  constexpr std::int64_t parts_at_most = 20;
  std::int64_t parts = 0;
  for (bool struck = true; struck && parts < parts_at_most; ++parts) {
    faults::arming dies{"parts.reload", faults::action::crash};
    dies.after = parts;
    REQUIRE(faults::arm({dies}, 1));
    const auto before = faults::triggered("parts.reload");
    auto next = std::make_shared<config::configuration>(*with_agent);
    next->node_settings.max_concurrent = 10 + static_cast<int>(parts);
    auto heard = f.actors.ask<reload_reply>(f.root, reload_order{{}, next});
    f.actors.advance(2min); // the past is forgotten, too
    INFO("part number " << parts);
    CHECK(heard.ok());
    CHECK(f.permits_limit() == next->node_settings.max_concurrent);
    CHECK_FALSE(f.actors.ended(f.root));
    struck = faults::triggered("parts.reload") > before;
    faults::disarm();
  }
  CHECK(parts > 8);
  CHECK(parts < parts_at_most);
}

TEST_CASE("a reload waits for a part that is started anew and gets no order", "[reload]") {
  fixture f;
  auto next = f.changed();
  next->kernels.front().author_name = "Somebody Else";
  auto heard = f.actors.ask<reload_reply>(f.root, reload_order{{}, next});
  f.actors.advance_without("state_writer", 3s);
  CHECK_FALSE(heard.answered());
  f.actors.advance(1s);
  CHECK(heard.ok());
}

TEST_CASE("a stop lets what a reload starts anew come back first", "[reload]") {
  fixture f;
  auto next = f.changed();
  next->kernels.emplace_back().kernel_id = "second";
  auto heard = f.actors.ask<reload_reply>(f.root, reload_order{{}, next});
  f.actors.advance_without("gateway", 1s);
  const auto stop = [&](milliseconds grace) {
    caf::anon_send<caf::message_priority::high>(f.root, shutdown_order{{}, grace});
    f.actors.advance_without("gateway", 0s);
    CHECK_FALSE(heard.answered());
  };
  SECTION("and the reload is whole then") {
    stop(1h);
    f.actors.advance(1s);
    CHECK(heard.ok());
  }
  SECTION("but not when the stop is told to hurry") {
    stop(1h);
    caf::anon_send<caf::message_priority::high>(f.root, hurry_order{});
    f.actors.advance_without("gateway", 0s);
    CHECK(heard.answered());
  }
  SECTION("but not for long") {
    stop(0s);
    f.actors.advance_without("gateway", 5s);
    REQUIRE(heard.answered());
    CHECK(heard.why().what == "the node is stopping, so not every part has the new configuration");
  }
}

TEST_CASE("case 31 drain: a stop that waits for what is started anew claims nothing meanwhile",
          "[reload]") {
  fixture f;
  auto with_agent = f.changed();
  config::agent agent;
  agent.agent_id = "a";
  with_agent->kernels.front().agents.push_back(agent);
  f.reload(with_agent);
  auto next = std::make_shared<config::configuration>(*with_agent);
  next->kernels.emplace_back().kernel_id = "second";
  caf::anon_send(f.root, reload_order{{}, next});
  f.actors.advance_without("gateway", 100ms);
  const bool stopped = GENERATE(true, false);
  if (stopped)
    caf::anon_send<caf::message_priority::high>(f.root, shutdown_order{{}, 1h});
  f.actors.advance_without("gateway", 100ms);
  const auto op = f.enqueueing("a");
  (void)f.database->run({op});
  f.wake({});
  f.actors.advance_without("gateway", 1500ms);
  store::list_dispatches ask;
  ask.kernel_id = op.kernel_id;
  ask.cycle_id = op.cycle_id;
  const auto rows = f.database->run({ask});
  const auto& row = std::get<store::list_dispatches::reply>(rows.front()).at(0);
  CHECK((row.fence == 0) == stopped);
}

TEST_CASE("a reload that a part does not take is told by the part's name", "[reload]") {
  fixture f;
  auto asked = f.post_reload(f.changed());
  f.actors.advance_without("governor", 40s);
  REQUIRE(asked.answered());
  REQUIRE_FALSE(asked.ok());
  CHECK(asked.why().code == errc::timed_out);
  CHECK(asked.why().what == "the new configuration is active, but not yet in: governor");
}

TEST_CASE("who waits for a reload is told in time that it is not complete, whatever follows it",
          "[reload]") {
  fixture f;
  auto first = f.actors.ask<reload_reply>(f.root, reload_order{{}, f.changed()});
  f.actors.advance_without("governor", 20s);
  auto second = f.actors.ask<reload_reply>(f.root, reload_order{{}, f.changed()});
  f.actors.advance_without("governor", 15s);
  REQUIRE(first.answered());
  CHECK(first.why().code == errc::timed_out);
  CHECK_FALSE(second.answered());
  f.actors.advance(1s);
  CHECK(second.ok());
}

TEST_CASE("who waits for a reload is answered with the next one", "[reload]") {
  fixture f;
  auto first = f.actors.ask<reload_reply>(f.root, reload_order{{}, f.changed()});
  f.actors.advance_without("governor", 2s);
  auto second = f.actors.ask<reload_reply>(f.root, reload_order{{}, f.changed()});
  f.actors.advance_without("governor", 2s);
  CHECK_FALSE(first.answered());
  f.actors.advance(1s);
  CHECK(first.ok());
  CHECK(second.ok());
}

TEST_CASE("a kernel's new author counts after a reload", "[reload]") {
  fixture f;
  auto next = f.changed();
  next->kernels.front().author_name = "Somebody Else";
  f.reload(next);
  f.actors.advance(10s);
  const auto node = f.node_now();
  CHECK(node.at("restart_needed").empty());
  for (const char* part : {"state_writer", "git_committer", "kernel:default", "gateway"})
    CHECK(f.restarts_of(part) == 0); // renewed, which is no failure
}

TEST_CASE("whoever waits at a gateway that goes is told so at once", "[reload]") {
  fixture f;
  auto next = f.changed();
  next->kernels.front().agents.emplace_back();
  auto& agent = next->kernels.front().agents.back();
  agent.agent_id = "slow";
  config::command_executor run;
  run.argv = {"slow"};
  agent.run = run;
  f.processes->define("slow", sim::sim_program{.hang = true});
  f.reload(next);
  api_request trigger;
  trigger.method = "POST";
  trigger.path = "/api/v1/cycles";
  auto begun = f.actors.ask<api_response>(f.root, std::move(trigger));
  f.actors.advance(2s);
  REQUIRE(begun.ok());
  const auto id = json::parse(begun.value().body).at("cycle_id").get<std::string>();
  auto waiting = f.ask("/api/v1/cycles/" + id, {{"wait", "1"}});
  f.actors.advance(1s);
  CHECK_FALSE(waiting.answered());
  auto other = std::make_shared<config::configuration>(*next);
  other->kernels.emplace_back();
  other->kernels.back().kernel_id = "second";
  f.reload(other); // the gateway is renewed: it holds the kernels' handles
  INFO("CAF's own error: " << waiting.failed());
  REQUIRE(waiting.answered());
  REQUIRE(waiting.ok());
  CHECK(json::parse(waiting.value().body).at("error").at("code") == "actor_down");
}

TEST_CASE("a wrong method is answered with 405 and the right ones", "[gateway]") {
  fixture f;
  const auto asked = [&](const char* method, const char* path) {
    api_request r;
    r.method = method;
    r.path = path;
    auto answer = f.actors.ask<api_response>(f.root, std::move(r));
    f.actors.advance(1s);
    REQUIRE(answer.ok());
    return answer.value();
  };
  for (const auto& [method, path, allow] :
       std::vector<std::tuple<const char*, const char*, std::string>>{
           {"DELETE", "/api/v1/status", "GET"},
           {"PUT", "/api/v1/cycles", "GET, POST"},
           {"GET", "/api/v1/pause", "POST"},
           {"POST", "/api/v1/events", "GET"},
           {"POST", "/api/v1/dispatches/0190", "GET"},
           {"GET", "/api/v1/dispatches/0190/retry", "POST"},
           {"POST", "/api/v1/cycles/0190", "GET"}}) {
    INFO(method << " " << path);
    const auto answer = asked(method, path);
    CHECK(answer.status == 405);
    CHECK(answer.allow == allow);
    CHECK(json::parse(answer.body).at("error").at("next") == "parameters: " + allow);
  }
  CHECK(asked("GET", "/api/v1/nothing").status == 404);
}

TEST_CASE("what a request says that nobody would read is refused with the nearest name",
          "[gateway]") {
  fixture f;
  const auto refused = [&](api_request r) {
    auto answer = f.actors.ask<api_response>(f.root, std::move(r));
    f.actors.advance(1s);
    REQUIRE(answer.ok());
    INFO(answer.value().body);
    CHECK(answer.value().status == 400);
    return json::parse(answer.value().body).at("error");
  };
  const auto post = [](const char* path, std::string body) {
    api_request r;
    r.method = "POST";
    r.path = path;
    r.body = std::move(body);
    return r;
  };
  const auto get = [](const char* path, std::map<std::string, std::string> query) {
    api_request r;
    r.method = "GET";
    r.path = path;
    r.query = std::move(query);
    return r;
  };
  const auto member = refused(post("/api/v1/cycles", R"({"kernle":"x"})"));
  CHECK(member.at("what") == "no such member: kernle");
  CHECK(member.at("next") == "did you mean kernel?");
  CHECK(refused(post("/api/v1/cycles", R"({"kernel":5})")).at("what") == "kernel is not a string");
  CHECK(refused(post("/api/v1/cycles", R"({"trigger":"cron"})")).at("next") == "manual or api");
  CHECK(refused(post("/api/v1/pause", R"({"until":"noon"})")).at("next") ==
        "parameters: kernel, agent, reason");
  CHECK(refused(post("/api/v1/dispatches/0190/retry", R"({"agent":"a"})")).at("next") ==
        "this path has no members");
  const auto parameter = refused(get("/api/v1/dispatches", {{"statsu", "done"}}));
  CHECK(parameter.at("what") == "no such parameter: statsu");
  CHECK(parameter.at("next") == "did you mean status?");
  CHECK(refused(get("/api/v1/status", {{"bogus", "1"}})).at("next") ==
        "this path has no parameters");
  CHECK(refused(get("/api/v1/cycles/0190", {{"wait", "yes"}})).at("what") == "wait must be 0 or 1");
  auto asked = f.ask("/api/v1/cycles", {{"kernel", "default"}, {"limit", "1"}});
  f.actors.advance(1s);
  REQUIRE(asked.ok());
  CHECK(asked.value().status == 200);
}

} // namespace boyd::reload_test
