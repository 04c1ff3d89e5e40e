#include "agreement.hpp"
#include "harness.hpp"
#include "main_job.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"
#include "support/telling.hpp"

#include <csignal>
#include <set>

namespace boyd::shared_store_test {

using namespace boyd::test;

TEST_CASE("PostgreSQL: the main job does the same", "[acceptance]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const site s(briefing_settings(server->make_database()));
  check_three_cycles(s);
}

TEST_CASE("PostgreSQL: two nodes on one database never run one dispatch twice", "[acceptance]") {
  constexpr std::size_t enough = 30;
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  test_settings t;
  t.node = "max_concurrent: 8, store: \"" + server->make_database() + "\"";
  t.kernel = "schedule: \"@every 1s\"";
  for (const auto& id : {"one", "two", "three", "four", "five"})
    t.agents.push_back({id, "say began; echo done", ""});
  const site a(t);
  const site b(t, a);
  node_process first(a.home(), a.log_path());
  node_process second(b.home(), b.log_path());
  first.wait_ready();
  second.wait_ready();
  REQUIRE(eventually([&] { return a.said("began") >= enough; }));
  CHECK(a.status().at("nodes").size() == 2);
  for (auto* node : {&first, &second}) {
    node->signal(SIGTERM);
    const int code = node->wait_end();
    INFO(node->log());
    CHECK(code == 0);
  }
  std::set<std::string> dispatches;
  std::set<std::string> work;
  for (const auto& l : a.ledger()) {
    INFO(l.cycle << " " << l.agent);
    CHECK(promised(dispatches.insert(l.dispatch).second, l.dispatch + " ran twice"));
    CHECK(promised(work.insert(l.cycle + " " + l.agent).second,
                   l.agent + " ran twice in cycle " + l.cycle));
  }
  for (const auto& row : a.dispatches()) {
    INFO(row.dump());
    CHECK(row.at("attempt").get<int>() <= 1);
    CHECK(row.at("rescues") == 0);
  }
}

} // namespace boyd::shared_store_test
