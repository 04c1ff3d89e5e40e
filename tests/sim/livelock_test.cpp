#include "support/pch.hpp"
#include "tests/sim/fixture.hpp"
#include "tests/sim/lab/world.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

namespace boyd::livelock_test {

using namespace boyd;
using namespace boyd::sim;

namespace {

struct talker_state {
  static inline const char* name = "talker";
};

using talker = caf::stateful_actor<talker_state>;

/// Answers every word with the same word, at once.
caf::behavior talk(talker* self) {
  return {
      [self](const stop_order& m) { self->send(self, m); },
  };
}

config::configuration one_agent() {
  return half_hourly({"a"}, "work");
}

} // namespace

TEST_CASE("an actor that answers itself without an end fails its seed and is named") {
  const quiet log;
  for (const int machines : {1, 2}) {
    world_options options;
    options.machines = machines;
    world w(1, one_agent(), {}, options);
    w.boot();
    w.calm(45min);
    REQUIRE(w.violations().empty());
    const auto before = w.messages();
    caf::anon_send(w.system().own(w.system().system().spawn(talk)), stop_order{});
    w.calm(1h);
    w.settle();
    INFO(machines << " machines");
    INFO(joined(w.violations()));
    REQUIRE(w.violations().size() == 1);
    const auto& said = w.violations().front();
    CHECK(said.find("node-a handled") != std::string::npos);
    CHECK(said.find("talker") != std::string::npos);
    CHECK(said.find("boyd.stop_order") != std::string::npos);
    CHECK(w.elapsed() < 46min);
    CHECK(w.messages() - before < 2 * machine::most_at_once + 10'000);
  }
}

} // namespace boyd::livelock_test
