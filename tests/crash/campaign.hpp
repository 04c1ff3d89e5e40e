#pragma once

#include "crash/fault.hpp"
#include "crash/witness.hpp"
#include "support/temp_dir.hpp"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace boyd::crash {

/// How much a case does. From the environment: BOYD_CRASH_POINTS=N (or "all"), BOYD_CRASH_SECONDS
/// (the time a case takes at most when POINTS is not given), BOYD_CRASH_SEED.
struct effort {
  std::uint64_t points = 0;
  std::chrono::seconds most{0}; ///< 0: until the points are done
  bool all = false;             ///< every I/O call, each on a home of its own
  std::uint64_t seed = 0;
};

/// `points` and `most` are what a case does when nobody says more; a sanitized build does less.
effort effort_of(std::uint64_t points, std::chrono::seconds most);

/// Which point of a case it is, and how to see it again.
std::string about(const effort& e, std::uint64_t point, const fault& f);

/// How a program that was killed has ended.
inline constexpr int killed = 128 + SIGKILL;

class proving_ground;

/// Counts what was done and knows when it is enough.
class tally {
 public:
  explicit tally(const effort& e) : effort_(e), start_(std::chrono::steady_clock::now()) {}
  bool enough() const;
  void one() { ++done_; }
  std::uint64_t done() const { return done_; }
  /// "N <what> in S s, C cycles and O outcomes acknowledged", and what was found wrong on the disk.
  void report(const std::string& what, const proving_ground& ground) const;

 private:
  effort effort_;
  std::chrono::steady_clock::time_point start_;
  std::uint64_t done_ = 0;
};

/// A node's home under fire, its agents (two that act in the world, one that fails, one script) and
/// the outside ledger. Every check throws `broken` with all that is needed to see it again.
class proving_ground {
 public:
  /// `where`: an existing directory for the home; empty: one of its own, on a fast disk.
  explicit proving_ground(const std::string& where = {});

  const std::string& home() const { return home_; }
  witness& ledger() { return witness_; }
  const witness& ledger() const { return witness_; }
  /// What was acknowledged, on all homes so far.
  std::size_t cycles() const { return past_cycles_ + witness_.cycles(); }
  std::size_t outcomes() const { return past_outcomes_ + witness_.outcomes(); }
  /// How often the disk was examined, and how much was wrong.
  std::uint64_t examined() const { return examined_; }
  std::uint64_t wrong() const { return wrong_; }
  shim& faults() { return shim_; }

  /// A fresh home: init, the agents' text, two cycles. What was heard of an earlier one is
  /// forgotten.
  void begin_anew();
  /// The same, and the database's log has what a node acknowledged before it was killed.
  void begin_with_a_log();
  /// The same now and then, after a cycle without faults: a history of thousands of cycles would
  /// take longer to be examined than all else. `round`: of the case.
  void renew_sometimes(std::uint64_t round, const std::string& about);
  /// Sets the home as it is now aside; `restore` brings it back, with what was acknowledged then.
  void keep();
  void restore();

  /// `boyd --home H args…` under a fault, not waited for.
  std::unique_ptr<test::program> start(std::vector<std::string> args, const fault& f);
  test::finished run(std::vector<std::string> args, const fault& f);
  /// `boyd cycle --json`; what it says is heard.
  test::finished cycle(const fault& f);
  /// The same by a program without a fault, which asks the node that has one, and keeps it.
  void ask_cycle(const fault& of_node);
  /// How a node that was started with `start` has ended.
  void heard_node(const test::finished& ended, const fault& f);
  /// The same for a cycle that was started with `start`.
  void heard_cycle(const test::finished& ended, const fault& f);
  /// How many I/O calls of these kinds a clean cycle makes.
  std::uint64_t calls_of(std::uint32_t kinds);

  /// The disk after a crash or an error.
  void check(const std::string& about);
  /// A cycle without faults must be good, and nothing may be left over.
  void settle(const std::string& about, std::uint32_t counted = kind::all);
  /// No process that an agent was is alive.
  void check_nothing_lives(const std::string& about);

  /// The case is about a disk that loses what it promised: what is found is not told as broken.
  void expect_losses() { expects_losses_ = true; }

  /// Random numbers of this case.
  std::uint64_t random(std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(1, most)(random_);
  }
  void seed(std::uint64_t s) { random_.seed(s); }

 private:
  std::vector<std::string> argv(std::vector<std::string> args) const;
  void remember(const std::string& verb, const test::finished& ended, const fault& f);
  void require(const std::vector<std::string>& violations, const std::string& about);
  std::vector<std::string> told_as_broken(std::vector<std::string> violations,
                                          const std::string& about) const;

  test::temp_dir outside_{fast_place()};
  std::string home_;
  std::string told_; ///< what the latest runs said
  shim shim_;
  witness witness_;
  witness kept_;
  std::mt19937_64 random_;
  bool expects_losses_ = false;
  std::size_t past_cycles_ = 0;
  std::size_t past_outcomes_ = 0;
  std::uint64_t examined_ = 0;
  std::uint64_t wrong_ = 0;
};

/// A promise was broken; the text says which, where and how to see it again.
struct broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace boyd::crash
