#include "actors/node/watchdog.hpp"
#include "support/pch.hpp"

namespace boyd::watchdog_test {

using namespace boyd;

namespace {

constexpr steady_time t0{milliseconds{1'000'000}};

/// A report of a tree in which everybody answers.
pulse_report well(std::uint64_t round) {
  pulse_report r;
  r.round = round;
  return r;
}

pulse_report with_silent(std::uint64_t round, silent_part part) {
  auto r = well(round);
  r.silent.push_back(std::move(part));
  return r;
}

} // namespace

TEST_CASE("case 10 stuck-actor: who misses four pings in a row ends the process", "[watchdog]") {
  watchdog w(limits::heartbeat);
  auto now = t0;
  std::uint64_t round = 0;
  for (int missed = 1; missed < limits::stuck_pings; ++missed) {
    const auto v = w.look(with_silent(++round, {"planner", missed, 0ms}), now += limits::heartbeat);
    CHECK(v.stuck.empty());
    CHECK(v.progress); // the scheduler and the store do answer
  }
  const auto v =
      w.look(with_silent(++round, {"planner", limits::stuck_pings, 0ms}), now += limits::heartbeat);
  CHECK(v.stuck.find("planner (4 unanswered pings") == 0);
}

TEST_CASE("case 10 stuck-actor: a worker that does not come back ends the process, too",
          "[watchdog]") {
  watchdog w(limits::heartbeat);
  CHECK(w.look(with_silent(1, {"git_committer", 0, limits::stuck_worker - 1s}), t0).stuck.empty());
  const auto v =
      w.look(with_silent(2, {"git_committer", 0, limits::stuck_worker}), t0 + limits::heartbeat);
  CHECK(v.stuck.find("git_committer (its worker") == 0);
}

TEST_CASE("case 10 stuck-actor: a scheduler that stands still ends the process", "[watchdog]") {
  watchdog w(limits::heartbeat);
  auto now = t0;
  CHECK(w.look(well(7), now).progress);
  int looks = 0;
  watchdog_verdict v;
  while (v.stuck.empty() && looks < 100) {
    v = w.look(well(7), now += limits::heartbeat);
    ++looks;
    CHECK(v.progress == (looks <= 2)); // the service manager is not told lies meanwhile
  }
  CHECK(looks == limits::stuck_looks);
  CHECK(v.stuck.find("the scheduler") == 0);
}

TEST_CASE("the watchdog is fed only when the store answers", "[watchdog]") {
  watchdog w(limits::heartbeat);
  CHECK(w.look(well(1), t0).progress);
  CHECK_FALSE(w.look(with_silent(2, {"store", 1, 0ms}), t0 + 10s).progress);
  CHECK_FALSE(w.look(with_silent(3, {"store", 0, limits::worker_patience}), t0 + 20s).progress);
  CHECK(w.look(well(4), t0 + 30s).progress);
}

TEST_CASE("a process that was stopped for an hour is not stuck", "[watchdog]") {
  watchdog w(limits::heartbeat);
  CHECK(w.look(well(1), t0).stuck.empty());
  const auto v = w.look(well(1), t0 + std::chrono::hours{1});
  CHECK(v.stuck.empty());
  CHECK(v.progress);
  CHECK(w.look(well(2), t0 + std::chrono::hours{1} + 10s).progress);
}

TEST_CASE("looking more often than the heart beats is no fault", "[watchdog]") {
  watchdog w(limits::heartbeat);
  auto now = t0;
  for (std::uint64_t round = 1; round < 50; ++round)
    for (int look = 0; look < 10; ++look) {
      const auto v = w.look(well(round), now += 1s);
      REQUIRE(v.progress);
      REQUIRE(v.stuck.empty());
    }
}

} // namespace boyd::watchdog_test
