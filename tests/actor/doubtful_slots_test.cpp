#include "actors/keeper/core.hpp"
#include "actors/node/root.hpp"
#include "boyd/faults/points.hpp"
#include "node_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <string>

/// Slots whose opening the store has not answered for.
namespace boyd::doubtful_slots_test {

using namespace boyd;
using boyd::test::simulated_node;
using nlohmann::json;

namespace {

/// A node whose only agent answers at once; a commit whose answer is lost has been done or not, by
/// a coin.
struct fixture : simulated_node {
  root_actor root;

  explicit fixture(milliseconds every = {}) {
    context->ports.zones = adapters::make_time_zones();
    context->ports.listen = [](const wake_function&) { return std::unique_ptr<wakeup_source>(); };
    context->scheduled = every > milliseconds{0};
    if (context->scheduled)
      kernel().when = slots_every(every);
    auto& agent = kernel().agents.emplace_back();
    agent.agent_id = "agent";
    agent.run.emplace<config::script_executor>().answers.emplace_back().summary = "done";
    root = actors.own(spawn_root(actors.system(), context, configuration));
    caf::anon_send(root, start_claiming{});
    actors.advance(1s);
  }

  static config::schedule slots_every(milliseconds every) {
    config::schedule when;
    when.expression = "@every " + format_duration(every);
    return when;
  }

  void break_at_commit() {
    database->faults.disconnect_in_commit = 1;
    database->faults.refuse_open = 1;
  }

  test::asked<api_response> trigger() {
    api_request r;
    r.method = "POST";
    r.path = "/api/v1/cycles";
    auto asked = actors.ask<api_response>(root, std::move(r));
    actors.advance(10s);
    return asked;
  }

  std::size_t slots(occurrence_state state) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        database->all_slots(), [&](const auto& slot) { return slot.second.state == state; }));
  }

  std::size_t finished() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        database->all_cycles(), [](const auto& c) { return c.second.finished_at.has_value(); }));
  }
};

} // namespace

TEST_CASE(
    "case 18 commit-in-doubt: a trigger whose answer is lost is run to its end or not at all, and "
    "shuts no gate",
    "[kernel]") {
  fixture f;
  std::size_t doubts = 0;
  constexpr int tries = 16;
  for (int i = 0; i < tries; ++i) {
    f.break_at_commit();
    const auto lost = f.trigger();
    REQUIRE(lost.ok());
    CHECK(lost.value().status == 503);
    doubts += lost.value().body.find("it may still start") != std::string::npos ? 1 : 0;
    f.database->faults.end();
    f.actors.advance(1min);
    CHECK(f.slots(occurrence_state::open) == 0);
    const auto next = f.trigger();
    REQUIRE(next.ok());
    CHECK(json::parse(next.value().body).at("admitted") == true);
    f.actors.advance(1min);
    CHECK(f.slots(occurrence_state::open) == 0);
    CHECK(f.finished() == f.database->all_cycles().size());
  }
  CHECK(doubts > tries / 2);
  // Of some the store knew, of others not: those places are taken by what is not run.
  CHECK(f.finished() > tries);
  CHECK(f.slots(occurrence_state::skipped) > 0);
  CHECK(f.finished() + f.slots(occurrence_state::skipped) == tries + doubts);
}

TEST_CASE("slots that came due while nothing could be written run as one, whatever was asked for",
          "[kernel]") {
  fixture f(1min);
  f.actors.advance(2min);
  const auto before = f.finished();
  // Refused; or in doubt, and not done.
  f.database->faults.refuse_writes = GENERATE(errc::no_space, errc::timed_out);
  f.actors.advance(20min);
  f.database->faults.end();
  f.actors.advance(30s);
  CHECK(f.finished() <= before + 2);
  CHECK(f.slots(occurrence_state::open) == 0);
  f.actors.advance(1min);
  CHECK(f.slots(occurrence_state::coalesced) >= 15);
}

TEST_CASE("a slot whose answer is lost does not stay open when the schedule changes", "[kernel]") {
  fixture f(1h);
  std::size_t doubts = 0;
  for (int i = 0; i < 16; ++i) {
    const auto before = f.database->faults.struck.in_doubt;
    f.break_at_commit();
    f.actors.advance(1h + 1min);
    doubts += f.database->faults.struck.in_doubt > before ? 1 : 0;
    // Now the schedule has no such slot.
    auto next = std::make_shared<config::configuration>(*f.configuration);
    next->kernels.front().when = fixture::slots_every(1h + std::chrono::seconds{i + 1});
    caf::anon_send(f.root, reload_order{{}, next});
    f.actors.advance(1s);
    f.database->faults.end();
    f.actors.advance(10min);
    CHECK(f.slots(occurrence_state::open) == 0);
    CHECK(f.finished() == f.database->all_cycles().size());
  }
  CHECK(doubts > 0);
}

TEST_CASE("a slot that the store's worker ended with does not stay open", "[kernel]") {
  // Found by the simulation: the first try was done without an answer, and the worker ended with
  // each further one.
  fixture f;
  std::size_t unanswered = 0;
  for (int i = 0; i < 16; ++i) {
    f.database->faults.disconnect_in_commit = 1;
    faults::arming a;
    a.point = "store.admit";
    a.what = faults::action::crash;
    a.after = 1;
    a.count = keeper_poison_crashes;
    REQUIRE(faults::arm({a}, 1));
    const auto lost = f.trigger();
    faults::disarm();
    REQUIRE(lost.ok());
    unanswered += lost.value().body.find("it may still start") != std::string::npos ? 1 : 0;
    f.database->faults.end();
    f.actors.advance(5min);
    CHECK(f.slots(occurrence_state::open) == 0);
    CHECK(f.finished() == f.database->all_cycles().size());
  }
  CHECK(unanswered > 0);
  CHECK(f.finished() > 0);
}

TEST_CASE("a slot whose place the store never takes is looked up, and shuts no gate", "[kernel]") {
  fixture f;
  const auto ended = [&f] {
    return f.slots(occurrence_state::open) == 0 && f.finished() == f.database->all_cycles().size();
  };
  std::size_t run = 0;
  for (int i = 0; i < 8; ++i) {
    const auto before = f.finished();
    f.database->faults.disconnect_in_commit = 1;
    faults::arming a;
    a.point = "store.admit";
    a.what = faults::action::crash;
    a.after = 1;
    a.count = -1;
    REQUIRE(faults::arm({a}, 1));
    const auto lost = f.trigger();
    f.database->faults.end();
    f.actors.advance(5min);
    CHECK(ended());
    run += f.finished() - before;
    faults::disarm();
    const auto next = f.trigger();
    REQUIRE(next.ok());
    CHECK(json::parse(next.value().body).at("admitted") == true);
    f.actors.advance(1min);
  }
  CHECK_FALSE(f.actors.ended(f.root));
  CHECK(run > 0);
}

} // namespace boyd::doubtful_slots_test
