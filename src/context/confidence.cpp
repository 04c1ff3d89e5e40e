#include "boyd/context/confidence.hpp"

#include "boyd/core/sha256.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace boyd::context {

namespace {

/// What the latest outcome weighs in the average.
constexpr double latest_share = 0.2;

/// Numbers that are the same on every machine, as those of <random>'s distributions are not.
class drawn_numbers {
 public:
  explicit drawn_numbers(std::uint64_t seed) : state_(seed) {}

  /// Above 0, up to 1.
  double unit() {
    constexpr int mantissa_bits = 53;
    return std::ldexp(static_cast<double>((next() >> (64 - mantissa_bits)) + 1), -mantissa_bits);
  }

  double normal() {
    return std::sqrt(-2 * std::log(unit())) * std::cos(2 * std::numbers::pi * unit());
  }

  /// Of a gamma distribution with this shape, 1 or more (Marsaglia and Tsang).
  double gamma(double shape) {
    constexpr int most_tries = 1000; // nineteen of twenty are taken at once
    const auto d = shape - 1.0 / 3;
    const auto c = 1 / std::sqrt(9 * d);
    for (int i = 0; i < most_tries; ++i) {
      const auto x = normal();
      const auto v = std::pow(1 + c * x, 3);
      if (v > 0 && std::log(unit()) < x * x / 2 + d - d * v + d * std::log(v))
        return d * v;
    }
    return shape;
  }

 private:
  /// SplitMix64.
  std::uint64_t next() {
    auto z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  std::uint64_t state_;
};

std::uint64_t number_of(std::string_view text) {
  constexpr std::size_t digits = 13; // 52 bits: JSON keeps them all
  return std::stoull(sha256_hex(text).substr(0, digits), nullptr, 16);
}

double drawn(const item_statistics& s, std::string_view id, std::uint64_t seed) {
  drawn_numbers numbers(number_of(std::to_string(seed) + "\n" + std::string(id)));
  const auto good =
      numbers.gamma(1 + static_cast<double>(std::max<std::int64_t>(0, s.success_count)));
  const auto bad =
      numbers.gamma(1 + static_cast<double>(std::max<std::int64_t>(0, s.failure_count)));
  return good / (good + bad);
}

} // namespace

std::string_view name_of(learning_method m) noexcept {
  switch (m) {
  case learning_method::linear:
    return "linear";
  case learning_method::ema:
    return "ema";
  case learning_method::bandit:
    return "bandit";
  }
  return "linear";
}

std::uint64_t seed_of(std::string_view dispatch_id) {
  return number_of(dispatch_id);
}

double confidence_of(const item_statistics& s, std::string_view id, const confidence_rule& rule) {
  switch (rule.method) {
  case learning_method::ema:
    return s.success_count + s.failure_count == 0 ? s.confidence : s.average;
  case learning_method::bandit:
    return drawn(s, id, rule.seed);
  case learning_method::linear:
    break;
  }
  return s.confidence;
}

double next_average(const item_statistics& before, bool good) {
  constexpr double steps = 1e9; // free of what sums leave behind
  const auto from =
      before.success_count + before.failure_count == 0 ? before.confidence : before.average;
  const auto next = from + latest_share * ((good ? 1 : 0) - from);
  return std::clamp(std::round(next * steps) / steps, 0.0, 1.0);
}

} // namespace boyd::context
