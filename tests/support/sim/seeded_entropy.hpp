#pragma once

#include "boyd/ports/entropy.hpp"

#include <cstdint>

namespace boyd::sim {

/// The same numbers for the same seed on every machine (splitmix64, Steele et al. 2014).
class seeded_entropy final : public entropy {
 public:
  explicit seeded_entropy(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() override {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

} // namespace boyd::sim
