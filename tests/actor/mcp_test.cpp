#include "actors/mcp/core.hpp"
#include "actors/mcp/pool.hpp"
#include "actors/workspace/actor.hpp"
#include "boyd/faults/points.hpp"
#include "node_fixture.hpp"
#include "pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace boyd::mcp_test {

using namespace boyd;
using namespace boyd::test;
using nlohmann::json;

namespace {

/// What a simulated server writes for what it is given: the handshake era, one tool `t`.
std::string answers(std::string_view lines, bool hangs) {
  std::string out;
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    const auto m = json::parse(lines.substr(0, end), nullptr, false);
    lines.remove_prefix(end + 1);
    const auto method = m.value("method", "");
    json result;
    if (method == "initialize")
      result = {{"protocolVersion", "2025-11-25"}, {"capabilities", {{"tools", json::object()}}}};
    else if (method == "tools/list")
      result = {{"tools", {{{"name", "t"}, {"inputSchema", {{"type", "object"}}}}}}};
    else if (method == "tools/call" && !hangs)
      result = {{"content", {{{"type", "text"}, {"text", "called"}}}}};
    if (!m.contains("id") || (result.is_null() && method == "tools/call"))
      continue;
    json answer = {{"jsonrpc", "2.0"}, {"id", m["id"]}};
    if (result.is_null())
      answer["error"] = {{"code", -32601}, {"message", "no"}};
    else
      answer["result"] = result;
    out += answer.dump() + "\n";
  }
  return out;
}

sim::sim_program server(bool hangs = false) {
  sim::sim_program p;
  p.hang = true;
  p.answers = [hangs](std::string_view bytes) { return answers(bytes, hangs); };
  return p;
}

struct fixture : simulated_node {
  mcp_actor mcp;

  explicit fixture(std::vector<std::string> servers = {"one"}) {
    for (const auto& name : servers) {
      auto& s = configuration->mcp_servers.emplace_back();
      s.name = name;
      s.command = name;
      processes->define(name, server());
    }
    config::agent a;
    a.agent_id = "a";
    a.tools = {"mcp__*__*"};
    a.run = config::chat_executor{};
    kernel().agents.push_back(a);
    auto workspace = actors.own(spawn_workspace(actors.system(), context));
    mcp = actors.own(
        spawn_mcp_pool(actors.system(), context, configuration, workspace, approvals_actor{}));
    actors.run_all();
  }

  mcp_user user() const { return {"default", "a", "/ws"}; }
  asked<mcp_tools_reply> tools() {
    auto asked = actors.ask<mcp_tools_reply>(mcp, mcp_tools_query{{}, user()});
    actors.run_all();
    return asked;
  }
  asked<mcp_call_reply> call(const std::string& ticket, const std::string& server = "one") {
    mcp_call c;
    c.user = user();
    c.ticket = ticket;
    c.tool = "mcp__" + server + "__t";
    auto asked = actors.ask<mcp_call_reply>(mcp, c);
    actors.run_all();
    return asked;
  }
  child_status part(const std::string& name) {
    auto tree = actors.ask_now<tree_reply>(mcp, tree_query{});
    REQUIRE(tree.ok());
    for (const auto& c : tree.value().children)
      if (c.name == name)
        return c;
    return {};
  }
};

} // namespace

TEST_CASE("mcp: a server is started when it is wanted, shared, and ended when nobody uses it",
          "[mcp]") {
  fixture f;
  CHECK(f.processes->started() == 0);
  auto first = f.tools();
  REQUIRE(first.ok());
  REQUIRE(first.value().tools.size() == 1);
  CHECK(first.value().tools[0].definition.name == "mcp__one__t");
  REQUIRE(f.tools().ok());
  CHECK(f.processes->started() == 1);
  auto called = f.call("a");
  REQUIRE(called.ok());
  CHECK(called.value().text == "called");
  f.actors.advance(9min);
  CHECK(f.processes->alive() == 1);
  f.actors.advance(2min);
  CHECK(f.processes->alive() == 0);
  CHECK(f.part("mcp:one").name.empty());
  REQUIRE(f.tools().ok());
  CHECK(f.processes->started() == 2);
}

