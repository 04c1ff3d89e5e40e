#include "agreement.hpp"
#include "harness.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <csignal>

namespace boyd::limits_test {

using namespace boyd::test;

namespace {

constexpr std::size_t permits = 8;
constexpr int most_threads = 40;

/// Commands that are nothing but `sleep`, so that they can be counted by name.
test_settings sleepers(std::size_t count, const std::string& script) {
  test_settings t;
  t.node = "max_concurrent: 8";
  for (std::size_t i = 0; i < count; ++i)
    t.agents.push_back({"sleeper-" + std::to_string(100 + i), script, "timeout: 15m"});
  return t;
}

/// The threads of a node with eight runs at work and `count - 8` that wait for a permit.
int threads_with(std::size_t count) {
  const site s(sleepers(count, "say began; exec sleep 600"));
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  auto cycle = s.start_cycle();
  REQUIRE(eventually([&] {
    return s.said("began") == permits && descendants_named(node.pid(), "sleep") == permits;
  }));
  const auto status = s.status();
  CHECK(status.at("queue").at("running") == permits);
  CHECK(status.at("queue").at("pending") == count - permits);
  CHECK(status.at("permits").at("in_use") == permits);
  return threads_of(node.pid());
}

} // namespace

TEST_CASE("line 5: 64 sleeping agents never exceed the eight permits", "[acceptance]") {
  constexpr std::size_t agents = 64;
  const site s(sleepers(agents, "say began; exec sleep 0.3"));
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  auto cycle = s.start_cycle();
  std::size_t most = 0;
  std::size_t samples = 0;
  int threads = 0;
  std::string id;
  REQUIRE(eventually([&] {
    most = std::max(most, descendants_named(node.pid(), "sleep"));
    threads = std::max(threads, threads_of(node.pid()));
    if (++samples % 25 != 0 || s.said("began") < agents)
      return false;
    return s.status().at("queue").at("done") == agents;
  }));
  INFO(samples << " samples, at most " << most << " processes and " << threads << " threads");
  CHECK(samples > 20);
  CHECK(most <= permits);
  CHECK(most >= 2);
  CHECK(threads < most_threads);
  const auto status = s.status();
  CHECK(status.at("permits").at("limit") == permits);
  CHECK(status.at("permits").at("peak") == permits);
  const auto ended = cycle.finish();
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.json()["succeeded"] == agents);
  CHECK(s.said("began") == agents);
}

TEST_CASE("line 5: the number of threads does not depend on how many runs wait", "[acceptance]") {
  const int few = threads_with(permits);
  const int many = threads_with(permits + 64);
  CHECK(few > 0);
  CHECK(many == few);
  CHECK(many < most_threads);
}

} // namespace boyd::limits_test
