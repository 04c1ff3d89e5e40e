#include "crash/campaign.hpp"
#include "crash/loop_disk.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"

namespace boyd::power_cut_test {

using namespace boyd::crash;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t calls_percent = 140;
constexpr std::uint64_t settle_every = 10;

/// Cuts, each on what the one before it left. The first that goes with a disk that lies must be
/// found out, or the case proves nothing.
void cut_along(proving_ground& ground, loop_disk& disk, const effort& e, bool lies, tally& points) {
  ground.seed(e.seed);
  ground.begin_anew();
  const auto calls = ground.calls_of(kind::all) * calls_percent / 100;
  for (std::uint64_t round = 1; !points.enough(); ++round) {
    const fault f{.what = action::cut,
                  .at = ground.random(calls),
                  .cut_flags = round % 2 == 0 ? log_flush : no_log_flush,
                  .lies = lies,
                  .mount = disk.path()};
    ground.cycle(f);
    if (ground.faults().struck()) {
      points.one();
      disk.restart();
    }
    ground.check(about(e, points.done(), f));
    if (round % settle_every == 0)
      ground.settle(about(e, points.done(), f));
    ground.renew_sometimes(round, about(e, points.done(), f));
  }
  ground.settle("the end");
}

/// Every call of a cycle on the home as it is with both flags, each on a fresh copy of it, and the
/// cycle after it.
void cut_each(proving_ground& ground, loop_disk& disk, const effort& e, tally& points) {
  ground.keep();
  bool struck = true;
  for (std::uint64_t call = 1; struck && !points.enough(); ++call) {
    struck = false;
    for (const auto flags : {log_flush, no_log_flush}) {
      ground.restore();
      const fault f{.what = action::cut, .at = call, .cut_flags = flags, .mount = disk.path()};
      ground.cycle(f);
      if (ground.faults().struck()) {
        struck = true;
        disk.restart();
        points.one();
      }
      ground.check(about(e, points.done(), f));
      ground.settle(about(e, points.done(), f));
    }
  }
}

} // namespace

TEST_CASE("case 33 cut-every-io: the power fails at I/O calls of cycles and recoveries",
          "[crash]") {
  if (const auto reason = loop_disk::why_not(); !reason.empty())
    return boyd::test::tell_skipped("case 33, power cuts", reason);
  const auto e = effort_of(100, 13s);
  loop_disk disk;
  proving_ground ground(disk.path());
  tally points(e);
  if (e.all) {
    ground.begin_anew();
    cut_each(ground, disk, e, points);
    ground.begin_with_a_log(); // the recovery behind a kill
    cut_each(ground, disk, e, points);
  } else {
    cut_along(ground, disk, e, false, points);
  }
  points.report("power cuts (ext4, flags 1 and 2)", ground);
  CHECK(points.done() > 0);
}

TEST_CASE("case 33 cut-every-io: the ledger finds out a disk that lies about fsync", "[crash]") {
  if (const auto reason = loop_disk::why_not(); !reason.empty())
    return boyd::test::tell_skipped("case 33, a disk that lies", reason);
  constexpr std::uint64_t cuts = 50;
  const effort e{.points = cuts, .seed = effort_of(cuts, 0s).seed};
  loop_disk disk;
  proving_ground ground(disk.path());
  ground.expect_losses();
  tally points(e);
  CHECK_THROWS_AS(cut_along(ground, disk, e, true, points), broken);
  CHECK(points.done() > 0);
}

} // namespace boyd::power_cut_test