TEST_CASE("mcp: a server that dies answers its calls, is started again, and parked in the end",
          "[mcp]") {
  fixture f({"one", "two"});
  REQUIRE(f.tools().ok());
  f.processes->define("one", server(true));
  f.actors.run_all();
  // The first one lives still; the second start hangs at calls.
  f.processes->signal(1, SIGKILL);
  f.actors.advance(1s);
  REQUIRE(f.tools().ok());
  auto waits = f.call("a");
  CHECK_FALSE(waits.answered());
  f.processes->signal(3, SIGKILL);
  f.actors.run_all();
  REQUIRE(waits.answered());
  CHECK(waits.why().what.find("signal 9") != std::string::npos);
  CHECK(f.part("mcp:one").restarts == 2);
  // From here on it cannot even start.
  sim::sim_program broken;
  broken.start_errno = ENOENT;
  f.processes->define("one", broken);
  f.processes->signal(4, SIGKILL);
  f.actors.advance(1min);
  f.processes->signal(5, SIGKILL);
  f.actors.advance(1min);
  CHECK(f.part("mcp:one").state == "parked");
  auto refused = f.tools();
  REQUIRE(refused.answered());
  CHECK(refused.why().next.find("boyd actors unpark mcp:one") != std::string::npos);
  // The other one never noticed.
  CHECK(f.part("mcp:two").restarts == 0);
  CHECK(f.call("b", "two").ok());
  // Mended, and told so.
  f.processes->define("one", server());
  REQUIRE(f.actors.ask_now<actor_order_reply>(f.mcp, actor_order{{}, actor_verb::unpark, "mcp:one"})
              .ok());
  f.actors.advance(1s);
  CHECK(f.tools().ok());
}

TEST_CASE("case 3 promise-orphan: a call under way is answered when the supervisor of servers ends",
          "[mcp]") {
  fixture f;
  f.processes->define("one", server(true));
  REQUIRE(f.tools().ok());
  const auto called = f.call("a");
  REQUIRE_FALSE(called.answered());
  caf::anon_send_exit(f.mcp, caf::exit_reason::kill);
  f.actors.run_all();
  REQUIRE(called.answered());
  CHECK(called.why().code == errc::actor_down);
}

TEST_CASE("mcp: a call has its time, and one that is cancelled tells nobody", "[mcp]") {
  fixture f;
  f.processes->define("one", server(true));
  REQUIRE(f.tools().ok());
  auto slow = f.call("slow");
  auto other = f.call("other");
  caf::anon_send(f.mcp, mcp_cancel{{}, "other"});
  f.actors.run_all();
  REQUIRE(other.answered());
  CHECK(other.why().code == errc::cancelled);
  f.actors.advance(119s);
  CHECK_FALSE(slow.answered());
  f.actors.advance(2s);
  REQUIRE(slow.answered());
  CHECK(slow.why().code == errc::timed_out);
  CHECK(f.processes->alive() == 1);
}

TEST_CASE("fault points: a call whose cancel is lost ends at its own time", "[mcp]") {
  fixture f;
  const faults::isolation of_this_test;
  f.processes->define("one", server(true));
  REQUIRE(f.tools().ok());
  auto call = f.call("unwanted");
  REQUIRE(faults::arm({{"mcp.cancel", faults::action::drop}}, 1));
  caf::anon_send(f.mcp, mcp_cancel{{}, "unwanted"});
  f.actors.advance(119s);
  CHECK_FALSE(call.answered());
  f.actors.advance(2s);
  REQUIRE(call.answered());
  CHECK(call.why().code == errc::timed_out);
}

TEST_CASE("fault points: a server whose end nobody reports is gone all the same, and started again",
          "[mcp]") {
  fixture f;
  const faults::isolation of_this_test;
  f.processes->define("one", server(true));
  REQUIRE(f.tools().ok());
  auto call = f.call("unanswered");
  REQUIRE(faults::arm({{"mcp.exit", faults::action::drop}}, 1));
  f.processes->define("one", server());
  f.processes->signal(f.processes->started(), SIGKILL);
  f.actors.advance(1s);
  CHECK(f.processes->alive() == 0);
  CHECK_FALSE(call.answered());
  f.actors.advance(40s);
  REQUIRE(call.answered());
  CHECK(call.why().code == errc::actor_down);
  CHECK(call.why().what.find("without an exit status") != std::string::npos);
  CHECK(f.call("again").ok());
  CHECK(f.part("mcp:one").state == "running");
}

TEST_CASE("fault points: words of a server that are lost or damaged cost one call", "[mcp]") {
  for (const auto what : {faults::action::drop, faults::action::corrupt}) {
    fixture f;
    const faults::isolation of_this_test;
    REQUIRE(f.tools().ok());
    REQUIRE(faults::arm({{"mcp.output", what}}, 1));
    auto call = f.call("first");
    f.actors.advance(121s);
    REQUIRE(call.answered());
    CHECK_FALSE(call.ok());
    CHECK(faults::triggered("mcp.output") == 1);
    CHECK(f.call("second").ok());
  }
}

