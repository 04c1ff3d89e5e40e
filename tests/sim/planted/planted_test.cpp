#include "support/pch.hpp"
#include "tests/sim/lab/scenario.hpp"
#include "tests/sim/planted/bugs.hpp"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>

namespace boyd::planted_test {

using namespace boyd;
using namespace boyd::sim;

namespace {

/// A bug must be found within so many seeds.
constexpr std::uint64_t most_seeds = 10'000;

struct finding {
  std::uint64_t seeds = 0; ///< until it was found; 0: it was not
  std::string first;       ///< the first broken invariant
};

seed_report run_with(planted_bug b, std::uint64_t seed) {
  active_bug = b;
  auto r = run_seed(seed);
  active_bug = planted_bug::none;
  return r;
}

finding find(planted_bug b) {
  for (std::uint64_t seed = 1; seed <= most_seeds; ++seed) {
    const auto r = run_with(b, seed);
    // A seed that finds something in the product as it is says nothing about the bug.
    if (!r.violations.empty() && run_with(planted_bug::none, seed).violations.empty())
      return {seed, r.violations.front()};
  }
  return {};
}

} // namespace

TEST_CASE("every planted bug is found by the simulation") {
  spdlog::set_level(spdlog::level::off);
  const char* only = std::getenv("BOYD_PLANTED_BUG");
  int looked_for = 0;
  for (std::size_t i = 1; i < planted_bug_names.size(); ++i) {
    if (only != nullptr && planted_bug_names[i] != only)
      continue;
    ++looked_for;
    const auto f = find(static_cast<planted_bug>(i));
    std::printf("planted %-20s found by seed %5llu: %s\n",
                std::string(planted_bug_names[i]).c_str(), static_cast<unsigned long long>(f.seeds),
                f.first.c_str());
    std::fflush(stdout);
    INFO(planted_bug_names[i]);
    CHECK(f.seeds > 0);
  }
  INFO("BOYD_PLANTED_BUG names none of them: tests/sim/planted/bugs.hpp has their names");
  CHECK(looked_for > 0);
}

TEST_CASE("without a planted bug the same seeds find nothing") {
  spdlog::set_level(spdlog::level::off);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto r = run_seed(seed);
    INFO("seed " << seed << ": " << (r.violations.empty() ? "" : r.violations.front()));
    CHECK(r.violations.empty());
  }
}

} // namespace boyd::planted_test
