#include "agreement.hpp"
#include "boyd/core/limits.hpp"
#include "harness.hpp"
#include "support/knob.hpp"
#include "support/pch.hpp"
#include "support/strict_times.hpp"
#include "support/telling.hpp"
#include "support/wait.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace boyd::stop_points_test {

using namespace boyd::test;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
namespace fs = std::filesystem;

namespace {

constexpr milliseconds grace = 1s;
/// What is promised beyond the grace, and what a machine may take that does other things as well.
constexpr milliseconds promised = 2s;
constexpr milliseconds ordinary = 20s;
constexpr int died_of_term = 128 + SIGTERM;

/// Commands that take from 0.1 to 1 s, as their dispatches decide, one that takes longer than the
/// grace, and one that now and then does not end and takes no notice of TERM.
test_settings restless() {
  test_settings t;
  t.node = "max_concurrent: 8, drain_grace: 1s";
  const std::string brief = "say began; n=$(printf %s \"$BOYD_DISPATCH_ID\" | tail -c 3); "
                            "sleep 0.$((0x$n % 900 + 100)); say ended; echo done";
  for (const auto* id : {"brief-1", "brief-2", "brief-3", "brief-4"})
    t.agents.push_back({id, brief, ""});
  t.agents.push_back({"slow", "say began; sleep 2; say ended; echo done", ""});
  t.agents.push_back({"stubborn",
                      "if [ -e @SITE@/stubborn ]; then trap '' TERM; say stubborn; "
                      "while true; do sleep 0.1; done; fi; say ended; echo done",
                      ""});
  return t;
}

/// What the signals came to.
struct tally {
  int points = 0;
  int in_time = 0; ///< within what is promised
  int before_ready = 0;
  int stubborn = 0;
  milliseconds longest{0}; ///< beyond the grace, and KILL's where that was due
};

class campaign {
 public:
  explicit campaign(std::uint64_t seed) : random_(seed), site_(restless()) {}

  void stop_once() {
    const auto from = site_.ledger().size();
    set_stubborn(drawn(6) == 0);
    node_process node(site_.home(), site_.log_path());
    const bool early = drawn(4) == 0;
    std::optional<program> cycle;
    if (!early) {
      node.wait_ready();
      cycle.emplace(std::vector<std::string>{boyd_binary(), "--home", site_.home(), "cycle"});
    }
    wait_for_point(node, early, from);
    node.signal(SIGTERM);
    const auto begin = std::chrono::steady_clock::now();
    const int code = node.wait_end();
    const auto took =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
    const auto log = node.log();
    INFO(log);
    const bool heard = log.find("shutting down") != std::string::npos;
    // Before it watches signals nothing is there that could be left.
    CHECK((code == 0 || (early && !heard && code == died_of_term)));
    note(from, took, early);
    if (cycle) {
      // It does the work itself when it found no node any more, and is stopped as a node is.
      cycle->signal(SIGTERM);
      cycle->finish();
    }
    check_nothing_left(from);
    check_rows();
  }

  /// Everything that was asked for is done by one more node that is left alone.
  void finish() {
    set_stubborn(false);
    {
      node_process node(site_.home(), site_.log_path());
      node.wait_ready();
      // Refused while what earlier nodes began, or only admitted, comes first: rows that are all
      // done would not tell that another cycle is about to begin.
      CHECK(eventually([&] { return site_.run({"cycle"}).code == 0; }));
      for (const auto& row : site_.dispatches())
        CHECK(row.at("status") == "done");
      CHECK(eventually([&] {
        std::set<std::string> cycles;
        for (const auto& row : site_.dispatches())
          cycles.insert(row.at("cycle_id").template get<std::string>());
        return std::ranges::all_of(cycles,
                                   [&](const auto& id) { return records_of(site_, id) == 1; });
      }));
      node.signal(SIGTERM);
      CHECK(node.wait_end() == 0);
    }
    check_rows();
    std::set<std::string> ended;
    for (const auto& line : site_.ledger())
      if (line.word == "ended")
        ended.insert(line.dispatch);
    for (const auto& row : site_.dispatches())
      CHECK(boyd::test::promised(ended.contains(row.at("dispatch_id").get<std::string>()),
                                 "a dispatch is done that nobody did"));
    const auto wrong = disagreements(site_);
    INFO(told(wrong));
    CHECK(wrong.empty());
  }

