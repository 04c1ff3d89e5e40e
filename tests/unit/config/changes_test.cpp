#include "boyd/config/reload.hpp"
#include "support/pch.hpp"

namespace boyd::changes_test {

using namespace boyd;
using lines = std::vector<std::string>;

namespace {

config::configuration two_agents() {
  config::configuration c;
  config::kernel k;
  k.agents.resize(2);
  k.agents[0].agent_id = "a";
  k.agents[1].agent_id = "b";
  c.kernels.push_back(k);
  return c;
}

} // namespace

TEST_CASE("a reload without a change says nothing") {
  CHECK(config::changes(two_agents(), two_agents()).empty());
}

TEST_CASE("a reload names what was added, removed and changed") {
  const auto before = two_agents();
  auto now = before;
  now.kernels[0].agents[0].timeout = 5s;
  now.kernels[0].agents[0].prompt = "other";
  now.kernels[0].agents[1].agent_id = "c";
  now.kernels[0].when.expression = "@hourly";
  now.node_settings.max_concurrent = 2;
  config::kernel more;
  more.kernel_id = "more";
  now.kernels.push_back(more);
  config::provider p;
  p.provider_id = "p";
  now.providers.push_back(p);
  CHECK(config::changes(before, now) ==
        lines{"node changed: max_concurrent", "provider p added",
              "kernel default changed: schedule", "agent default/a changed: prompt, timeout",
              "agent default/c added", "agent default/b removed", "kernel more added"});
  auto later = now;
  later.providers[0].model = "m";
  later.kernels.pop_back();
  CHECK(config::changes(now, later) == lines{"provider p changed", "kernel more removed"});
}

} // namespace boyd::changes_test
