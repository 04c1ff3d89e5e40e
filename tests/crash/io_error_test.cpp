#include "crash/campaign.hpp"
#include "crash/loop_disk.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <functional>
#include <set>
#include <sys/wait.h>

namespace boyd::io_error_test {

using namespace boyd::crash;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t settle_every = 10;
/// So often a lasting fault strikes before it ends: the node has met it, and has tried again.
constexpr std::uint32_t strikes = 6;
constexpr auto longest_fault = 2s;

/// The documented exit codes; not a signal, not a hang.
bool is_exit_code(int code) {
  static const std::set<int> documented{0, 1, 3, 5};
  return documented.count(code) > 0;
}

bool has_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

/// One faulted cycle: what the program said and how it ended. Its ledger has heard it.
using faulted_cycle = std::function<boyd::test::finished(const fault&)>;

/// Whether a cycle was told to be whole: everything of it is on the disk.
bool is_acknowledged(const boyd::test::finished& ended) {
  const auto answer = ended.json();
  return answer.is_object() && answer.contains("dispatched") && answer.at("problems").empty();
}

/// A cycle with each of `faults` in turn at one call after the other, or at random ones. After each
/// the home is examined. How many cycles were acknowledged although a call of them had failed.
std::uint64_t fail_along(proving_ground& ground, const effort& e, fault pattern,
                         const std::vector<action>& faults, const std::string& what,
                         const faulted_cycle& run) {
  ground.begin_anew();
  const auto calls = ground.calls_of(pattern.kinds);
  const auto writes = ground.calls_of(kind::write);
  const auto kinds = pattern.kinds;
  ground.keep();
  tally points(e);
  std::uint64_t acknowledged = 0;
  for (std::uint64_t round = 0; !points.enough(); ++round) {
    if (e.all)
      ground.restore();
    pattern.what = faults[round % faults.size()];
    // Nothing but a write can be shortened: another call would go through and prove nothing.
    pattern.kinds = pattern.what == action::shorten ? kind::write : kinds;
    const auto most = pattern.what == action::shorten ? writes : calls;
    pattern.at = e.all ? round / faults.size() + 1 : ground.random(most);
    if (e.all && pattern.at > 2 * calls)
      break;
    const auto ended = run(pattern);
    // One beyond the cycle's last call has struck nothing.
    if (ground.faults().struck()) {
      points.one();
      acknowledged += is_acknowledged(ended) ? 1 : 0;
    }
    INFO(about(e, points.done(), pattern) << ", " << ground.faults().where() << "\n" << ended.err);
    CHECK(is_exit_code(ended.code));
    ground.check(about(e, points.done(), pattern));
    if (points.done() % settle_every == 0)
      ground.settle(about(e, points.done(), pattern));
    ground.renew_sometimes(round, about(e, points.done(), pattern));
  }
  ground.settle("the end");
  points.report(what, ground);
  CHECK(points.done() > 0);
  return acknowledged;
}

/// One call fails, each time another one.
void fail_once_along(proving_ground& ground, const effort& e, const std::vector<action>& faults,
                     std::uint32_t kinds, const std::string& what) {
  fault once;
  once.kinds = kinds;
  fail_along(ground, e, once, faults, what, [&](const fault& f) { return ground.cycle(f); });
}

/// A cycle whose calls from the N-th on fail, until the fault ends under the running program.
boyd::test::finished cycle_while_failing(proving_ground& ground, const fault& f) {
  const auto running = ground.start({"cycle", "--json"}, f);
  boyd::test::wait_until(
      [&] { return ground.faults().fired() >= strikes || has_ended(running->pid()); },
      longest_fault);
  ground.faults().end_fault();
  auto ended = running->finish();
  ground.heard_cycle(ended, f);
  return ended;
}

/// Every call from the N-th on fails for a while.
void fail_for_a_while_along(proving_ground& ground, const effort& e,
                            const std::vector<action>& faults, std::uint32_t kinds,
                            const std::string& what) {
  fault lasting;
  lasting.for_ever = true;
  lasting.kinds = kinds;
  fail_along(ground, e, lasting, faults, what,
             [&](const fault& f) { return cycle_while_failing(ground, f); });
}

} // namespace

TEST_CASE("case 34 eio-fsync-once: any one fsync of a cycle fails, and then the power", "[crash]") {
  // Without the power cut the page cache would show what the disk does not have.
  const auto reason = loop_disk::why_not();
  if (!reason.empty())
    boyd::test::tell_skipped("case 34, a power cut after each failed fsync", reason);
  const auto e = effort_of(150, 10s);
  const auto disk = reason.empty() ? std::make_unique<loop_disk>() : nullptr;
  proving_ground ground(disk ? disk->path() : std::string{});
  ground.seed(e.seed);
  std::uint64_t cuts = 0;
  const auto acknowledged = fail_along(ground, e, {.kinds = kind::sync}, {action::eio},
                                       "fsync calls failed once with EIO", [&](const fault& f) {
                                         auto ended = ground.cycle(f);
                                         if (disk) {
                                           disk->cut(++cuts % 2 == 0 ? log_flush : no_log_flush);
                                           disk->restart();
                                         }
                                         return ended;
                                       });
  boyd::test::tell_figure("case 34: " + std::to_string(cuts) +
                          " power cuts after a failed fsync; acknowledged after the error (written "
                          "anew): " +
                          std::to_string(acknowledged) + " cycles, 0 lost");
}

TEST_CASE("case 34 eio-read-once: any one read of a cycle fails", "[crash]") {
  const auto e = effort_of(100, 6s);
  proving_ground ground;
  ground.seed(e.seed);
  fail_once_along(ground, e, {action::eio}, kind::read, "reads failed once with EIO");
}

