#pragma once

#include "support/knob.hpp"
#include "support/strict_times.hpp"

#include <chrono>
#include <cstdint>
#include <random>
#include <string>

namespace boyd::test {

/// How long the random faults go on: BOYD_CHAOS_SECONDS.
inline std::chrono::seconds chaos_time() {
  return std::chrono::seconds{knob("BOYD_CHAOS_SECONDS", 40)};
}

/// The nodes' lease, in seconds: BOYD_CHAOS_LEASE. Production's is 30; a short one shows the same
/// in less time.
inline int chaos_lease() {
  return static_cast<int>(knob("BOYD_CHAOS_LEASE", 3));
}

/// How often a node looks for the expired leases of others (docs/queue.md).
inline constexpr int rescue_sweep_s = 5;

/// A lost node's work runs elsewhere within lease + sweep, p99: 35 s with the lease of production.
/// That is what BOYD_STRICT_TIMES asserts. Otherwise another sweep, for the first may meet a busy
/// store, and what a machine takes that does other things as well: a claim, the start of a process.
inline double rescue_bound_s(int lease_s) {
  constexpr double busy_machine_s = 10;
  const double promised = lease_s + rescue_sweep_s;
  return at_most(promised, promised + rescue_sweep_s + busy_machine_s);
}

/// BOYD_CHAOS_SEED, else a new one.
inline std::uint64_t chaos_seed() {
  return static_cast<std::uint64_t>(knob("BOYD_CHAOS_SEED", std::random_device{}()));
}

/// `node` settings for a short lease.
inline std::string lease_settings(int seconds) {
  return "lease: " + std::to_string(seconds) +
         "s, lease_renewal: " + std::to_string(seconds >= 6 ? seconds / 3 : 1) + "s";
}

} // namespace boyd::test
