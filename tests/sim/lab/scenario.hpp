#pragma once

#include "tests/sim/lab/world.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace boyd::sim {

/// Every seed meets at least so many kinds of faults.
inline constexpr std::uint64_t fewest_kinds = 5;

/// What one seed stands for: how many machines, which agents, what goes wrong.
struct scenario {
  std::uint64_t seed = 0;
  config::configuration configuration;
  fault_menu menu; ///< at least `fewest_kinds`
  world_options options;
};

/// Everything of it is drawn from the seed.
scenario scenario_of(std::uint64_t seed);

/// What came of one seed.
struct seed_report {
  std::uint64_t seed = 0;
  std::uint64_t trace = 0;
  milliseconds virtual_time{0};
  std::uint64_t messages = 0;
  std::uint64_t cycles = 0;
  std::uint64_t dispatches = 0;
  std::uint64_t chat_calls = 0; ///< of models
  std::uint64_t crashes = 0;
  std::array<std::uint64_t, fault_kinds> faults{};
  std::vector<std::string> violations;
  std::vector<std::string> events; ///< the last ones
};

/// Lives through the scenario for `days` of virtual time and until nothing is under way.
seed_report run_seed(std::uint64_t seed, int days = 1);

} // namespace boyd::sim
