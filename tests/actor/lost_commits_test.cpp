#include "actors/node/root.hpp"
#include "node_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace boyd::lost_commits_test {

using namespace boyd;
using boyd::test::simulated_node;
using nlohmann::json;

namespace {

struct cycling_node : simulated_node {
  root_actor root;

  cycling_node() {
    context->ports.zones = adapters::make_time_zones();
    context->ports.listen = [](const wake_function&) { return std::unique_ptr<wakeup_source>(); };
    context->scheduled = false;
    root = actors.own(spawn_root(actors.system(), context, configuration));
    caf::anon_send(root, start_claiming{});
    actors.advance(1s);
  }

  /// Makes a cycle; its id.
  std::string cycle() {
    api_request begin;
    begin.method = "POST";
    begin.path = "/api/v1/cycles";
    auto begun = actors.ask<api_response>(root, begin);
    actors.advance(1min);
    REQUIRE(begun.ok());
    return json::parse(begun.value().body).at("cycle_id").get<std::string>();
  }

  /// The commits of cycles, oldest first, and whether each was made late.
  std::vector<std::pair<std::string, bool>> commits() {
    std::vector<std::pair<std::string, bool>> all;
    for (const auto& c : repositories->commits(kernel_home))
      if (c.info.subject.find("cycle ") != std::string::npos)
        all.emplace_back(c.info.subject, c.message.find("Boyd-Late: ") != std::string::npos);
    return all;
  }
};

} // namespace

TEST_CASE("commits of cycles that no branch has any more are made up for, in their order",
          "[git_committer]") {
  cycling_node n;
  const auto first = n.cycle();
  const auto second = n.cycle();
  auto wanted = n.commits();
  REQUIRE(wanted.size() == 4);
  CHECK(std::ranges::none_of(wanted, [](const auto& c) { return c.second; }));
  // As `git rebase --abort` puts a branch back to where it was before a commit.
  n.repositories->take_back(simulated_node::kernel_home, 2);
  const auto third = n.cycle();
  wanted[2].second = wanted[3].second = true;
  wanted.emplace_back("pre-cycle " + third, true);
  wanted.emplace_back("cycle " + third + wanted[3].first.substr(wanted[3].first.rfind(": ")), true);
  CHECK(n.commits() == wanted);
  const auto fourth = n.cycle();
  CHECK(n.commits().size() == 8);
  CHECK_FALSE(n.commits().back().second);
  CHECK(n.commits().back().first.starts_with("cycle " + fourth + ": "));
}

} // namespace boyd::lost_commits_test
