#include "boyd/queue/dispatch_json.hpp"
#include "harness.hpp"
#include "support/telling.hpp"

#include <algorithm>

namespace boyd::faults_test {

using namespace boyd;
using namespace boyd::test;

namespace {

std::unique_ptr<store_world> any_world() {
  return make_world(GENERATE(from_range(store_kinds())));
}

/// `count` dispatches of agents with names from `prefix` on, ids from `first` on, one cycle.
void enqueue_many(dispatch_store& s, int first, int count, const std::string& prefix) {
  std::vector<dispatch_spec> specs;
  for (int i = 0; i < count; ++i)
    specs.push_back(spec(first + i, prefix + std::to_string(i), 10, prefix));
  enqueue(s, std::move(specs));
}

std::vector<claimed_dispatch> claim_all(dispatch_store& s, const std::string& node,
                                        std::size_t count, milliseconds lease) {
  std::vector<claimed_dispatch> all;
  while (all.size() < count) {
    auto some = claim(s, node, std::min<std::size_t>(count - all.size(), 500), "", lease);
    if (some.empty())
      throw std::runtime_error("only " + std::to_string(all.size()) + " were there to claim");
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<settle_result> settle_all(dispatch_store& s, const std::string& node,
                                      const std::vector<claimed_dispatch>& all,
                                      const std::string& summary) {
  std::vector<settlement> ends;
  for (const auto& c : all) {
    run_outcome o;
    o.execution = execution_verdict::succeeded;
    o.summary = summary;
    ends.push_back({c.row.dispatch_id, c.row.fence, settle_to::done, 0ms, o});
  }
  return ask(s, store::settle{node, std::move(ends)});
}

std::size_t count_of(const std::vector<settle_result>& results, settle_result which) {
  return static_cast<std::size_t>(std::count(results.begin(), results.end(), which));
}

} // namespace

TEST_CASE("case 16 stale-settle: who slept beyond the lease settles nothing, early or late") {
  const auto w = any_world();
  auto& s = w->store();
  constexpr std::size_t jobs = 1000;
  enqueue_many(s, 1, int{jobs}, "a");
  const auto slept = claim_all(s, "sleeper", jobs, w->span());
  std::size_t back = 0;
  REQUIRE(w->after_span([&] {
    for (std::size_t some = 1; some > 0; back += some)
      some = ask(s, store::rescue_expired{}).returned.size();
    return back == jobs;
  }));
  // Nobody runs them: the sleeper's word counts no more than later.
  REQUIRE(promised(count_of(settle_all(s, "sleeper", slept, "stale"), settle_result::stale) == jobs,
                   "a stale result was accepted"));
  const auto taken = claim_all(s, "other", jobs, 1h);
  REQUIRE(promised(count_of(settle_all(s, "sleeper", slept, "stale"), settle_result::stale) == jobs,
                   "a stale result was accepted"));
  REQUIRE(count_of(settle_all(s, "other", taken, "good"), settle_result::accepted) == jobs);
  REQUIRE(promised(count_of(settle_all(s, "sleeper", slept, "stale"), settle_result::stale) == jobs,
                   "a stale result was accepted"));
  REQUIRE(ask(s, store::count_by_status{}) ==
          store::count_by_status::reply{{dispatch_status::done, jobs}});
  const auto kept = row(s, slept.front().row.dispatch_id);
  REQUIRE(kept.outcome.summary == "good");
  REQUIRE(kept.fence > slept.front().row.fence);
  // What the sleeper asks for by key is there already.
  store::enqueue_cycle again{"k", "a", {}, {}};
  for (std::size_t i = 0; i < jobs; ++i)
    again.specs.push_back(spec(9000 + static_cast<int>(i), "a" + std::to_string(i), 10, "a"));
  REQUIRE(promised(ask(s, again).inserted == 0, "a repeated enqueue made other rows"));
}

TEST_CASE("case 17 crash-after-effect: a settlement that is told twice happens once") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue_many(s, 1, 3, "a");
  const auto mine = claim_all(s, "n1", 3, 1h);
  const settlement done{mine[0].row.dispatch_id, mine[0].row.fence, settle_to::done, 0ms, {}};
  const settlement retry{mine[1].row.dispatch_id, mine[1].row.fence, settle_to::retry, 0ms, {}};
  const settlement release{mine[2].row.dispatch_id, mine[2].row.fence, settle_to::release, 0ms, {}};
  const store::settle op{"n1", {done, retry, release}};
  REQUIRE(count_of(ask(s, op), settle_result::accepted) == 3);
  const auto rows = [&] {
    std::string all;
    for (const auto& c : mine)
      all += queue::dispatch_to_json(row(s, c.row.dispatch_id), true) + "\n";
    return all;
  };
  const auto before = rows();
  // The node died before it heard the answer, and its spool says it again.
  REQUIRE(count_of(ask(s, op), settle_result::already_settled) == 3);
  REQUIRE(rows() == before);
  REQUIRE(ask(s, store::count_by_status{}) ==
          store::count_by_status::reply{{dispatch_status::pending, 2}, {dispatch_status::done, 1}});
}

TEST_CASE("case 27 rescue-page-full: ten thousand long jobs do not hide the one that is stuck") {
  const auto w = any_world();
  auto& s = w->store();
  constexpr int long_jobs = 10'000;
  constexpr int batch = 1000;
  for (int i = 0; i < long_jobs; i += batch)
    enqueue_many(s, i + 1, batch, "long" + std::to_string(i) + "-");
  claim_all(s, "n1", std::size_t{long_jobs}, 24h);
  enqueue_many(s, long_jobs + 1, 1, "stuck");
  const auto stuck = claim_all(s, "n2", 1, w->span());
  // A page of one must be enough: what is not expired takes no place in it.
  store::rescue_expired op;
  op.limit = 1;
  REQUIRE(w->after_span(
      [&] { return ask(s, op).returned == std::vector<std::string>{stuck[0].row.dispatch_id}; }));
  REQUIRE(ask(s, op).returned.empty());
  REQUIRE(ask(s, store::count_by_status{}).at(dispatch_status::running) == long_jobs);
}

} // namespace boyd::faults_test