  const tally& came_to() const { return tally_; }

 private:
  std::uint64_t drawn(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>(0, below - 1)(random_);
  }

  void set_stubborn(bool wanted) const {
    if (wanted)
      site_.open_gate("stubborn");
    else
      fs::remove(site_.outside("stubborn"));
  }

  /// Nothing announces a random moment: the node's end, which does not come, is waited for with a
  /// drawn limit; or a drawn number of lines that agents write.
  void wait_for_point(node_process& node, bool early, std::size_t from) {
    if (early) {
      CHECK_FALSE(wait_until([&] { return !node.running(); }, milliseconds{drawn(150)}));
    } else if (drawn(2) == 0) {
      CHECK_FALSE(wait_until([&] { return !node.running(); }, milliseconds{drawn(1200)}));
    } else {
      const auto lines = from + drawn(10);
      // A cycle that goes on may have fewer left.
      wait_until([&] { return site_.ledger().size() >= lines; }, 3s);
    }
  }

  void note(std::size_t from, milliseconds took, bool early) {
    const auto lines = site_.ledger();
    const bool stubborn =
        std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(from), lines.end(),
                    [](const auto& l) { return l.word == "stubborn"; });
    // A program that takes no notice of TERM has its own time until KILL.
    const auto beyond = took - grace - (stubborn ? limits::term_grace : milliseconds{0});
    ++tally_.points;
    tally_.in_time += beyond <= promised ? 1 : 0;
    tally_.before_ready += early ? 1 : 0;
    tally_.stubborn += stubborn ? 1 : 0;
    tally_.longest = std::max(tally_.longest, beyond);
    INFO("ended after " << took.count() << " ms");
    CHECK(beyond <= at_most(promised, ordinary));
  }

  void check_nothing_left(std::size_t from) const {
    const auto lines = site_.ledger();
    for (auto i = from; i < lines.size(); ++i)
      CHECK(boyd::test::promised(!alive(lines[i].pid), "a command outlives its node"));
    CHECK_FALSE(fs::exists(site_.home() + "/run/control.sock"));
    CHECK(site_.run({"status"}).code == 0); // the lock is free
  }

  /// What ran is given back unused, and nothing that was there is gone.
  void check_rows() {
    std::set<std::string> now;
    std::set<std::string> waiting;
    for (const auto& row : site_.dispatches()) {
      const auto id = row.at("dispatch_id").get<std::string>();
      INFO(row.dump());
      now.insert(id);
      const bool done = row.at("status") == "done";
      CHECK((done || row.at("status") == "pending"));
      if (!done)
        waiting.insert(id);
      CHECK(boyd::test::promised(row.at("attempt") == (done ? 1 : 0),
                                 "what a stop interrupts counts as an attempt"));
      CHECK(row.at("lease_owner") == "");
      CHECK(row.at("rescues") == 0);
    }
    for (const auto& id : waiting_)
      CHECK(boyd::test::promised(now.contains(id), "a dispatch is lost"));
    waiting_ = std::move(waiting);
  }

  std::mt19937_64 random_;
  site site_;
  std::set<std::string> waiting_; ///< at the latest look
  tally tally_;
};

} // namespace

TEST_CASE("promise bounded-stop: SIGTERM at random points ends the node within its grace and 2 s, "
          "nothing lost, nothing left",
          "[acceptance]") {
  const auto points = static_cast<std::uint64_t>(test::knob("BOYD_STOP_POINTS", 12));
  const auto seed =
      static_cast<std::uint64_t>(test::knob("BOYD_STOP_SEED", std::random_device{}()));
  INFO("BOYD_STOP_SEED=" << seed);
  campaign all(seed);
  for (std::uint64_t i = 0; i < points; ++i)
    all.stop_once();
  all.finish();
  const auto& t = all.came_to();
  tell_figure("case 31: SIGTERM at " + std::to_string(t.points) + " random points (" +
              std::to_string(t.before_ready) + " while it started, " + std::to_string(t.stubborn) +
              " beside a program that ignores TERM): " + std::to_string(t.in_time) +
              " ended within the grace and 2 s, the longest took " +
              std::to_string(t.longest.count()) + " ms beyond the grace");
}

} // namespace boyd::stop_points_test