TEST_CASE("mcp: a server that ignores the end is killed", "[mcp]") {
  fixture f;
  auto stubborn = server();
  stubborn.ignore_close = true;
  stubborn.ignore_term = true;
  f.processes->define("one", stubborn);
  REQUIRE(f.tools().ok());
  caf::anon_send_exit(f.mcp, caf::exit_reason::user_shutdown);
  f.actors.advance(1s);
  CHECK(f.processes->alive() == 1);
  f.actors.advance(5s);
  CHECK(f.processes->alive() == 0);
  CHECK(f.actors.ended(f.mcp));
}

TEST_CASE("mcp: a changed definition takes effect at the reload, an equal one does not", "[mcp]") {
  fixture f;
  REQUIRE(f.tools().ok());
  auto same = std::make_shared<config::configuration>(*f.configuration);
  caf::anon_send(f.mcp, reload_order{{}, same});
  f.actors.run_all();
  CHECK(f.processes->alive() == 1);
  auto other = std::make_shared<config::configuration>(*f.configuration);
  other->mcp_servers[0].args = {"--other"};
  caf::anon_send(f.mcp, reload_order{{}, other});
  f.actors.advance(5s);
  CHECK(f.processes->alive() == 0);
  REQUIRE(f.tools().ok());
  CHECK(f.processes->history().back().argv == std::vector<std::string>{"one", "--other"});
}

TEST_CASE("mcp: a run that begins while a changed server ends gets the new one", "[mcp]") {
  fixture f;
  auto stubborn = server();
  stubborn.ignore_close = true;
  f.processes->define("one", stubborn);
  REQUIRE(f.tools().ok());
  auto other = std::make_shared<config::configuration>(*f.configuration);
  other->mcp_servers[0].args = {"--other"};
  const auto heard = std::make_shared<int>();
  caf::anon_send(f.mcp, reload_order{{}, other, heard});
  f.actors.run_all();
  CHECK(heard.use_count() > 1); // it is not over before the server is
  auto asked = f.tools();
  CHECK_FALSE(asked.answered());
  SECTION("as it is then") {
    f.actors.advance(20s);
    CHECK(heard.use_count() == 1);
    REQUIRE(asked.ok());
    CHECK(f.processes->history().back().argv == std::vector<std::string>{"one", "--other"});
  }
  SECTION("and not one that has been taken away meanwhile") {
    const auto started = f.processes->started();
    auto without = std::make_shared<config::configuration>(*other);
    without->mcp_servers.clear();
    caf::anon_send(f.mcp, reload_order{{}, without});
    f.actors.advance(20s);
    CHECK(f.processes->started() == started);
    REQUIRE(asked.answered());
    CHECK_FALSE(asked.ok());
  }
}

TEST_CASE("mcp: a server that floods its pipe is given up, not kept", "[mcp]") {
  fixture f;
  auto flooding = server();
  flooding.answers = [](std::string_view) { return std::string(40u << 20, 'x'); };
  f.processes->define("one", flooding);
  auto asked = f.tools();
  REQUIRE(asked.answered());
  CHECK_FALSE(asked.ok());
}

TEST_CASE(
    "mcp: agents of one workspace share a server's process where their sandboxes are the same",
    "[mcp]") {
  config::agent open;
  open.agent_id = "open";
  auto same = open;
  same.agent_id = "same";
  auto closed = open;
  closed.agent_id = "closed";
  closed.sandbox.network = config::sandbox_settings::network_t::none;
  auto closed_too = closed;
  closed_too.agent_id = "closed-too";
  const std::vector<const config::agent*> all{&open, &same, &closed, &closed_too};
  mcp_core::instance i;
  i.key = mcp_core::key_of("s", "/ws");
  const auto key_for = [&](const config::agent& a) {
    const auto kept = mcp_core::kept_in_sandbox(i, a, all);
    CHECK(kept.sandbox == a.sandbox);
    return kept.key;
  };
  CHECK(key_for(open) == "mcp:s@/ws");
  CHECK(key_for(same) == key_for(open));
  CHECK(key_for(closed) == "mcp:s@/ws#closed");
  CHECK(key_for(closed_too) == key_for(closed));
}

} // namespace boyd::mcp_test
