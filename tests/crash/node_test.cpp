#include "crash/campaign.hpp"
#include "crash/loop_disk.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"

#include <csignal>
#include <functional>

namespace boyd::crash_node_test {

using namespace boyd::crash;
using namespace std::chrono_literals;

// A node whom people ask for cycles: its start, its scheduler, the renewal of its leases, its
// control socket and its end make calls that a cycle of its own does not.

namespace {

constexpr std::uint64_t cycles = 3;
constexpr std::uint64_t settle_every = 12;
/// On a slow machine the time can be up before a chosen call was reached at all.
constexpr std::uint64_t tries_for_one = 60;

/// How a node ended that has met the fault, or was told to stop.
boyd::test::finished asked_for_cycles(proving_ground& ground, const fault& f) {
  const auto node = ground.start({"node"}, f);
  if (node->wait_for_stderr("ready: node "))
    for (std::uint64_t i = 0; i < cycles && !ground.faults().struck(); ++i)
      ground.ask_cycle(f);
  node->signal(SIGTERM);
  auto ended = node->finish();
  ground.heard_node(ended, f);
  return ended;
}

/// Nodes under the faults that `next` draws for each round and call, each on what the one before it
/// left. `restored` brings back what the fault took. Returns the number of points.
std::uint64_t nodes_along(
    proving_ground& ground, const effort& e, const std::string& what,
    const std::function<fault(std::uint64_t round, std::uint64_t call)>& next,
    const std::function<void(const fault&, const boyd::test::finished&)>& ended_well,
    const std::function<void()>& restored = [] {}) {
  ground.seed(e.seed);
  ground.begin_anew();
  const auto calls = ground.calls_of(kind::all) * cycles;
  tally points(e);
  const auto go_on = [&](std::uint64_t round) {
    return !points.enough() || (points.done() == 0 && round <= tries_for_one);
  };
  for (std::uint64_t round = 1; go_on(round); ++round) {
    const auto f = next(round, ground.random(calls));
    const auto ended = asked_for_cycles(ground, f);
    const bool struck = ground.faults().struck();
    INFO(about(e, points.done(), f) << ", " << ground.faults().where() << "\n" << ended.err);
    if (struck) {
      points.one();
      ended_well(f, ended);
      restored();
    } else {
      CHECK(ended.code == 0);
    }
    ground.check(about(e, points.done(), f));
    if (round % settle_every == 0)
      ground.settle(about(e, points.done(), f));
    ground.renew_sometimes(round, about(e, points.done(), f));
  }
  ground.settle("the end");
  ground.check_nothing_lives("the end");
  points.report(what, ground);
  return points.done();
}

void is_killed(const fault&, const boyd::test::finished& ended) {
  CHECK(ended.code == killed);
}

/// With `all` some points at random: nobody can say which call of a node is its N-th.
effort effort_of_nodes(std::uint64_t points, std::chrono::seconds most) {
  auto e = effort_of(points, most);
  constexpr std::uint64_t points_of_all = 500;
  if (e.all)
    e.points = points_of_all;
  return e;
}

} // namespace

TEST_CASE("case 32 kill-every-io: a node is killed while people ask it for cycles", "[crash]") {
  proving_ground ground;
  const auto points = nodes_along(
      ground, effort_of_nodes(100, 12s), "kill points of a node",
      [](std::uint64_t round, std::uint64_t call) {
        return fault{.what = round % 2 == 0 ? action::kill : action::kill_group, .at = call};
      },
      is_killed);
  CHECK(points > 0);
}

TEST_CASE("case 33 cut-every-io: the power of a node fails while people ask it for cycles",
          "[crash]") {
  if (const auto reason = loop_disk::why_not(); !reason.empty())
    return boyd::test::tell_skipped("case 33, power cuts of a node", reason);
  loop_disk disk;
  proving_ground ground(disk.path());
  const auto points = nodes_along(
      ground, effort_of_nodes(50, 8s), "power cuts of a node (ext4, flags 1 and 2)",
      [&](std::uint64_t round, std::uint64_t call) {
        return fault{.what = action::cut,
                     .at = call,
                     .cut_flags = round % 2 == 0 ? log_flush : no_log_flush,
                     .mount = disk.path()};
      },
      is_killed, [&] { disk.restart(); });
  CHECK(points > 0);
}

TEST_CASE("case 35 enospc and 36 short-write: one call of a node fails while people ask it "
          "for cycles",
          "[crash]") {
  const std::vector<action> faults{action::eio, action::enospc, action::shorten};
  proving_ground ground;
  const auto points = nodes_along(
      ground, effort_of_nodes(60, 8s), "I/O calls of a node failed or shortened once",
      [&](std::uint64_t round, std::uint64_t call) {
        const auto what = faults[round % faults.size()];
        return fault{
            .what = what, .at = call, .kinds = what == action::shorten ? kind::write : kind::all};
      },
      [](const fault&, const boyd::test::finished& ended) {
        // At its start it may refuse; nothing else of it is allowed to end it.
        CHECK((ended.code == 0 || ended.err.find("ready: node ") == std::string::npos));
      });
  CHECK(points > 0);
}

} // namespace boyd::crash_node_test
