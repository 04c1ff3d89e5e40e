#include "actors/governor/actor.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/faults/points.hpp"
#include "node_fixture.hpp"
#include "pch.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace boyd::governor_test {

using namespace boyd;
using namespace boyd::test;

namespace {

/// Hears of its places.
struct holder_state {
  std::shared_ptr<std::vector<place_answer>> heard;
  static inline const char* name = "holder";
};

place_holder_actor::behavior_type holder(place_holder_actor::stateful_pointer<holder_state> self,
                                         std::shared_ptr<std::vector<place_answer>> heard) {
  install_handlers(self, "holder");
  self->state.heard = std::move(heard);
  return {[self](place_answer& m) { self->state.heard->push_back(m); }};
}

struct fixture : simulated_node {
  governor_actor governor;
  std::shared_ptr<std::vector<place_answer>> heard = std::make_shared<std::vector<place_answer>>();

  fixture() {
    auto& p = configuration->providers.emplace_back();
    p.provider_id = "one";
    p.max_concurrent = 2;
    governor = actors.own(spawn_governor(actors.system(), context, configuration));
    actors.run_all();
  }

  place_holder_actor new_holder() { return actors.own(actors.system().spawn(holder, heard)); }
  void ask(const place_holder_actor& who, std::uint64_t call, const std::string& agent = "k/a") {
    caf::anon_send(governor, place_request{{}, place_wish{{}, "one", agent, call, 10, "m"}, who});
    actors.run_all();
  }
  void leave(const place_holder_actor& who, std::uint64_t call,
             std::optional<model::trouble> t = {}) {
    caf::anon_send(governor, place_release{{}, "one", call, call_ended{10, std::move(t)}, who});
    actors.run_all();
  }
  governor_status status() {
    const auto answer = actors.ask_now<governors_reply>(governor, governors_query{});
    REQUIRE(answer.ok());
    REQUIRE(answer.value().providers.size() == 1);
    return answer.value().providers.front();
  }
};

model::trouble away() {
  model::trouble t;
  t.kind = model::trouble_kind::unavailable;
  t.what = "connection refused";
  return t;
}

} // namespace

TEST_CASE("governor: no more calls at once than the provider may have", "[governor]") {
  fixture f;
  const auto a = f.new_holder();
  for (std::uint64_t call = 1; call <= 3; ++call)
    f.ask(a, call);
  CHECK(f.heard->size() == 2);
  CHECK(f.status().in_use == 2);
  CHECK(f.status().waiting == 1);
  f.leave(a, 1);
  CHECK(f.heard->size() == 3);
  CHECK(f.heard->back().call == 3);
}

TEST_CASE("governor: places end with their holder", "[governor]") {
  fixture f;
  const auto gone = f.new_holder();
  const auto other = f.new_holder();
  f.ask(gone, 1);
  f.ask(gone, 2);
  f.ask(gone, 3);
  f.ask(other, 1);
  caf::anon_send_exit(gone, caf::exit_reason::kill);
  f.actors.run_all();
  CHECK(f.status().in_use == 1);
  CHECK(f.status().waiting == 0);
}

TEST_CASE("case 54 llm-429-500-storm: the breaker opens, one tries, and it closes", "[governor]") {
  fixture f;
  const auto a = f.new_holder();
  std::uint64_t call = 0;
  for (int i = 0; i < model::breaker_failures; ++i) {
    f.ask(a, ++call);
    f.leave(a, call, away());
  }
  CHECK(f.status().breaker == model::breaker_state::open);
  f.ask(a, ++call);
  REQUIRE(f.heard->back().why.has_value());
  CHECK(f.heard->back().why->kind == model::trouble_kind::unavailable);
  f.actors.advance(model::breaker_wait + 1s);
  f.ask(a, ++call);
  CHECK_FALSE(f.heard->back().why.has_value());
  f.leave(a, call);
  CHECK(f.status().breaker == model::breaker_state::closed);
}

TEST_CASE(
    "governor: an unknown provider is said so; a removed one serves the runs that began with it",
    "[governor]") {
  fixture f;
  const auto a = f.new_holder();
  caf::anon_send(f.governor, place_request{{}, place_wish{{}, "nobody", "k/a", 1, 10, "m"}, a});
  f.actors.run_all();
  REQUIRE(f.heard->size() == 1);
  // Not for good: the next attempt reads the configuration of its time.
  CHECK(f.heard->back().why->kind == model::trouble_kind::unavailable);
  for (std::uint64_t call = 2; call <= 4; ++call)
    f.ask(a, call); // two places, and one waits
  REQUIRE(f.heard->size() == 3);
  auto next = std::make_shared<config::configuration>(*f.configuration);
  next->providers.clear();
  caf::anon_send(f.governor, reload_order{{}, next});
  f.actors.run_all();
  CHECK(f.heard->size() == 3); // nobody is sent away
  f.leave(a, 2);
  REQUIRE(f.heard->size() == 4);
  CHECK(f.heard->back().call == 4);
  CHECK_FALSE(f.heard->back().why.has_value());
  // A run between two calls comes back.
  f.leave(a, 3);
  f.ask(a, 5);
  REQUIRE(f.heard->size() == 5);
  CHECK_FALSE(f.heard->back().why.has_value());
  CHECK(f.status().in_use == 2);
  f.leave(a, 4);
  f.leave(a, 5);
  CHECK(f.actors.ask_now<governors_reply>(f.governor, governors_query{}).value().providers.empty());
}

TEST_CASE("fault points: places at providers come late, or not, and none is lost", "[governor]") {
  fixture f;
  const faults::isolation of_this_test;
  const auto arm = [](const char* point, faults::action what, milliseconds delay = 0ms) {
    REQUIRE(faults::arm({{point, what, 1, 1.0, delay}}, 1));
  };
  const auto a = f.new_holder();
  SECTION("a wish that fails is refused as the provider's own trouble") {
    arm("governor.place", faults::action::error);
    f.ask(a, 1);
    REQUIRE(f.heard->size() == 1);
    REQUIRE(f.heard->front().why);
    CHECK(f.heard->front().why->kind == model::trouble_kind::unavailable);
    CHECK_THAT(f.heard->front().why->what, Catch::Matchers::Contains("governor.place"));
    CHECK(f.status().in_use == 0);
  }
  SECTION("late wish, late answer") {
    arm(GENERATE("governor.place", "governor.answer"), faults::action::delay, 5s);
    f.ask(a, 1);
    f.actors.advance(4s);
    CHECK(f.heard->empty());
    f.actors.advance(2s);
    REQUIRE(f.heard->size() == 1);
    CHECK_FALSE(f.heard->front().why);
    CHECK(f.status().in_use == 1);
  }
  SECTION("a late answer to a run that is gone keeps no place") {
    arm("governor.answer", faults::action::delay, 5s);
    f.ask(a, 1);
    f.actors.kill(a);
    f.actors.advance(6s);
    CHECK(f.status().in_use == 0);
  }
  SECTION("a place that comes back late is handed on then") {
    for (std::uint64_t call = 1; call <= 3; ++call)
      f.ask(a, call);
    arm("governor.release", faults::action::delay, 5s);
    f.leave(a, 1);
    CHECK(f.heard->size() == 2);
    f.actors.advance(6s);
    CHECK(f.heard->size() == 3);
    CHECK(f.status().in_use == 2);
  }
  SECTION("a crash is the governor's own") {
    arm(GENERATE("governor.place", "governor.answer", "governor.release"), faults::action::crash);
    f.ask(a, 1);
    f.leave(a, 1);
    CHECK(f.actors.ended(f.governor));
  }
}

} // namespace boyd::governor_test