TEST_CASE("case 34 eio-read: a command that asks reads a file once more, and tells when that fails",
          "[crash]") {
  proving_ground ground;
  ground.begin_anew();
  const auto name = ground.home() + "/run/node_id";
  const auto before = boyd::test::read_file(name);
  for (const bool for_ever : {false, true}) {
    // The node's name is the first file that is read.
    const fault f{.what = action::eio, .at = 1, .for_ever = for_ever, .kinds = kind::read};
    const auto ended = ground.run({"status", "--json"}, f);
    INFO(ground.faults().where() << "\n" << ended.err << ended.out);
    CHECK(ground.faults().struck());
    CHECK(ended.code == (for_ever ? 1 : 0));
    CHECK((ended.err.find("Input/output error") != std::string::npos) == for_ever);
    CHECK((ended.err.find("try again") != std::string::npos) == for_ever);
    CHECK(boyd::test::read_file(name) == before);
  }
  ground.settle("failed reads");
}

TEST_CASE("case 34 eio-fsync-for-ever: with no fsync nothing is acknowledged and nothing runs",
          "[crash]") {
  proving_ground ground;
  ground.begin_anew();
  const auto before = ground.ledger().agent_pids().size();
  const fault f{.what = action::eio, .at = 1, .for_ever = true, .kinds = kind::sync};
  const auto ended = ground.cycle(f);
  INFO(ended.err << ended.out);
  CHECK(ended.code == 1);
  CHECK(ended.out.find("dispatched") == std::string::npos);
  CHECK(ended.err.find("Input/output error") != std::string::npos);
  CHECK(ground.ledger().agent_pids().size() == before);
  ground.check("no fsync");
  ground.settle("no fsync");
}

TEST_CASE("case 34 eio-fsync-for-ever: fsync fails from any call on until the disk is well again",
          "[crash]") {
  const auto e = effort_of(20, 6s);
  proving_ground ground;
  ground.seed(e.seed);
  fail_for_a_while_along(ground, e, {action::eio}, kind::sync,
                         "times every fsync failed for a while");
}

TEST_CASE("case 34 eio-fsync-for-ever: a node whose disk fails says why it is not ready, and is "
          "again",
          "[crash]") {
  proving_ground ground;
  ground.begin_anew();
  constexpr std::uint64_t behind_the_start = 10;
  const fault f{.what = action::eio,
                .at = ground.calls_of(kind::sync) + behind_the_start,
                .for_ever = true,
                .kinds = kind::sync};
  const auto node = ground.start({"node"}, f);
  REQUIRE(node->wait_for_stderr("ready: node "));
  const auto ready = [&] {
    return boyd::test::get(ground.home() + "/run/control.sock", "/readyz");
  };
  CHECK(ready().find(" 200 ") != std::string::npos);
  constexpr int most_cycles = 5;
  for (int i = 0; i < most_cycles && !ground.faults().struck(); ++i)
    ground.ask_cycle(f);
  REQUIRE(ground.faults().struck());
  std::string said;
  CHECK(boyd::test::wait_until([&] {
    said = ready();
    return said.find(" 503 ") != std::string::npos &&
           said.find("Input/output error") != std::string::npos;
  }));
  INFO(said);
  ground.faults().end_fault();
  ground.ask_cycle({});
  CHECK(boyd::test::wait_until([&] {
    said = ready();
    return said.find(" 200 ") != std::string::npos;
  }));
  node->signal(SIGTERM);
  ground.heard_node(node->finish(), f);
  ground.check("a disk that failed for a while");
  ground.settle("a disk that failed for a while");
}

TEST_CASE("case 35 enospc and 36 short-write: any one call of a cycle fails or is cut short",
          "[crash]") {
  const auto e = effort_of(1000, 14s);
  proving_ground ground;
  ground.seed(e.seed);
  fail_once_along(ground, e, {action::enospc, action::shorten, action::eio}, kind::all,
                  "I/O calls failed (EIO, ENOSPC) or shortened once");
}

TEST_CASE("case 44 fault-during-recovery: the disk fails from any call on that takes up what a "
          "killed node left",
          "[crash]") {
  const auto e = effort_of(40, 10s);
  proving_ground ground;
  ground.seed(e.seed);
  ground.begin_with_a_log();
  ground.keep();
  tally points(e);
  int missed = 0; // the last call is behind when neither kind has struck
  for (std::uint64_t round = 0; !points.enough() && missed < 2; ++round) {
    ground.restore();
    const bool full = round % 2 == 0;
    const fault f{.what = full ? action::enospc : action::eio,
                  .at = round / 2 + 1,
                  .for_ever = true,
                  .kinds = full ? kind::open | kind::write | kind::size : kind::all};
    const auto ended = cycle_while_failing(ground, f);
    INFO(about(e, points.done(), f) << ", " << ground.faults().where() << "\n" << ended.err);
    missed = ground.faults().struck() ? 0 : missed + 1;
    if (missed == 0)
      points.one();
    CHECK(is_exit_code(ended.code));
    ground.check(about(e, points.done(), f));
    ground.settle(about(e, points.done(), f));
  }
  points.report("times the disk failed under a recovery", ground);
  CHECK(points.done() > 0);
}

TEST_CASE("case 35 enospc: the disk is full from any call on until there is room again",
          "[crash]") {
  const auto e = effort_of(40, 8s);
  proving_ground ground;
  ground.seed(e.seed);
  fail_for_a_while_along(ground, e, {action::enospc}, kind::open | kind::write | kind::size,
                         "times the disk was full for a while");
}

} // namespace boyd::io_error_test
