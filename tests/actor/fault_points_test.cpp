#include "actors/governor/actor.hpp"
#include "actors/mcp/pool.hpp"
#include "actors/state_writer/actor.hpp"
#include "actors/store/actor.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "actors/workspace/actor.hpp"
#include "boyd/faults/points.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"

namespace boyd::fault_points_test {

using namespace boyd;
using boyd::test::simulated_node;
using faults::action;

namespace {

struct fixture : simulated_node {
  store_actor store = actors.own(spawn_store(actors.system(), context));
  state_writer_actor writer =
      actors.own(spawn_state_writer(actors.system(), context, configuration));
  std::shared_ptr<std::optional<result<store_reply>>> reply =
      std::make_shared<std::optional<result<store_reply>>>();

  ~fixture() { faults::disarm(); }

  static void arm(const char* point, action what, milliseconds delay = 0ms) {
    faults::arming a;
    a.point = point;
    a.what = what;
    a.delay = delay;
    REQUIRE(faults::arm({a}, 1));
  }

  /// An actor that asks the store to keep a fact, and whether it lives.
  caf::actor ask_once() {
    auto asker = actors.system().spawn(
        [to = store, slot = reply](caf::event_based_actor* self) -> caf::behavior {
          install_handlers(self, "asker");
          store_request request;
          request.operations.emplace_back(store::put_fact{"scope", "key", "value"});
          ask<store_reply>(
              self, to, std::move(request), [slot](result<store_reply> r) { *slot = std::move(r); },
              10s);
          return {[](int) {}};
        });
    actors.own(asker);
    actors.run_all();
    return asker;
  }

  std::string kept() {
    store_request request;
    const auto facts = request.add(store::get_facts{"scope"});
    auto answer = actors.ask_now<store_reply>(store, std::move(request)).value();
    const auto map = facts.of(answer);
    return map && map->contains("key") ? map->at("key") : "";
  }
};

} // namespace

TEST_CASE("fault points: a part that quits without a reason has a reason to tell", "[faults]") {
  // Found by the sweep: an execution worker whose report was lost took the node with it.
  CHECK(text_of(caf::error{}) == "it stopped by itself");
  CHECK(text_of(crash_error("why")) == "why");
}

TEST_CASE("fault points: a request goes through when nothing strikes", "[faults]") {
  fixture f;
  f.arm("planner.request", action::drop);
  f.ask_once();
  REQUIRE(*f.reply);
  CHECK(f.reply->value());
  CHECK(f.kept() == "value");
}

TEST_CASE("fault points: a request that fails finds nobody", "[faults]") {
  fixture f;
  f.arm("store.request", action::error);
  f.ask_once();
  REQUIRE(*f.reply);
  REQUIRE_FALSE(f.reply->value());
  CHECK(f.reply->value().error().code == errc::actor_down);
  CHECK(f.kept().empty());
}

TEST_CASE("fault points: a lost request ends with its time limit", "[faults]") {
  fixture f;
  f.arm("store.request", action::drop);
  f.ask_once();
  CHECK_FALSE(*f.reply);
  f.actors.advance(9s);
  CHECK_FALSE(*f.reply);
  f.actors.advance(2s);
  REQUIRE(*f.reply);
  CHECK(f.reply->value().error().code == errc::timed_out);
  CHECK(f.kept().empty());
}

TEST_CASE("fault points: a late request is answered late, and nobody waits with it", "[faults]") {
  fixture f;
  f.arm("store.request", action::delay, 3s);
  f.ask_once();
  f.actors.advance(2s);
  CHECK_FALSE(*f.reply);
  CHECK(f.kept().empty());
  f.actors.advance(2s);
  REQUIRE(*f.reply);
  CHECK(f.reply->value());
  CHECK(f.kept() == "value");
}

TEST_CASE("fault points: what comes when its asker has given up is not done", "[faults]") {
  // Found by the simulation: a rendering of STATE.md came behind the one that had replaced it.
  fixture f;
  f.arm("store.request", action::delay, 15s);
  f.ask_once();
  f.actors.advance(11s);
  REQUIRE(*f.reply);
  CHECK(f.reply->value().error().code == errc::timed_out);
  f.actors.advance(10s);
  CHECK(f.kept().empty());
  f.reply->reset();
  f.ask_once();
  REQUIRE(*f.reply);
  CHECK(f.kept() == "value");
}

TEST_CASE("fault points: a crash on the way ends the asker", "[faults]") {
  fixture f;
  f.arm("store.request", action::crash);
  const auto asker = f.ask_once();
  CHECK_FALSE(*f.reply);
  CHECK(f.actors.ended(asker));
  CHECK(f.kept().empty());
}

TEST_CASE("fault points: a transaction whose answer is lost is repeated", "[faults]") {
  fixture f;
  f.arm("store.apply", action::drop);
  f.ask_once();
  REQUIRE(*f.reply);
  CHECK(f.reply->value());
  CHECK(f.kept() == "value");
  CHECK(faults::armed().front().passes >= 1);
}

TEST_CASE("fault points: a changed bit does not reach STATE.md", "[faults]") {
  fixture f;
  const auto ask = [&](auto what) {
    return f.actors.ask_now<state_reply>(f.writer, state_request{{}, std::move(what)});
  };
  REQUIRE(ask(init_kernel_home{"default"}).ok());
  const auto before = f.file("STATE.md");
  cycle_record c;
  c.cycle_id = "cycle-1";
  c.kernel_id = "default";
  const write_runtime_block block{"default", f.actors.clock()->now(), {c}};
  f.arm("state_writer.bytes", action::corrupt);
  const auto refused = ask(block);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.why().code == errc::corrupt);
  CHECK(f.file("STATE.md") == before);
  CHECK(ask(block).ok());
  CHECK(f.file("STATE.md").find("cycle-1") != std::string::npos);
}

