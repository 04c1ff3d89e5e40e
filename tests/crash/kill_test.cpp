#include "crash/campaign.hpp"
#include "support/pch.hpp"

#include <csignal>
#include <filesystem>

namespace boyd::kill_test {

using namespace boyd::crash;
using namespace std::chrono_literals;

namespace {

/// A resumed cycle comes before the new one: more calls than one cycle makes.
constexpr std::uint64_t calls_percent = 140;
constexpr std::uint64_t settle_every = 12;
constexpr std::uint64_t pause_every = 7;
/// What `all` counts to at most: far beyond the calls of any cycle.
constexpr std::uint64_t most_calls = 5000;

/// `boyd pause` or `resume` under a kill: what it acknowledged must hold.
void pause_or_resume(proving_ground& ground, std::uint64_t point) {
  constexpr std::uint64_t calls_of_a_pause = 40;
  const bool pause = point % 2 == 0;
  const fault f{.what = action::kill, .at = ground.random(calls_of_a_pause)};
  const std::vector<std::string> args =
      pause ? std::vector<std::string>{"pause", "--agent", "script", "--reason", "a test"}
            : std::vector<std::string>{"resume", "--agent", "script"};
  const auto ended = ground.run(args, f);
  ground.ledger().heard_pause("script", pause, ended.code == 0);
}

/// Each point on the home that the one before it left: what is killed is also the recovery from
/// the last kill (case 44).
void kill_along(proving_ground& ground, const effort& e) {
  ground.begin_anew();
  const auto calls = ground.calls_of(kind::all) * calls_percent / 100;
  tally points(e);
  for (std::uint64_t round = 1; !points.enough(); ++round) {
    const fault f{.what = round % 2 == 0 ? action::kill : action::kill_group,
                  .at = ground.random(calls)};
    const auto ended = ground.cycle(f);
    if (ground.faults().struck()) {
      points.one();
      CHECK(ended.code == killed);
    }
    ground.check(about(e, points.done(), f));
    if (round % pause_every == 0)
      pause_or_resume(ground, round / pause_every);
    if (round % settle_every == 0)
      ground.settle(about(e, points.done(), f));
    ground.renew_sometimes(round, about(e, points.done(), f));
  }
  ground.settle("the end");
  ground.check_nothing_lives("the end");
  points.report("kill points (cycle and recovery)", ground);
  CHECK(points.done() > 0);
}

/// Every call of a cycle, each on a fresh copy of the same home, and the cycle after it.
void kill_each(proving_ground& ground, const effort& e) {
  ground.begin_anew();
  ground.keep();
  tally points({.points = most_calls, .seed = e.seed});
  for (std::uint64_t call = 1; call <= most_calls; ++call) {
    ground.restore();
    const fault f{.what = action::kill, .at = call};
    ground.cycle(f);
    if (!ground.faults().struck())
      break;
    points.one();
    ground.check(about(e, points.done(), f));
    ground.settle(about(e, points.done(), f));
    ground.check_nothing_lives(about(e, points.done(), f));
  }
  points.report("kill points, every call of a cycle", ground);
  CHECK(points.done() < most_calls);
}

} // namespace

TEST_CASE("case 17 crash-after-effect, 32 kill-every-io and 44 fault-during-recovery: killed in "
          "cycles and in recoveries",
          "[crash]") {
  const auto e = effort_of(2000, 22s);
  proving_ground ground;
  ground.seed(e.seed);
  if (e.all)
    kill_each(ground, e);
  else
    kill_along(ground, e);
}

TEST_CASE("case 32 kill-every-io: killed while a home is made", "[crash]") {
  const auto e = effort_of(40, 5s);
  proving_ground ground;
  ground.seed(e.seed);
  ground.begin_anew();
  std::filesystem::remove_all(ground.home());
  ground.run({"init", "--no-input"}, {});
  const auto calls_of_init = ground.faults().calls();
  REQUIRE(calls_of_init > 0);
  tally points(e);
  while (!points.enough()) {
    std::filesystem::remove_all(ground.home());
    const fault f{.what = action::kill,
                  .at = e.all ? points.done() + 1 : ground.random(calls_of_init)};
    ground.run({"init", "--no-input"}, f);
    if (e.all && !ground.faults().struck())
      break;
    if (ground.faults().struck())
      points.one();
    const auto again = ground.run({"init", "--no-input"}, {});
    const auto first = ground.run({"cycle", "--json"}, {});
    INFO(about(e, points.done(), f) << "\n" << again.err << first.err << first.out);
    REQUIRE(again.code == 0);
    REQUIRE(first.code == 0);
  }
  points.report("kill points of init", ground);
}

TEST_CASE("case 14 spawner-thread-ends: no agent outlives a killed node", "[crash]") {
  proving_ground ground;
  ground.begin_anew();
  const auto calls = ground.calls_of(kind::all);
  ground.cycle({.what = action::kill, .at = calls / 3});
  ground.check_nothing_lives("killed in mid-cycle");
}

} // namespace boyd::kill_test
