#include "boyd/context/confidence.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace boyd::confidence_test {

using namespace boyd::context;

namespace {

const std::vector<learning_method> all_methods{learning_method::linear, learning_method::ema,
                                               learning_method::bandit};

item_statistics after(const std::vector<bool>& outcomes, double first = 0.7) {
  item_statistics s;
  s.confidence = first;
  for (const bool good : outcomes) {
    s.average = next_average(s, good);
    ++(good ? s.success_count : s.failure_count);
  }
  return s;
}

double mean_of_draws(const item_statistics& s, int draws) {
  double sum = 0;
  for (int i = 0; i < draws; ++i)
    sum += confidence_of(s, "ctx_1", {learning_method::bandit, static_cast<std::uint64_t>(i)});
  return sum / draws;
}

} // namespace

TEST_CASE("confidence: within 0 and 1, and the same for the same arguments", "[confidence]") {
  REQUIRE(
      rc::check([](const std::vector<bool>& outcomes, std::uint64_t seed, const std::string& id) {
        const auto s = after(outcomes);
        for (const auto m : all_methods) {
          const auto c = confidence_of(s, id, {m, seed});
          RC_ASSERT(c >= 0.0);
          RC_ASSERT(c <= 1.0);
          RC_ASSERT(c == confidence_of(s, id, {m, seed}));
        }
      }));
}

TEST_CASE("confidence: the average rises with a success and falls with a failure", "[confidence]") {
  REQUIRE(rc::check([](const std::vector<bool>& outcomes) {
    const auto s = after(outcomes);
    const auto now = confidence_of(s, "i", {learning_method::ema, 0});
    RC_ASSERT(next_average(s, true) >= now);
    RC_ASSERT(next_average(s, false) <= now);
  }));
  // What went well long ago counts for less than what goes wrong now.
  std::vector<bool> changed(20, true);
  changed.insert(changed.end(), 10, false);
  CHECK(confidence_of(after(changed), "i", {learning_method::ema, 0}) < 0.2);
  CHECK(confidence_of(after({}), "i", {learning_method::ema, 0}) == 0.7);
}

TEST_CASE("confidence: the bandit draws around the share of successes, and closer to it the more "
          "is known",
          "[confidence]") {
  constexpr int draws = 4000;
  const auto spread = [](const item_statistics& s) {
    double sum = 0;
    const auto mean = mean_of_draws(s, draws);
    for (int i = 0; i < draws; ++i) {
      const auto c =
          confidence_of(s, "ctx_1", {learning_method::bandit, static_cast<std::uint64_t>(i)});
      sum += (c - mean) * (c - mean);
    }
    return std::sqrt(sum / draws);
  };
  const std::vector<std::pair<int, int>> outcomes{{0, 0}, {3, 1}, {1, 9}, {80, 20}, {1000, 3000}};
  for (const auto& [good, bad] : outcomes) {
    item_statistics s;
    s.success_count = good;
    s.failure_count = bad;
    const double a = good + 1;
    const double b = bad + 1;
    // The moments of the distribution, within five standard errors.
    const auto deviation = std::sqrt(a * b / ((a + b) * (a + b) * (a + b + 1)));
    INFO(good << " good, " << bad << " bad");
    CHECK(std::abs(mean_of_draws(s, draws) - a / (a + b)) < 5 * deviation / std::sqrt(draws));
    CHECK(std::abs(spread(s) - deviation) < 0.1 * deviation);
  }
}

TEST_CASE("confidence: each item and each run has a draw of its own", "[confidence]") {
  const item_statistics s;
  const confidence_rule rule{learning_method::bandit, seed_of("0198d2a4")};
  CHECK(confidence_of(s, "ctx_1", rule) != confidence_of(s, "ctx_2", rule));
  CHECK(confidence_of(s, "ctx_1", rule) !=
        confidence_of(s, "ctx_1", {learning_method::bandit, seed_of("0198d2a5")}));
  CHECK(seed_of("0198d2a4") == seed_of("0198d2a4"));
  CHECK(seed_of("0198d2a4") < (std::uint64_t{1} << 53U));
}

} // namespace boyd::confidence_test
