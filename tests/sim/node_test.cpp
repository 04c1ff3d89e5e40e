#include "support/pch.hpp"
#include "tests/sim/world.hpp"

#include <cstdlib>

using namespace boyd;
using namespace boyd::sim;

namespace {

/// Two agents on a half-hourly kernel: enough for queues, retries, overlaps and deadlines.
config::configuration two_agents() {
  config::configuration c;
  c.node_settings.max_concurrent = 2;
  config::kernel k;
  k.when.expression = "@every 30m";
  k.cycle_deadline = 20min;
  for (const char* id : {"alpha", "beta", "gamma"}) {
    config::agent a;
    a.agent_id = id;
    a.prompt = "{STATE}\n{RECENT_RESULTS}\n{TIME}";
    config::command_executor run;
    run.argv = {"agent"};
    a.run = run;
    a.timeout = 5min;
    k.agents.push_back(a);
  }
  c.kernels.push_back(k);
  return c;
}

std::size_t seeds_to_run() {
  const char* text = std::getenv("BOYD_SIM_SEEDS");
  return text == nullptr ? 3 : static_cast<std::size_t>(std::strtoul(text, nullptr, 10));
}

std::uint64_t first_seed() {
  const char* text = std::getenv("BOYD_SIM_FIRST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& l : lines)
    all += l + "\n";
  return all;
}

void live_through(world& w, milliseconds time) {
  w.boot();
  w.run(time);
  w.calm(2h);
  // Stop at a moment without a cycle: half an hour's rhythm leaves most of it idle.
  w.calm(25min);
}

} // namespace

TEST_CASE("a day without faults: every slot runs once and is recorded") {
  world w(1, two_agents(), {false, false, false, false, false, false});
  w.boot();
  w.calm(std::chrono::hours{24} + 25min);
  w.check_settled();
  INFO(joined(w.violations()));
  CHECK(w.violations().empty());
  CHECK(w.database().cycles().size() == 48);
  CHECK(w.processes().peak_running() <= 2);
  CHECK(w.shut_down());
}

TEST_CASE("virtual days with crashes and faults keep the invariants") {
  for (std::size_t i = 0; i < seeds_to_run(); ++i) {
    const auto seed = first_seed() + i;
    world w(seed, two_agents(), {});
    live_through(w, std::chrono::hours{24});
    w.check_settled();
    INFO("replay: BOYD_SIM_FIRST_SEED=" << seed << " BOYD_SIM_SEEDS=1 sim_tests");
    INFO(joined(w.violations()));
    CHECK(w.violations().empty());
    CHECK(w.database().cycles().size() > 20);
  }
}

TEST_CASE("the same seed gives the same run") {
  auto trace = [](std::uint64_t seed) {
    world w(seed, two_agents(), {});
    live_through(w, std::chrono::hours{6});
    return w.trace();
  };
  const auto first = trace(7);
  CHECK(trace(7) == first);
  CHECK(trace(8) != first);
}
