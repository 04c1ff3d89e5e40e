#include "actors/store/actor.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/limits.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"

using namespace boyd;
using boyd::test::simulated_node;

namespace {

struct fixture : simulated_node {
  store_actor store = actors.own(spawn_store(actors.system(), context));

  store_reply now(store::operation op) {
    auto answer = actors.ask_now<store_reply>(store, store_request{{}, {std::move(op)}});
    REQUIRE(answer.ok());
    return answer.value();
  }

  /// Rows that run here.
  std::vector<claimed_dispatch> running(std::size_t count) {
    store::enqueue_cycle op;
    op.kernel_id = "default";
    op.cycle_id = make_uuid_v7(actors.clock()->now(), *context->ports.random);
    for (std::size_t i = 0; i < count; ++i) {
      auto& spec = op.specs.emplace_back();
      spec.dispatch_id = make_uuid_v7(actors.clock()->now(), *context->ports.random);
      spec.kernel_id = op.kernel_id;
      spec.cycle_id = op.cycle_id;
      spec.agent_id = "agent-" + std::to_string(i);
    }
    now(op);
    store::claim all{.node_id = "n", .kernel_id = "default", .agent_id = {}, .limit = count};
    return std::get<store::claim::reply>(now(all).values.front());
  }
};

} // namespace

TEST_CASE("case 6 mailbox-flood: beyond the queue questions are refused, results never",
          "[store][actor]") {
  fixture f;
  constexpr std::size_t results = 100;
  constexpr std::size_t too_many = 500;
  const auto rows = f.running(results);
  REQUIRE(rows.size() == results);
  std::vector<test::asked<store_reply>> asked;
  for (std::size_t i = 0; i < limits::store_queue + too_many; ++i)
    asked.push_back(f.actors.ask<store_reply>(f.store, store_request{{}, {store::list_nodes{}}}));
  std::vector<test::asked<store_reply>> settled;
  for (const auto& c : rows)
    settled.push_back(f.actors.ask<store_reply>(
        f.store,
        store_request{
            {},
            {store::settle{"n", {{c.row.dispatch_id, c.row.fence, settle_to::done, 0ms, {}}}}}}));
  f.actors.run_all(1'000'000);
  std::size_t refused = 0;
  for (const auto& a : asked) {
    REQUIRE(a.answered());
    if (a.ok())
      continue;
    ++refused;
    CHECK(a.why().code == errc::overloaded);
    CHECK(a.why().next == "ask again in a second");
  }
  CHECK(refused > 0);
  for (const auto& a : settled) {
    REQUIRE(a.ok());
    CHECK(std::get<store::settle::reply>(a.value().values.front()).front() ==
          settle_result::accepted);
  }
  const auto counts =
      std::get<store::count_by_status::reply>(f.now(store::count_by_status{}).values.front());
  CHECK(counts == store::count_by_status::reply{{dispatch_status::done, results}});
}
