#include "clock_hand.hpp"
#include "knobs.hpp"
#include "member.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"
#include "support/telling.hpp"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <random>

namespace boyd::clock_faults_test {

using namespace boyd::test;
using namespace std::chrono_literals;

namespace {

constexpr auto lease = 3s;
constexpr auto job = 10 * lease;

/// A node whose wall clock can be set while it runs.
class clocked_node {
 public:
  explicit clocked_node(const site& s) : node_(s.home(), s.log_path(), hand_.environment()) {}

  node_process& process() { return node_; }
  clock_hand& hand() { return hand_; }

 private:
  clock_hand hand_;
  node_process node_;
};

/// Jobs of ten leases, all to run at once, so many of them on one node.
test_settings long_jobs(std::size_t n, std::size_t on_a_node, const std::string& more = {}) {
  test_settings t;
  t.node = fmt::format("max_concurrent: {}, {}", on_a_node, lease_settings(lease.count())) + more;
  for (std::size_t i = 0; i < n; ++i)
    t.agents.push_back(
        {fmt::format("job-{}", i),
         fmt::format("say began-$BOYD_FENCE; sleep {}; say ended; echo done", job.count()), ""});
  return t;
}

/// True, an hour behind, an hour ahead, for some moments each, until `done`. How often one was set.
int set_clocks_until(const std::function<bool()>& done, std::vector<clock_hand*> hands,
                     std::mt19937_64& random) {
  constexpr auto step = 1h;
  int sets = 0;
  CHECK(eventually([&] {
    for (auto* hand : hands)
      // A clock stays as it is for some looks: renewals and sweeps are to happen within each time.
      if (random() % 20 == 0) {
        hand->set((static_cast<int>(random() % 3) - 1) * step);
        ++sets;
      }
    return done();
  }));
  for (auto* hand : hands)
    hand->set(0s);
  return sets;
}

/// What became of the last `n` jobs of a store, as its rows tell.
void check_undisturbed(const site& s, std::size_t n) {
  const auto rows = s.dispatches();
  REQUIRE(rows.size() >= n);
  for (std::size_t i = 0; i < n; ++i) {
    INFO(rows[i].dump());
    CHECK(rows[i].at("status") == "done");
    CHECK(promised(rows[i].at("rescues") == 0,
                   "no early rescue under clocks that are set: " + rows[i].dump()));
    // Not given up by its own node either, which may happen when a busy machine renews too late.
    CHECK(rows[i].at("fence") == 1);
  }
}

} // namespace

TEST_CASE("case 23 clock-step: under clocks set by an hour no run of ten leases is taken for lost",
          "[chaos]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  // On each of the two stores; a round is as many at once as a small machine can start.
  const auto jobs =
      static_cast<std::size_t>(std::max<std::int64_t>(2, knob("BOYD_CLOCK_JOBS", 80)));
  const auto at_once = std::min<std::size_t>(jobs / 2, 100);
  const auto rounds = (jobs / 2 + at_once - 1) / at_once;
  const auto on_server =
      long_jobs(at_once, (at_once + 1) / 2, ", store: \"" + server->make_database() + "\"");
  const site a(on_server);
  const site b(on_server, a);
  const site alone(long_jobs(at_once, at_once));
  clocked_node first(a);
  clocked_node second(b);
  clocked_node third(alone);
  const std::vector<clocked_node*> nodes{&first, &second, &third};
  for (auto* node : nodes)
    node->process().wait_ready();
  const auto seed = chaos_seed();
  INFO("BOYD_CHAOS_SEED=" << seed);
  std::mt19937_64 random(seed);
  int sets = 0;
  for (std::size_t round = 1; round <= rounds; ++round) {
    auto shared_cycle = a.start_cycle();
    auto own_cycle = alone.start_cycle();
    REQUIRE(eventually([&] {
      return a.said("began-1") == round * at_once && alone.said("began-1") == round * at_once;
    }));
    CHECK(descendants_named(second.process().pid(), "sleep") > 0);
    const auto ended = [&](const site& s) { return s.said("ended") == round * at_once; };
    sets += set_clocks_until([&] { return ended(a) && ended(alone); },
                             {&first.hand(), &second.hand(), &third.hand()}, random);
    for (auto* cycle : {&shared_cycle, &own_cycle}) {
      const auto r = cycle->finish();
      INFO(r.out << r.err);
      CHECK(r.code == 0);
    }
    check_undisturbed(a, at_once);
    check_undisturbed(alone, at_once);
  }
  // A node that merely runs what another one enqueued may have no use for the time of day.
  CHECK(first.hand().asked() > 0);
  CHECK(third.hand().asked() > 0);
  for (const auto* s : {&a, &alone})
    CHECK(s->said("began-1") == rounds * at_once);
  for (auto* node : nodes) {
    node->process().signal(SIGTERM);
    const int code = node->process().wait_end();
    INFO(node->process().log());
    CHECK(code == 0);
  }
  tell_figure(
      fmt::format("case 23: {} runs of {} s with a lease of {} s, clocks set {} times by up "
                  "to two hours: 0 rescued early",
                  2 * rounds * at_once, job.count(), lease.count(), sets));
}

} // namespace boyd::clock_faults_test