namespace {

/// Asks `to` once as the parts ask each other; what comes of it.
template <class Reply, class Handle, class Message>
struct one_question {
  std::shared_ptr<std::optional<result<Reply>>> reply =
      std::make_shared<std::optional<result<Reply>>>();
  caf::actor asker;

  one_question(test::deterministic_system& actors, const Handle& to, const Message& what)
      : asker(actors.own(actors.system().spawn(
            [to, what, slot = reply](caf::event_based_actor* self) -> caf::behavior {
              install_handlers(self, "asker");
              ask<Reply>(
                  self, to, Message(what), [slot](result<Reply> r) { *slot = std::move(r); }, 10s);
              return {[](int) {}};
            }))) {
    actors.run_all();
  }
};

/// A request that fails, is late or ends its asker at `point`; with `can_be_lost` one that is lost,
/// too.
template <class Reply, class Handle, class Message>
void strike_requests(fixture& f, const char* point, const Handle& to, const Message& what,
                     bool can_be_lost) {
  using question = one_question<Reply, Handle, Message>;
  INFO(point);
  f.arm(point, action::error);
  const question refused(f.actors, to, what);
  REQUIRE(*refused.reply);
  REQUIRE_FALSE(refused.reply->value());
  CHECK(refused.reply->value().error().code == errc::actor_down);

  f.arm(point, action::delay, 3s);
  const question late(f.actors, to, what);
  f.actors.advance(2s);
  CHECK_FALSE(*late.reply);
  f.actors.advance(2s);
  REQUIRE(*late.reply);
  CHECK(late.reply->value());

  f.arm(point, action::crash);
  const question fatal(f.actors, to, what);
  CHECK_FALSE(*fatal.reply);
  CHECK(f.actors.ended(fatal.asker));

  if (can_be_lost) {
    f.arm(point, action::drop);
    const question lost(f.actors, to, what);
    f.actors.advance(11s);
    REQUIRE(*lost.reply);
    CHECK(lost.reply->value().error().code == errc::timed_out);
  }
  const question good(f.actors, to, what);
  REQUIRE(*good.reply);
  CHECK(good.reply->value());
}

} // namespace

TEST_CASE("fault points: requests to the governor and to the servers of tools", "[faults]") {
  fixture f;
  config::agent agent;
  agent.agent_id = "a";
  agent.run = config::chat_executor{};
  f.kernel().agents.push_back(agent);
  const auto governor = f.actors.own(spawn_governor(f.actors.system(), f.context, f.configuration));
  strike_requests<governors_reply>(f, "governor.request", governor, governors_query{}, true);
  const auto workspace = f.actors.own(spawn_workspace(f.actors.system(), f.context));
  const auto mcp = f.actors.own(
      spawn_mcp_pool(f.actors.system(), f.context, f.configuration, workspace, approvals_actor{}));
  // A run waits for its tools for an hour: a request that nobody repeats is not lost.
  strike_requests<mcp_tools_reply>(f, "mcp.request", mcp,
                                   mcp_tools_query{{}, {"default", "a", "/ws"}}, false);
}

} // namespace boyd::fault_points_test
