#include "boyd/queue/transitions.hpp"
#include "integration/postgres/fixture.hpp"
#include "support/telling.hpp"

namespace boyd::failover_test {

using namespace boyd;
using namespace boyd::test;
using namespace boyd::test::postgres;

TEST_CASE("case 20 pg-immediate-restart: what was acknowledged stands, under its fence") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  auto s = opened(options_for(uri));
  REQUIRE(s->apply(cycles("c", 60)));
  const auto claimed = ask(*s, store::claim{"n1", "k", "a", 40, 1h});
  for (std::size_t i = 0; i < 20; ++i)
    REQUIRE(settle(*s, claimed[i]) == settle_result::accepted);
  shared_postgres()->stop_immediately();
  REQUIRE(s->apply({store::list_nodes{}}).error().code == errc::store_unavailable);
  shared_postgres()->start();
  REQUIRE(s->open());
  REQUIRE(ask(*s, store::count_by_status{}) ==
          store::count_by_status::reply{{dispatch_status::pending, 20},
                                        {dispatch_status::running, 20},
                                        {dispatch_status::done, 20}});
  for (std::size_t i = 0; i < 20; ++i)
    REQUIRE(settle(*s, claimed[i]) == settle_result::already_settled);
  for (std::size_t i = 20; i < 40; ++i)
    REQUIRE(settle(*s, claimed[i]) == settle_result::accepted);
  REQUIRE(s->concerns()->empty());
}

TEST_CASE("case 20 failover-loses-last-second: a done dispatch that is back is told of, and its "
          "repeat is the same dispatch") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  auto s = opened(options_for(uri));
  REQUIRE(s->apply(cycles("c", 1)));
  const auto first = ask(*s, store::claim{"n1", "k", "a", 1, 1h}).at(0);
  // What a standby has that did not get the last transaction.
  query(uri, "CREATE TABLE kept_running AS TABLE boyd.dispatch_running");
  REQUIRE(settle(*s, first) == settle_result::accepted);
  query(uri, "INSERT INTO boyd.dispatch_running OVERRIDING SYSTEM VALUE TABLE kept_running");
  query(uri, "DELETE FROM boyd.dispatch_results");
  query(uri, "DELETE FROM boyd.dispatch_counts");
  REQUIRE(s->open());
  const auto concerns = s->concerns();
  REQUIRE(concerns);
  REQUIRE(concerns->size() == 1);
  REQUIRE(concerns->front().find(first.row.dispatch_id) != std::string::npos);
  REQUIRE(ask(*s, store::take_back{"n1"}).returned ==
          std::vector<std::string>{first.row.dispatch_id});
  const auto second = ask(*s, store::claim{"n1", "k", "a", 1, 1h}).at(0);
  // The same id, cycle and agent are what effects are keyed by.
  REQUIRE(second.row.dispatch_id == first.row.dispatch_id);
  REQUIRE(second.row.cycle_id == first.row.cycle_id);
  REQUIRE(second.row.fence > first.row.fence);
  REQUIRE(settle(*s, first) == settle_result::stale);
  REQUIRE(settle(*s, second) == settle_result::accepted);
}

TEST_CASE("case 20 failover-loses-last-second: a dispatch that is gone altogether is told of") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  auto s = opened(options_for(uri));
  REQUIRE(s->apply(cycles("c", 1)));
  const auto gone = ask(*s, store::claim{"n1", "k", "a", 1, 1h}).at(0);
  REQUIRE(settle(*s, gone) == settle_result::accepted);
  // It was enqueued, claimed and settled in the second that the standby lacks.
  for (const auto* table : {"results", "requests", "counts"})
    query(uri, std::string{"DELETE FROM boyd.dispatch_"} + table);
  REQUIRE(s->open());
  const auto concerns = s->concerns();
  REQUIRE(concerns);
  REQUIRE(concerns->size() == 1);
  REQUIRE(concerns->front().find(gone.row.dispatch_id) != std::string::npos);
}

TEST_CASE("case 20 failover-loses-a-claim: of two nodes with one fence, only the one that the "
          "database knows ends the dispatch") {
  if (skipped())
    return;
  const auto uri = shared_postgres()->make_database();
  auto s = opened(options_for(uri));
  auto other = opened(options_for(uri));
  REQUIRE(s->apply(cycles("c", 3)));
  // What a standby has that got none of the claims.
  query(uri, "CREATE TABLE kept_waiting AS TABLE boyd.dispatch_waiting");
  const auto mine = ask(*s, store::claim{"n1", "k", "a", 3, 1h});
  REQUIRE(mine.size() == 3);
  REQUIRE(settle(*s, mine[0]) == settle_result::accepted);
  for (const auto* table : {"waiting", "running", "results", "counts"})
    query(uri, std::string{"DELETE FROM boyd.dispatch_"} + table);
  query(uri, "INSERT INTO boyd.dispatch_waiting TABLE kept_waiting");
  const auto theirs = ask(*other, store::claim{"n2", "k", "a", 3, 1h});
  REQUIRE(theirs.size() == 3);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    REQUIRE(theirs[i].row.dispatch_id == mine[i].row.dispatch_id);
    REQUIRE(theirs[i].row.fence == mine[i].row.fence);
  }
  REQUIRE(settle(*other, theirs[0]) == settle_result::accepted);
  REQUIRE(s->open());
  // That another node ended it since does not hide what was lost.
  const auto concerns = s->concerns();
  REQUIRE(concerns);
  REQUIRE(concerns->size() == 1);
  REQUIRE(concerns->front().find(mine[0].row.dispatch_id) != std::string::npos);
  REQUIRE(promised(settle(*s, mine[0]) == settle_result::stale, "a stale repeat was believed"));
  REQUIRE(promised(settle(*s, mine[1]) == settle_result::stale, "a stale result was accepted"));
  REQUIRE(ask(*s, store::renew_leases{"n1", {{mine[2].row.dispatch_id, mine[2].row.fence}}, 1h})
              .lost.size() == 1);
  for (const auto i : {std::size_t{1}, std::size_t{2}}) {
    REQUIRE(settle(*other, theirs[i]) == settle_result::accepted);
    REQUIRE(settle(*other, theirs[i]) == settle_result::already_settled);
    REQUIRE(promised(settle(*s, mine[i]) == settle_result::stale, "a stale repeat was believed"));
  }
}

} // namespace boyd::failover_test
